"""Weights & Biases, offline: files in RUN/wandb, which `wandb sync` can send later. Nothing goes over a network."""

import os
from pathlib import Path

from aggrevated.loggers import select_numeric_fields
from aggrevated.storage import JsonDict


class WandbWriter:
    """A step for each iteration, and the result as its summary."""

    log = "wandb"
    package = "wandb"

    def __init__(self, folder: Path, config: JsonDict) -> None:
        """A run that goes on keeps its id; the newest folder holds all of it."""
        os.environ["WANDB_ERROR_REPORTING"] = "false"  # read when it is imported
        import wandb

        silent = wandb.Settings(
            silent=True, console="off", disable_git=True, save_code=False, x_disable_stats=True, x_disable_meta=True
        )
        before = sorted((folder / "wandb").glob("offline-run-*-*"))
        self.run = wandb.init(
            mode="offline", dir=str(folder), project="aggrevated", name=folder.name, config=config, settings=silent,
            id=before[0].name.rpartition("-")[2] if before else None,
            reinit="create_new",
        )  # fmt: skip

    def write(self, metrics: JsonDict) -> None:
        self.run.log(select_numeric_fields(metrics), step=metrics["iteration"])

    def close(self, result: JsonDict | None) -> None:
        if result is not None:
            self.run.summary.update({f"result/{name}": value for name, value in select_numeric_fields(result).items()})
        self.run.finish(0 if result is not None else 1)
