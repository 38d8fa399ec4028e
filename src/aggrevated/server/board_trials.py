"""Trials of one folder as one curve: their interquartile mean and its interval, computed where something changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from aggrevated.arrays import Array
from aggrevated.files import Facts
from aggrevated.server.following import MOST_POINTS
from aggrevated.server.following_folders import SEVERAL
from aggrevated.server.following_runs import Followed
from aggrevated.statistics import bootstrap_interval, interquartile_mean

MOST_KNOWN = 50_000  # intervals that are remembered
AT_ONCE = 32  # that are computed before somebody else has his turn: some 40 ms
Column = tuple[float, ...]  # the returns of the trials at one iteration


class Intervals:
    """95 % intervals of interquartile means, by what they are of. New ones are computed when there is time."""

    def __init__(self) -> None:
        self.known: dict[Column, tuple[float, float]] = {}
        self.wanted: dict[Column, None] = {}

    def of(self, column: Column) -> tuple[float, float] | None:
        """(low, high), or None before it is known."""
        if len(set(column)) == 1:
            return column[0], column[0]
        if column not in self.known:
            self.wanted[column] = None
        return self.known.get(column)

    def work(self) -> bool:
        """Compute some of those that are wanted; whether there were any."""
        columns = list(self.wanted)[:AT_ONCE]
        if len(self.known) > MOST_KNOWN:
            self.known.clear()
        of_length = defaultdict[int, list[Column]](list)
        for column in columns:
            of_length[len(column)].append(column)
        for some in of_length.values():
            low, high = bootstrap_interval(np.array(some).T)
            self.known |= {column: (float(a), float(b)) for column, a, b in zip(some, low, high, strict=True)}
        for column in columns:
            self.wanted.pop(column, None)
        return bool(columns)


def together(runs: dict[str, Followed]) -> dict[str, list[str]]:
    """The names of runs that are trials of the same, by the folder that they are in; of two or more only."""
    found = defaultdict[tuple[str, str], list[str]](list)
    for name, run in runs.items():
        if SEVERAL.fullmatch(Path(name).name) and run.config.facts is not None:
            found[str(Path(name).parent), run.kind].append(name)
    folders = [folder for folder, _ in found]
    return {
        folder: names for (folder, _), names in found.items() if len(names) > 1 and folders.count(folder) == 1
    }  # fmt: skip


def curve(runs: Sequence[Followed], intervals: Intervals) -> list[list[float | None]]:
    """Rows [iteration, trials, mean, low, high, steps, queries, seconds], at every 2ᵏ-th iteration and the newest.

    A trial that has ended stays at its last value; one that has not come so far is left out there, and `trials` says
    of how many the mean is.
    """
    tables = [table(run) for run in runs]
    begun = [(one, run.outcome is not None) for one, run in zip(tables, runs, strict=True) if len(one)]
    if not begun:
        return []
    rows = list[list[float | None]]()
    grid = iterations(int(max(one[-1, 0] for one, _ in begun)))
    places = [np.searchsorted(one[:, 0], grid, side="right") - 1 for one, _ in begun]
    for column, iteration in enumerate(grid):
        there = np.array([
            one[place[column]] for (one, ended), place in zip(begun, places, strict=True)
            if place[column] >= 0 and (ended or one[-1, 0] >= iteration)
        ])  # fmt: skip
        if len(there):
            rows.append([int(iteration), len(there), *summary(there, intervals)])
    return rows


def summary(there: Array, intervals: Intervals) -> list[float | None]:
    """[mean, low, high, steps, queries, seconds] of rows of points, [trials, 5]."""
    low, high = intervals.of(tuple(there[:, 1].tolist())) or (None, None)
    return [float(interquartile_mean(there[:, 1])), low, high, *there[:, 2:].mean(axis=0).tolist()]


def table(run: Followed) -> Array:
    """[points, 5]: iteration, best return, steps, queries, seconds; without points that lack one of them."""
    rows = [(p.iteration, p.best, p.steps, p.queries, p.seconds) for p in run.points if None not in p]
    return np.array(rows, float).reshape(-1, 5)


def iterations(last: int) -> Array:
    """Up to half as many as a curve has points, the last among them; more iterations do not move those before."""
    stride = 1
    while last // stride > MOST_POINTS // 2:
        stride *= 2
    return np.array(sorted({1, *range(stride, last + 1, stride), last}))


def row_of(folder: str, rows: Sequence[Facts], points: list[list[float | None]]) -> Facts:
    """What the list says of trials: what they have in common, and their mean."""
    states = {row["state"] for row in rows}
    state = next(one for one in ("running", "stopped", "waiting", "ended") if one in states)
    beside, experts = ([row[name] for row in rows if row[name] is not None] for name in ("beside", "expert"))
    last = points[-1] if points else [0, 0, *[None] * 6]
    common = ("label", "task", "method", "update", "policy", "planned", "episodes", "world", "measure", "moves")
    return {name: rows[0][name] for name in common} | {
        "path": folder,
        "state": state,
        "ended": sum(row["state"] == "ended" for row in rows),
        "iterations": last[0],
        "best": last[2],
        "low": last[3],
        "high": last[4],
        "expert": mean(experts),
        "beside": mean(beside) if len(beside) == len(rows) else None,
        "warnings": [f"{Path(row['path']).name}: {words}" for row in rows for words in row["warnings"]],
        "damage": [sentence for row in rows for sentence in row["damage"]],
        "curve": points,
    }


def mean(values: Sequence[float]) -> float | None:
    """None of nothing."""
    return sum(values) / len(values) if values else None
