"""Findings of the doctor's checks, and the estimates with intervals that they are based on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.statistics import compute_ranks
from aggrevated.storage import JsonDict

Verdict = Literal["fine", "warning", "fault", "unknown"]
VERDICTS: tuple[Verdict, ...] = ("fault", "warning", "unknown", "fine")  # from worst to best


@dataclass(frozen=True)
class Finding:
    """Finding of one check.

    Attributes:
        check: Name of the check.
        verdict: "fine", "warning", "fault" or "unknown".
        sentence: What was found.
        remedy: What to do about it; "" if nothing.
        numbers: The numbers behind the verdict, by name.
    """

    check: str
    verdict: Verdict
    sentence: str
    remedy: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> JsonDict:
        """Return the finding for JSON."""
        numbers = {name: to_plain_number(value) for name, value in self.numbers.items()}
        texts = {"check": self.check, "verdict": self.verdict, "sentence": self.sentence, "remedy": self.remedy}
        return texts | {"numbers": numbers}


def to_plain_number(value: Any) -> Any:
    """Return a number of NumPy as a number of Python; None if it is not finite, since JSON has no such numbers."""
    if isinstance(value, list | tuple):
        return [to_plain_number(item) for item in value]
    value = getattr(value, "item", lambda: value)()
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


RESAMPLES = 600
TAIL_PERCENT = 0.5  # on each side: small, since a sound expert should pass all of a dozen checks


@dataclass(frozen=True)
class BootstrapEstimate:
    """An estimate with its 99 % bootstrap interval."""

    value: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        return bool(np.isfinite([self.value, self.low, self.high]).all())

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"

    def to_list(self) -> list[float]:
        """Return [value, low, high]."""
        return [self.value, self.low, self.high]


def bootstrap_estimate(statistic: Callable[[Array], float], groups: Array) -> BootstrapEstimate:
    """Return a statistic with its percentile interval over resamples of whole groups.

    Args:
        statistic: The statistic, a function of row numbers.
        groups: [n] group of each row, for example its episode.

    Returns:
        The estimate; its interval is NaN if most resamples give no finite value.
    """
    value = float(statistic(np.arange(len(groups))))
    rng = np.random.default_rng(0)
    _, group_index = np.unique(groups, return_inverse=True)
    order = np.argsort(group_index, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(group_index))[:-1])
    draws = (rng.integers(len(rows), size=len(rows)) for _ in range(RESAMPLES))
    values = np.array([statistic(np.concatenate([rows[group] for group in draw])) for draw in draws])
    values = values[np.isfinite(values)]
    if len(values) < RESAMPLES // 2:
        return BootstrapEstimate(value, np.nan, np.nan)
    low, high = np.percentile(values, [TAIL_PERCENT, 100 - TAIL_PERCENT])
    return BootstrapEstimate(value, float(low), float(high))


def compute_correlation(x: Array, y: Array) -> float:
    """Return Pearson's correlation; NaN if x or y does not vary."""
    x = x - x.mean()
    y = y - y.mean()
    norm = float(np.sqrt((x * x).sum() * (y * y).sum()))
    return float((x * y).sum()) / norm if norm > 0 else np.nan


def rank_correlation(x: Array, y: Array) -> float:
    """Return Spearman's rank correlation."""
    return compute_correlation(compute_ranks(x), compute_ranks(y))


def estimate_mean(values: Array) -> BootstrapEstimate:
    """Return the mean of independent values, with its interval."""
    return bootstrap_estimate(lambda rows: float(values[rows].mean()), np.arange(len(values)))


def center_by_group(values: Array, groups: Array) -> Array:
    """Return the values less the mean of their group."""
    _, group_index, counts = np.unique(groups, return_inverse=True, return_counts=True)
    means = np.bincount(group_index, weights=values) / counts
    return np.asarray(values - means[group_index])
