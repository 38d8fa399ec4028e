"""Progress on standard error: a bar on a terminal that can move it, a plain line for every tenth elsewhere."""

import os
import sys
from typing import Self

from aggrevated.cli.output import print_note

NOTEBOOK_VARIABLES = (
    "JPY_PARENT_PID",
    "JPY_SESSION_NAME",
    "COLAB_RELEASE_TAG",
    "KAGGLE_KERNEL_RUN_TYPE",
)  # say their kernels
FIRST = 1000  # of an unknown total, when it is told for the first time
PLAIN_TERMINALS = ("", "dumb", "unknown")  # terminals without a cursor that goes back


def supports_progress_bar() -> bool:
    """Whether standard error is a terminal on which a bar can move: what a notebook or CI calls one keeps each step."""
    kept = [name for name in (*NOTEBOOK_VARIABLES, "CI", "DATABRICKS_RUNTIME_VERSION") if os.environ.get(name)]
    return sys.stderr.isatty() and os.environ.get("TERM", "") not in PLAIN_TERMINALS and not kept


class Progress:
    """How far a job of `total` iterations is; where nobody knows how many they are, how many are over."""

    def __init__(self, title: str, total: int | None) -> None:
        self.title, self.total, self.told = title, total, 0
        self.bar = None
        if supports_progress_bar():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            text, console = TextColumn("{task.fields[text]}"), Console(stderr=True)
            beside = sys.stdout.isatty()  # results that go into a file are not to be printed around the bar
            self.bar = Bar(*columns, text, console=console, redirect_stdout=beside)
            self.task = self.bar.add_task(title, total=total, text="")

    def __enter__(self) -> Self:
        if self.bar:
            self.bar.start()
        return self

    def at(self, done: int, text: str, last: bool = False) -> None:
        """Say that `done` of the iterations are over; the last word is said in any case."""
        if self.bar:
            self.bar.update(self.task, completed=done, text=text)
        elif self._is_due(done) or last:
            self.told = done
            print_note(f"{self.title}: {done}{f'/{self.total}' if self.total else ''}, {text}")

    def _is_due(self, done: int) -> bool:
        """Whether another tenth is over; of an unknown total, whether it is twice as much as the last time."""
        if self.total is None:
            return done >= max(2 * self.told, FIRST)
        return 10 * done // self.total > 10 * self.told // self.total

    def __exit__(self, *error: object) -> None:
        if self.bar:
            self.bar.stop()
