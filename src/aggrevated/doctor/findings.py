"""Findings of the doctor: what a check says, and the estimates with intervals that it rests on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.statistics import compute_ranks
from aggrevated.storage import JsonDict

Verdict = Literal["fine", "warning", "fault", "unknown"]
VERDICTS: tuple[Verdict, ...] = ("fault", "warning", "unknown", "fine")  # the worst first


@dataclass(frozen=True)
class Finding:
    """One sentence with the numbers that it rests on, and what to do about it."""

    check: str
    verdict: Verdict
    sentence: str
    remedy: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> JsonDict:
        """For JSON."""
        numbers = {name: to_plain_number(value) for name, value in self.numbers.items()}
        said = {"check": self.check, "verdict": self.verdict, "sentence": self.sentence, "remedy": self.remedy}
        return said | {"numbers": numbers}


def to_plain_number(value: Any) -> Any:
    """A number of NumPy's as one of Python's; None for one that JSON has no word for."""
    if isinstance(value, list | tuple):
        return [to_plain_number(one) for one in value]
    value = getattr(value, "item", lambda: value)()
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


RESAMPLES = 600
TAIL = 0.5  # per cent on each side: there are a dozen checks, and a healthy patient shall pass them all


@dataclass(frozen=True)
class BootstrapEstimate:
    """A value and an interval that holds it in 99 of 100 cases."""

    value: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        return bool(np.isfinite([self.value, self.low, self.high]).all())

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"

    def to_list(self) -> list[float]:
        """[value, low, high], for JSON."""
        return [self.value, self.low, self.high]


def bootstrap_estimate(statistic: Callable[[Array], float], groups: Array) -> BootstrapEstimate:
    """A statistic of rows, given by their numbers, and the percentile interval when groups of rows are drawn again."""
    found = float(statistic(np.arange(len(groups))))
    rng = np.random.default_rng(0)
    _, which = np.unique(groups, return_inverse=True)
    order = np.argsort(which, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(which))[:-1])
    draws = (rng.integers(len(rows), size=len(rows)) for _ in range(RESAMPLES))
    values = np.array([statistic(np.concatenate([rows[group] for group in draw])) for draw in draws])
    values = values[np.isfinite(values)]
    if len(values) < RESAMPLES // 2:
        return BootstrapEstimate(found, np.nan, np.nan)
    low, high = np.percentile(values, [TAIL, 100 - TAIL])
    return BootstrapEstimate(found, float(low), float(high))


def compute_correlation(x: Array, y: Array) -> float:
    """Pearson's; NaN where one of them does not vary."""
    x = x - x.mean()
    y = y - y.mean()
    size = float(np.sqrt((x * x).sum() * (y * y).sum()))
    return float((x * y).sum()) / size if size > 0 else np.nan


def rank_correlation(x: Array, y: Array) -> float:
    """Spearman's."""
    return compute_correlation(compute_ranks(x), compute_ranks(y))


def estimate_mean(values: Array) -> BootstrapEstimate:
    """The mean of independent values."""
    return bootstrap_estimate(lambda rows: float(values[rows].mean()), np.arange(len(values)))


def center_by_group(values: Array, groups: Array) -> Array:
    """The values less the mean of their group."""
    _, which, counts = np.unique(groups, return_inverse=True, return_counts=True)
    means = np.bincount(which, weights=values) / counts
    return np.asarray(values - means[which])
