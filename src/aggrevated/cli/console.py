"""The console: streams, tables and notes, progress bars."""

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
    from aggrevated.training.records import JsonRecord


BROKEN_PIPE_ERRORS = (errno.EPIPE, errno.EIO)  # the reader, or the terminal


class BrokenPipeTolerantStream(io.FileIO):
    """A stream that becomes the void when nobody reads it any more."""

    def write(self, data: Any, /) -> int:
        """All of it, as far as anybody can tell."""
        try:
            return super().write(data) or 0
        except OSError as error:
            void = os.open(os.devnull, os.O_WRONLY)
            os.dup2(void, self.fileno())  # it is told once: Python tries again when it ends
            os.close(void)
            if error.errno not in BROKEN_PIPE_ERRORS and self.fileno() != 2:  # for notes there is no remedy
                raise
            return memoryview(data).nbytes


def install_streams() -> None:
    """Open those of the three that are closed, so that no file of ours takes their place; let none of them break."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which takes the lowest number that is free: this one
    sys.stdin = sys.stdin or Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - it stays open
    sys.stdout = make_tolerant(sys.stdout, sys.__stdout__, 1)
    sys.stderr = make_tolerant(sys.stderr, sys.__stderr__, 2)


def make_tolerant(stream: TextIO | None, original: TextIO | None, number: int) -> TextIO:
    """The stream, if somebody has put another in its place; else one over the same file that does not break."""
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
    """A line for people, on standard error."""
    print(sentence, file=sys.stderr, flush=True)


def print_dict(facts: JsonDict, as_json: bool) -> None:
    """One object: as JSON, or a line for each fact."""
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):<{width}}  {format_value(value)}")


def format_value(value: Any) -> str:
    """A number in four digits; UAS by kind as a list of "kind UAS (symbols)"."""
    if isinstance(value, dict) and all(isinstance(one, dict) for one in value.values()):
        return ", ".join(f"{kind} {one['uas']:.2f} ({one['symbols']})" for kind, one in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def print_result(trials: Sequence[JsonRecord], folder: Path, as_json: bool) -> None:
    """The result of one run; of several trials their means, with the trials under `trials` in JSON."""
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
    kinds = {
        name: summarize_trials([result[name] for result in results]) for name in UAS_BREAKDOWNS if name in results[0]
    }
    facts = results[0] | means | kinds | {"run_folder": str(folder)}
    facts.pop("weights_sha256", None)
    facts.pop("note", None)  # of one trial
    if as_json:
        facts["weights_sha256"] = [result["weights_sha256"] for result in results]
        facts["trials"] = results
    print_dict(facts, as_json)


UAS_BREAKDOWNS = ("by_symbol", "by_arc_length")


def summarize_trials(trials: Sequence[dict[str, JsonDict]]) -> dict[str, JsonDict]:
    """UAS by kind of symbol, mean over trials that parsed the same pages."""
    return {kind: one | {"uas": mean([trial[kind]["uas"] for trial in trials])} for kind, one in trials[0].items()}


def mean(numbers: Sequence[float | None]) -> float | None:
    """Their mean; None if one of them is."""
    known = [number for number in numbers if number is not None]
    return sum(known) / len(known) if len(known) == len(numbers) else None


def print_table(table: Table, as_json: bool, facts: JsonDict | None = None) -> None:
    """Its rows as a JSON list, or the facts where they are more than that; for people a table with a closing line."""
    if as_json:
        print(json.dumps(facts or list(table.rows), ensure_ascii=False))
        return
    if table.columns:
        from rich.console import Console
        from rich.table import Table as Shown

        shown = Shown(title=table.title or None)
        for place, name in enumerate(table.columns):
            shown.add_column(name, justify="right" if place else "left", no_wrap=place > 0)
        for row in table.rows:
            shown.add_row(*(column(row) for column in table.columns.values()))
        Console(width=None if sys.stdout.isatty() else 120).print(shown)
    print(table.closing)


def print_expert_cards(cards: Mapping[str, ExpertCard], as_json: bool) -> None:
    """Experts' cards, by name."""
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
        self.title = title
        self.total = total
        self.told = 0
        self.bar = None
        if supports_progress_bar():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            text = TextColumn("{task.fields[text]}")
            console = Console(stderr=True)
            beside = sys.stdout.isatty()  # results that go into a file are not to be printed around the bar
            self.bar = Bar(*columns, text, console=console, redirect_stdout=beside)
            self.task = self.bar.add_task(title, total=total, text="")

    def __enter__(self) -> Self:
        if self.bar:
            self.bar.start()
        return self

    def report(self, done: int, text: str, last: bool = False) -> None:
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
