"""Progress on standard error: a bar on a terminal, a plain line for every tenth elsewhere."""

import sys
from typing import Self

from aggrevated.cli.output import note


class Progress:
    """How far a job of `total` iterations is."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.tenth = title, total, 0
        self.bar = None
        if sys.stderr.isatty():
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
