"""The same list for a terminal: whatever the board shows, a command prints."""

from __future__ import annotations

from collections.abc import Sequence

from aggrevated.files import Facts
from aggrevated.reports import Table, number, text


def table(rows: Sequence[Facts], left_out: Sequence[str]) -> Table:
    """A row for each run and for the trials of each folder; below it what is wrong with them."""
    columns = {
        "run": text("path"),
        "task": text("task"),
        "method": text("label"),
        "state": text("state"),
        "iterations": iterations,
        "best": number("best"),
        "expert": number("expert"),
        "to expert": beside_expert,
    }
    sentences = [f"{row['path']}: {words}" for row in rows for words in (*row["damage"], *row["warnings"])]
    count = sum("members" not in row for row in rows)
    unchecked = sum(not row.get("checked", True) for row in rows)
    left_out = [*left_out, f"the seals of {unchecked} runs were not checked to their end"] if unchecked else left_out
    closing = f"{'1 run' if count == 1 else f'{count} runs'}; --json prints their curves and settings, too"
    return Table(rows, columns, "\n".join([*sentences, *left_out, closing]))


def beside_expert(row: Facts) -> str:
    """The ratio in the test or, where a task has none, the gain."""
    if row["beside"] is None:
        return ""
    return f"{row['beside']:.3f} ×" if row["measure"] == "ratio" else f"{row['beside']:+,.3f}"


def iterations(row: Facts) -> str:
    """How many there were, of how many."""
    return f"{row['iterations']:,}" + (f" of {row['planned']:,}" if row["planned"] else "")
