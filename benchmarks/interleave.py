"""Interleaved timing: every contender gets one slice per round, so slow minutes of the machine affect all of them.

Import this before NumPy and torch: it sets them to one thread.
"""

import argparse
import gc
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from rich.console import Console
from rich.table import Table

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

PACKAGES = (
    "aggrevated",
    "numpy",
    "torch",
    "gymnasium",
    "stable-baselines3",
    "sb3-contrib",
    "numba",
    "mujoco",
    "envpool",
)


@dataclass(frozen=True)
class Row:
    """One line of the table: a quantity over the rounds."""

    case: str
    name: str
    unit: str
    median: float
    lower: float  # first quartile
    upper: float  # third quartile


@dataclass(frozen=True)
class Target:
    """A target and its measurement."""

    case: str
    what: str
    asked: str
    measured: float
    met: bool


def interleave(contenders: Mapping[str, Callable[[], int]], rounds: int, seconds: float) -> dict[str, list[float]]:
    """Return seconds per unit of work, one number per round; a contender works and returns its number of units.

    Each slice calls a contender until `seconds` have passed. The order rotates by one from round to round.
    """
    for work in contenders.values():  # a first call compiles, allocates and fills caches
        work()
    names = list(contenders)
    spent: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            spent[name].append(one_slice(contenders[name], seconds))
    return spent


def one_slice(work: Callable[[], int], seconds: float) -> float:
    """Return seconds per unit over at least `seconds` of work."""
    gc.collect()
    units = 0
    began = perf_counter()
    while (elapsed := perf_counter() - began) < seconds or not units:
        units += work()
    return elapsed / units


def ratios(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """Return the ratios round by round, with both sides measured within the same few seconds."""
    return [a / b for a, b in zip(numerators, denominators, strict=True)]


def summary(case: str, name: str, unit: str, values: Sequence[float]) -> Row:
    """Return the median and quartiles of `values`."""
    lower, _, upper = quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return Row(case, name, unit, median(values), lower, upper)


def at_least(case: str, what: str, least: float, measured: Sequence[float]) -> Target:
    """Return a lower target for the median over the rounds."""
    return Target(case, what, f"≥ {least:g}", median(measured), median(measured) >= least)


def at_most(case: str, what: str, most: float, measured: Sequence[float]) -> Target:
    """Return an upper target for the median over the rounds."""
    return Target(case, what, f"≤ {most:g}", median(measured), median(measured) <= most)


def arguments(description: str, rounds: int, seconds: float | None = None) -> argparse.Namespace:
    """Return the parsed options that all benchmarks share."""
    return parser(description, rounds, seconds).parse_args()


def parser(description: str, rounds: int, seconds: float | None = None) -> argparse.ArgumentParser:
    """Return a parser of the options that all benchmarks share; without `seconds` where a slice is one process."""
    shared = argparse.ArgumentParser(description=description)
    shared.add_argument("--rounds", type=int, default=rounds, help="slices per contender (default: %(default)s)")
    if seconds is not None:
        shared.add_argument("--seconds", type=float, default=seconds, help="length of a slice (default: %(default)s)")
    shared.add_argument("--json", type=Path, help="also write the results to this file")
    return shared


def report(title: str, rows: Sequence[Row], targets: Sequence[Target], options: argparse.Namespace) -> None:
    """Print the tables, and write them with versions and machine to the `--json` file."""
    table = Table("case", "contender", "unit", "median", "quartiles", title=title)
    for row in rows:
        table.add_row(row.case, row.name, row.unit, number(row.median), f"{number(row.lower)} – {number(row.upper)}")
    goals = Table("case", "target", "asked", "measured", "", title="Targets")
    for t in targets:
        goals.add_row(t.case, t.what, t.asked, number(t.measured), "met" if t.met else "missed")
    console = Console(width=max(Console().width, 110))
    for each in (table, goals):
        console.print(each)
    if options.json:
        record = {
            "benchmark": title,
            "options": {name: value for name, value in vars(options).items() if name != "json"},
            "machine": {"cpus": os.cpu_count(), "python": platform.python_version()},
            "versions": {name: found for name in PACKAGES if (found := installed(name))},
            "rows": [asdict(row) for row in rows],
            "targets": [asdict(target) for target in targets],
        }
        written = json.dumps(record, indent=2, ensure_ascii=False, default=str)  # options may be paths
        options.json.write_text(written + "\n", encoding="utf-8")


def number(value: float) -> str:
    """Return three significant digits, with separators for large numbers."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def installed(package: str) -> str | None:
    """Return the version of a package, or None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
