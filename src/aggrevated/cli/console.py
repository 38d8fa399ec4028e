"""Output: standard streams, tables, messages, progress bars."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TextIO

if TYPE_CHECKING:
    from aggrevated.experts.loading import ExpertCard
    from aggrevated.reports import Table
    from aggrevated.storage import JsonDict
    from aggrevated.training.records import JsonRecord, Result
    from aggrevated.training.run_folder import Run


BROKEN_PIPE_ERRORS = (errno.EPIPE, errno.EIO)  # the reader, or the terminal, is gone


class BrokenPipeTolerantStream(io.FileIO):
    """A stream that discards what is written after its reader is gone."""

    def write(self, data: Any, /) -> int:
        """Write the data, or discard it if the reader is gone."""
        try:
            return super().write(data) or 0
        except OSError as error:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())  # Python writes again when it exits
            os.close(null)
            if error.errno not in BROKEN_PIPE_ERRORS and self.fileno() != 2:  # messages may be lost
                raise
            return memoryview(data).nbytes


def install_streams() -> None:
    """Open closed standard streams, so that no file takes their numbers, and make all three tolerate a broken pipe."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    sys.stdin = sys.stdin or Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - it stays open
    sys.stdout = make_tolerant(sys.stdout, sys.__stdout__, 1)
    sys.stderr = make_tolerant(sys.stderr, sys.__stderr__, 2)


def make_tolerant(stream: TextIO | None, original: TextIO | None, number: int) -> TextIO:
    """Return a stream over the same file that tolerates a broken pipe; return a replaced stream as it is."""
    if stream is None:
        return io.TextIOWrapper(
            io.BufferedWriter(BrokenPipeTolerantStream(number, "w", closefd=False)), "utf-8", line_buffering=True
        )
    if stream is not original or not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    raw = io.BufferedWriter(BrokenPipeTolerantStream(number, "w", closefd=False))
    return io.TextIOWrapper(raw, stream.encoding, stream.errors, line_buffering=stream.line_buffering)


def print_note(sentence: str) -> None:
    """Print a message to standard error."""
    print(sentence, file=sys.stderr, flush=True)


def print_dict(content: JsonDict, as_json: bool) -> None:
    """Print a dictionary as JSON, or one line per entry."""
    if as_json:
        print(json.dumps(content, ensure_ascii=False))
        return
    width = max(map(len, content))
    for name, value in content.items():
        print(f"{name.replace('_', ' '):<{width}}  {format_value(value)}")


def format_value(value: Any) -> str:
    """Return a number with four digits; a dictionary of UAS by kind as a list "kind UAS (symbols)"."""
    if isinstance(value, dict) and all(isinstance(entry, dict) for entry in value.values()):
        return ", ".join(f"{kind} {one['uas']:.2f} ({one['symbols']})" for kind, one in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def print_run_result(runs: Sequence[Run], results: Sequence[Result], folder: Path, as_json: bool) -> None:
    """Print a summary of runs that ended; as JSON all fields of their results."""
    if as_json:
        print_result(results, folder, as_json)
        return
    from aggrevated.cli.run_summary import describe_runs

    print("\n".join(describe_runs(runs, results, folder)))


def print_result(trials: Sequence[JsonRecord], folder: Path, as_json: bool) -> None:
    """Print all fields of one result, or the means of several; JSON has the single results under `trials`."""
    results = [trial.to_dict() for trial in trials]
    if len(results) == 1:
        print_dict(results[0], as_json)
        return
    means = {
        name: mean([result[name] for result in results])
        for name, value in results[0].items()
        if isinstance(value, int | float)
        and not isinstance(value, bool)
        and name not in ("seed", "budget", "queries", "episodes")
        and (name != "iterations" or len({result[name] for result in results}) > 1)
    }
    breakdowns = {
        name: summarize_trials([result[name] for result in results]) for name in UAS_BREAKDOWNS if name in results[0]
    }
    summary = results[0] | means | breakdowns | {"run_folder": str(folder)}
    summary.pop("weights_sha256", None)
    summary.pop("note", None)  # one trial's
    if as_json:
        summary["weights_sha256"] = [result["weights_sha256"] for result in results]
        summary["trials"] = results
    print_dict(summary, as_json)


UAS_BREAKDOWNS = ("by_symbol", "by_arc_length")


def summarize_trials(trials: Sequence[dict[str, JsonDict]]) -> dict[str, JsonDict]:
    """Return the mean UAS by kind of symbol, over trials that parsed the same pages."""
    return {kind: one | {"uas": mean([trial[kind]["uas"] for trial in trials])} for kind, one in trials[0].items()}


def mean(numbers: Sequence[float | None]) -> float | None:
    """Return the mean; None if a number is None."""
    measured = [number for number in numbers if number is not None]
    return sum(measured) / len(measured) if len(measured) == len(numbers) else None


def print_table(table: Table, as_json: bool, content: JsonDict | None = None) -> None:
    """Print the table and its closing line; as JSON its rows, or `content` if it is given."""
    if as_json:
        print(json.dumps(content or list(table.rows), ensure_ascii=False))
        return
    if table.columns:
        from rich.console import Console
        from rich.table import Table as RichTable

        rich_table = RichTable(title=table.title or None)
        for position, name in enumerate(table.columns):
            rich_table.add_column(name, justify="right" if position else "left", no_wrap=position > 0)
        for row in table.rows:
            rich_table.add_row(*(column(row) for column in table.columns.values()))
        Console(width=None if sys.stdout.isatty() else 120).print(rich_table)
    print(table.closing)


def print_expert_cards(cards: Mapping[str, ExpertCard], as_json: bool) -> None:
    """Print the cards of experts by name."""
    if as_json:
        print(json.dumps({name: card.to_dict() for name, card in cards.items()}, ensure_ascii=False))
        return
    for name, card in cards.items():
        print(
            f"{name}: {card.algorithm}, mean return {card.mean_return:.1f} ± {card.standard_error:.1f} "
            f"over {card.episodes} episodes at H = {card.horizon}; seed {card.seed}, step {card.step}"
        )
        print(f"  {card.why}\n  made by: {card.command}")


NOTEBOOK_VARIABLES = (
    "JPY_PARENT_PID",
    "JPY_SESSION_NAME",
    "COLAB_RELEASE_TAG",
    "KAGGLE_KERNEL_RUN_TYPE",
)  # set by the kernels of notebooks
FIRST_REPORT = 1000  # iterations of an unknown total before the first report
PLAIN_TERMINALS = ("", "dumb", "unknown")  # terminals that cannot move the cursor back


def supports_progress_bar() -> bool:
    """Return whether standard error is a terminal with a movable cursor, unlike that of notebooks and CI."""
    recorded = [name for name in (*NOTEBOOK_VARIABLES, "CI", "DATABRICKS_RUNTIME_VERSION") if os.environ.get(name)]
    return sys.stderr.isatty() and os.environ.get("TERM", "") not in PLAIN_TERMINALS and not recorded


class Progress:
    """The progress of a job of `total` iterations; None if their number is unknown."""

    def __init__(self, title: str, total: int | None) -> None:
        self.title = title
        self.total = total
        self.reported = 0
        self.bar = None
        if supports_progress_bar():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            text = TextColumn("{task.fields[text]}")
            console = Console(stderr=True)
            is_terminal = sys.stdout.isatty()  # results that go to a file are not printed around the bar
            self.bar = Bar(*columns, text, console=console, redirect_stdout=is_terminal)
            self.task = self.bar.add_task(title, total=total, text="")

    def __enter__(self) -> Self:
        if self.bar:
            self.bar.start()
        return self

    def report(self, done: int, text: str, last: bool = False) -> None:
        """Report that `done` iterations are over; the last report is always printed."""
        if self.bar:
            self.bar.update(self.task, completed=done, text=text)
        elif self._is_due(done) or last:
            self.reported = done
            print_note(f"{self.title}: {done}{f'/{self.total}' if self.total else ''}, {text}")

    def _is_due(self, done: int) -> bool:
        """Return whether another tenth is over; of an unknown total, whether it has doubled since the last report."""
        if self.total is None:
            return done >= max(2 * self.reported, FIRST_REPORT)
        return 10 * done // self.total > 10 * self.reported // self.total

    def __exit__(self, *error: object) -> None:
        if self.bar:
            self.bar.stop()
