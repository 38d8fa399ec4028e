"""Statistics over trials: interquartile means with bootstrap intervals, and ranks.

All bootstrap intervals use the same resamples, so that they are reproducible.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from aggrevated.core.arrays import Array

LEVEL = 0.95
RESAMPLES = 2000
NEVER = float("inf")  # time of an event that did not happen within the budget


class Estimate(NamedTuple):
    """Estimate with its 95 % interval."""

    value: float
    low: float
    high: float

    def to_fields(self, name: str) -> dict[str, float | None]:
        """Return NAME, NAME_low and NAME_high for JSON, with None for infinity."""
        numbers = {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}
        return {key: None if np.isinf(value) else value for key, value in numbers.items()}


def estimate(values: Array) -> Estimate:
    """Return the interquartile mean of one value per trial, with its bootstrap interval."""
    low, high = bootstrap_interval(values)
    return Estimate(float(compute_interquartile_mean(values)), float(low), float(high))


def estimate_median_time(times: Sequence[float | None]) -> Estimate:
    """Return the lower median of event times, where None (never) is later than all others."""
    sorted_times = np.sort([NEVER if time is None else float(time) for time in times])
    middle = (len(sorted_times) - 1) // 2
    medians = np.sort(np.sort(sorted_times[bootstrap_indices(len(sorted_times))], axis=1)[:, middle])
    tail = int(RESAMPLES * (1 - LEVEL) / 2)
    return Estimate(float(sorted_times[middle]), float(medians[tail]), float(medians[-1 - tail]))


def estimate_probability_of_improvement(values: Array, others: Array) -> Estimate:
    """Return P(X > Y) + P(X = Y)/2 over all pairs of trials (Agarwal et al., 2021)."""
    better = (values[:, None] > others) + 0.5 * (values[:, None] == others)
    rng = np.random.default_rng(0)
    rows = rng.integers(len(values), size=(RESAMPLES, len(values)))
    columns = rng.integers(len(others), size=(RESAMPLES, len(others)))
    resampled = np.array([better[np.ix_(row, column)].mean() for row, column in zip(rows, columns, strict=True)])
    return Estimate(float(better.mean()), *compute_percentile_interval(resampled))


def bootstrap_statistic(values: Array, statistic: Callable[[Array], Array]) -> Estimate:
    """Return a statistic of trials with its interval; it maps [resamples, trials] to [resamples]."""
    return Estimate(
        float(statistic(values[None])[0]),
        *compute_percentile_interval(statistic(values[bootstrap_indices(len(values))])),
    )


def bootstrap_indices(count: int) -> Array:
    """Return indices of trials drawn with replacement, [resamples, trials]."""
    return np.random.default_rng(0).integers(count, size=(RESAMPLES, count))


def compute_percentile_interval(resampled: Array) -> tuple[float, float]:
    """Return the percentile interval (low, high) of a statistic's values in the resamples."""
    low, high = np.percentile(resampled, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return float(low), float(high)


def compute_interquartile_mean(values: Array) -> Array:
    """Return the mean of the middle half along axis 0 (trials): robust, with less variance than a median."""
    cut = len(values) // 4
    return np.asarray(np.sort(values, axis=0)[cut : len(values) - cut].mean(axis=0))


def bootstrap_interval(values: Array) -> tuple[Array, Array]:
    """Return the percentile interval (low, high) of the interquartile mean over resampled trials (axis 0)."""
    means = np.stack([compute_interquartile_mean(values[draw]) for draw in bootstrap_indices(len(values))])
    low, high = np.percentile(means, [50 * (1 - LEVEL), 50 * (1 + LEVEL)], axis=0)
    return low, high


def estimate_standard_error(values: Array) -> float | None:
    """Return the standard error of the mean of independent values, or None for fewer than two."""
    return float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else None


def estimate_standard_error_of_ratio(parts: Array, wholes: Array) -> float | None:
    """Return the standard error of Σ parts / Σ wholes over independent pairs, to first order."""
    return estimate_standard_error((parts - parts.sum() / wholes.sum() * wholes) / wholes.mean())


def compute_ranks(values: Array) -> Array:
    """Return the rank of each value, from 1; equal values share the mean of their ranks."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[group], float)
