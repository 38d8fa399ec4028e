"""Progress on standard error: a bar on a terminal that can move it, a plain line for every tenth elsewhere."""

import os
import sys
from typing import Self

from aggrevated.cli.output import note

NOTEBOOKS = ("JPY_PARENT_PID", "JPY_SESSION_NAME", "COLAB_RELEASE_TAG", "KAGGLE_KERNEL_RUN_TYPE")  # say their kernels
PLAIN = ("", "dumb", "unknown")  # terminals without a cursor that goes back


def moves() -> bool:
    """Whether standard error is a terminal on which a bar can move: what a notebook or CI calls one keeps each step."""
    kept = [name for name in (*NOTEBOOKS, "CI", "DATABRICKS_RUNTIME_VERSION") if os.environ.get(name)]
    return sys.stderr.isatty() and os.environ.get("TERM", "") not in PLAIN and not kept


class Progress:
    """How far a job of `total` iterations is."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.tenth = title, total, 0
        self.bar = None
        if moves():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self.bar = Bar(*columns, TextColumn("{task.fields[text]}"), console=Console(stderr=True))
            self.task = self.bar.add_task(title, total=total, text="")

    def __enter__(self) -> Self:
        if self.bar:
            self.bar.start()
        return self

    def at(self, done: int, text: str, last: bool = False) -> None:
        """Say that `done` of the iterations are over; the last word is said in any case."""
        if self.bar:
            self.bar.update(self.task, completed=done, text=text)
        elif (tenth := 10 * done // self.total) > self.tenth or last:
            self.tenth = tenth
            note(f"{self.title}: {done}/{self.total}, {text}")

    def __exit__(self, *error: object) -> None:
        if self.bar:
            self.bar.stop()
