"""Writer of offline Weights & Biases files in RUN/wandb, for `wandb sync`; it uses no network."""

import os
from pathlib import Path

from aggrevated.loggers import select_numeric_fields
from aggrevated.storage import JsonDict


class WandbWriter:
    """Writer of one W&B step per iteration, with the result as summary."""

    log = "wandb"
    package = "wandb"

    def __init__(self, folder: Path, config: JsonDict) -> None:
        """Start an offline run; that of a resumed run has the old id, and its folder has all iterations."""
        os.environ["WANDB_ERROR_REPORTING"] = "false"  # wandb reads it when imported
        import wandb

        settings = wandb.Settings(
            silent=True, console="off", disable_git=True, save_code=False, x_disable_stats=True, x_disable_meta=True
        )
        previous = sorted((folder / "wandb").glob("offline-run-*-*"))
        self.run = wandb.init(
            mode="offline", dir=str(folder), project="aggrevated", name=folder.name, config=config, settings=settings,
            id=previous[0].name.rpartition("-")[2] if previous else None,
            reinit="create_new",
        )  # fmt: skip

    def write(self, metrics: JsonDict) -> None:
        self.run.log(select_numeric_fields(metrics), step=metrics["iteration"])

    def close(self, result: JsonDict | None) -> None:
        if result is not None:
            self.run.summary.update({f"result/{name}": value for name, value in select_numeric_fields(result).items()})
        self.run.finish(0 if result is not None else 1)
