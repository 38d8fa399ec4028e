"""Event files for TensorBoard, in RUN/tensorboard."""

import json
from pathlib import Path

from aggrevated.loggers import numbers_of
from aggrevated.storage import Facts


class TensorBoard:
    """A scalar for each number of an iteration; those of the result are at the last one."""

    log, package = "tensorboard", "tensorboard"

    def __init__(self, folder: Path, config: Facts) -> None:
        """What was written before the run was stopped is not shown: it is written again."""
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(folder / "tensorboard"), purge_step=0)
        self.writer.add_text("config", f"```\n{json.dumps(config, indent=2)}\n```", 0)

    def write(self, metrics: Facts) -> None:
        for name, value in numbers_of(metrics).items():
            self.writer.add_scalar(name, value, metrics["iteration"])

    def close(self, result: Facts | None) -> None:
        for name, value in numbers_of(result or {}).items():
            self.writer.add_scalar(f"result/{name}", value, (result or {})["iterations"])
        self.writer.close()
