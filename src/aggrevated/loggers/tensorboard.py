"""Writer of TensorBoard event files in RUN/tensorboard."""

import json
from pathlib import Path

from aggrevated.loggers import select_numeric_fields
from aggrevated.storage import JsonDict


class TensorBoardWriter:
    """Writer of a scalar per metric and iteration, and of the result's scalars at the last iteration."""

    log = "tensorboard"
    package = "tensorboard"

    def __init__(self, folder: Path, config: JsonDict) -> None:
        """Open a new event file that hides the older ones of a resumed run."""
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(folder / "tensorboard"), purge_step=0)
        self.writer.add_text("config", f"```\n{json.dumps(config, indent=2)}\n```", 0)

    def write(self, metrics: JsonDict) -> None:
        for name, value in select_numeric_fields(metrics).items():
            self.writer.add_scalar(name, value, metrics["iteration"])

    def close(self, result: JsonDict | None) -> None:
        for name, value in select_numeric_fields(result or {}).items():
            self.writer.add_scalar(f"result/{name}", value, (result or {})["iterations"])
        self.writer.close()
