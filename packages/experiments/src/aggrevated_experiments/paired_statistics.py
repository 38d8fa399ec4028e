"""Differences of trials that share their seeds."""

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.statistics import LEVEL, Estimate, estimate_standard_error


def estimate_paired_difference(values: Array, others: Array) -> Estimate:
    """The mean of the differences of trials that share their seeds, with its interval by Student's t.

    Five trials drawn again hold the mean in 84 of 100 cases and not in 95: too few for a claim of "better".
    """
    from scipy.special import stdtrit

    differences = np.asarray(values - others, float)
    mean = float(differences.mean())
    error = estimate_standard_error(differences)
    half = 0.0 if error is None else float(stdtrit(len(differences) - 1, 0.5 * (1 + LEVEL))) * error
    return Estimate(mean, mean - half, mean + half)
