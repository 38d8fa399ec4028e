"""Statistics over trials: the interquartile mean with bootstrap intervals, and what explains their differences."""

import numpy as np

from aggrevated.arrays import Array


def interquartile_mean(values: Array) -> Array:
    """The mean of the middle half along axis 0 (the trials): robust as a median, and uses more of the data."""
    cut = len(values) // 4
    return np.asarray(np.sort(values, axis=0)[cut : len(values) - cut].mean(axis=0))


def bootstrap_interval(values: Array, level: float = 0.95, resamples: int = 2000, seed: int = 0) -> tuple[Array, Array]:
    """(low, high): the percentile interval of the interquartile mean when trials (axis 0) are drawn again."""
    draws = np.random.default_rng(seed).integers(len(values), size=(resamples, len(values)))
    means = np.stack([interquartile_mean(values[draw]) for draw in draws])
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(means, [tail, 100 - tail], axis=0)
    return low, high


def standard_error(values: Array) -> float | None:
    """Of the mean of independent values; None where one value tells nothing of it."""
    return float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else None


def standard_error_of_share(parts: Array, wholes: Array) -> float | None:
    """Of Σ parts / Σ wholes over independent pairs, to first order: of the mean of what each adds to its error."""
    return standard_error((parts - parts.sum() / wholes.sum() * wholes) / wholes.mean())


def ranks(values: Array) -> Array:
    """The place of each value among all of them, from 1; equal ones share the mean of their places."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[which], float)


def variance_explained(levels: Array, values: Array) -> float:
    """ε², the share of the values' variance that lies between levels; 0 is what levels drawn by chance explain.

    It is η² = 1 − within/total, less what so many levels explain of so few values anyway: 1 − (1 − η²)(n − 1)/(n − k).
    """
    _, which, counts = np.unique(levels, return_inverse=True, return_counts=True)
    n, k = len(values), len(counts)
    total = float(((values - values.mean()) ** 2).sum())
    if k < 2 or k >= n or total == 0.0:
        return 0.0
    means = np.bincount(which, weights=values) / counts
    within = float(((values - means[which]) ** 2).sum())
    return max(0.0, 1.0 - within / total * (n - 1) / (n - k))
