"""Statistics over trials: the interquartile mean, and bootstrap intervals of it."""

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
