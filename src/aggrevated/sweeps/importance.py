"""How much of the differences between trials a setting explains by itself."""

from collections.abc import Sequence

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.statistics import ranks, variance_explained
from aggrevated.sweeps.search_space import Choices, Variation
from aggrevated.sweeps.trials import Trial

PARTS = 5  # of a range, each with as many trials
FEWEST = 3  # trials in each of them


def importance(one: Variation, trials: Sequence[Trial]) -> float | None:
    """ε² of the trials' ranks between choices, or between fifths of a range; None where there are too few trials.

    It looks at the trials in which the setting has an effect. Trials that failed are the worst. By ranks, one very bad
    trial does not count for more than another. Settings that matter only together do not show.
    """
    own = [trial for trial in trials if trial.ended and one.name in trial.settings]
    scores = np.array([-np.inf if trial.score is None else trial.score for trial in own])
    levels = level_indices(one, own)
    if len(np.unique(levels)) < 2 or len(own) < FEWEST * 2:
        return None
    return variance_explained(levels, ranks(scores))


def level_indices(one: Variation, trials: Sequence[Trial]) -> Array:
    """Which choice, or which part of the range, each trial has."""
    values = [trial.settings[one.name] for trial in trials]
    if isinstance(one, Choices):
        return np.array([one.values.index(value) for value in values], int)
    parts = min(PARTS, len(values) // FEWEST)
    return np.floor((ranks(np.array(values, float)) - 0.5) / max(len(values), 1) * max(parts, 1)).astype(int)
