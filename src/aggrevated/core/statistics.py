"""Statistics over trials: the interquartile mean with bootstrap intervals, and ranks.

One estimator for a number and for its interval, and the same resamples for all: intervals can be made again.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from aggrevated.core.arrays import Array

LEVEL = 0.95
RESAMPLES = 2000
NEVER = float("inf")  # when something happens that did not happen within the budget


class Estimate(NamedTuple):
    """A number and its 95 % interval."""

    value: float
    low: float
    high: float

    def to_fields(self, name: str) -> dict[str, float | None]:
        """NAME, NAME_low and NAME_high, for JSON; None for what is later than all that was measured."""
        numbers = {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}
        return {key: None if np.isinf(value) else value for key, value in numbers.items()}


def estimate(values: Array) -> Estimate:
    """The interquartile mean of a number of every trial."""
    low, high = bootstrap_interval(values)
    return Estimate(float(compute_interquartile_mean(values)), float(low), float(high))


def estimate_median_time(times: Sequence[float | None]) -> Estimate:
    """The median of when something happened; what never did (None) is later than all that did, and not left out.

    It is the lower of the two middle ones, and so one that was measured.
    """
    known = np.sort([NEVER if time is None else float(time) for time in times])
    middle = (len(known) - 1) // 2
    medians = np.sort(np.sort(known[bootstrap_indices(len(known))], axis=1)[:, middle])
    tail = int(RESAMPLES * (1 - LEVEL) / 2)
    return Estimate(float(known[middle]), float(medians[tail]), float(medians[-1 - tail]))


def estimate_probability_of_improvement(values: Array, others: Array) -> Estimate:
    """P(X > Y) + P(X = Y)/2 over all pairs of a trial of each, as Agarwal et al. 2021 have it."""
    better = (values[:, None] > others) + 0.5 * (values[:, None] == others)
    rng = np.random.default_rng(0)
    count = (RESAMPLES, len(values))
    rows = rng.integers(len(values), size=count)
    columns = rng.integers(len(others), size=(RESAMPLES, len(others)))
    drawn = np.array([better[np.ix_(row, column)].mean() for row, column in zip(rows, columns, strict=True)])
    return Estimate(float(better.mean()), *compute_percentile_interval(drawn))


def bootstrap_statistic(values: Array, statistic: Callable[[Array], Array]) -> Estimate:
    """A statistic of the rows of [resamples, trials], with its interval."""
    return Estimate(
        float(statistic(values[None])[0]),
        *compute_percentile_interval(statistic(values[bootstrap_indices(len(values))])),
    )


def bootstrap_indices(count: int) -> Array:
    """[resamples, trials]: which trials are drawn, with replacement."""
    return np.random.default_rng(0).integers(count, size=(RESAMPLES, count))


def compute_percentile_interval(drawn: Array) -> tuple[float, float]:
    """The percentile interval of what was found in the resamples."""
    low, high = np.percentile(drawn, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return float(low), float(high)


def compute_interquartile_mean(values: Array) -> Array:
    """The mean of the middle half along axis 0 (the trials): robust as a median, and uses more of the data."""
    cut = len(values) // 4
    return np.asarray(np.sort(values, axis=0)[cut : len(values) - cut].mean(axis=0))


def bootstrap_interval(values: Array) -> tuple[Array, Array]:
    """(low, high): the percentile interval of the interquartile mean when trials (axis 0) are drawn again."""
    means = np.stack([compute_interquartile_mean(values[draw]) for draw in bootstrap_indices(len(values))])
    low, high = np.percentile(means, [50 * (1 - LEVEL), 50 * (1 + LEVEL)], axis=0)
    return low, high


def estimate_standard_error(values: Array) -> float | None:
    """Of the mean of independent values; None where one value tells nothing of it."""
    return float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else None


def estimate_standard_error_of_ratio(parts: Array, wholes: Array) -> float | None:
    """Of Σ parts / Σ wholes over independent pairs, to first order: of the mean of what each adds to its error."""
    return estimate_standard_error((parts - parts.sum() / wholes.sum() * wholes) / wholes.mean())


def compute_ranks(values: Array) -> Array:
    """The place of each value among all of them, from 1; equal ones share the mean of their places."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[which], float)
