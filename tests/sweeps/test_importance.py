"""What a setting explains."""

import numpy as np
import pytest

from aggrevated.core.statistics import variance_explained
from aggrevated.sweeps.importance import importance, level_indices
from aggrevated.sweeps.search_space import Choices, Range
from aggrevated.sweeps.trials import Trial

X = Range("x", 0.0, 1.0)
KIND = Choices("kind", ("a", "b"))


def test_what_decides_explains_nearly_all_and_what_does_not_nearly_nothing() -> None:
    draws = np.random.default_rng(0).random((200, 2))
    trials = [Trial(i, {"x": x, "y": y}, (-abs(x - 0.5),)) for i, (x, y) in enumerate(draws)]
    assert importance(X, trials) > 0.8  # though it is best in the middle
    assert importance(Range("y", 0.0, 1.0), trials) < 0.05


def test_a_trial_that_failed_is_the_worst() -> None:
    good = [Trial(i, {"kind": "a"}, (float(i),)) for i in range(6)]
    bad = [Trial(6 + i, {"kind": "b"}, failed="diverged") for i in range(6)]
    assert importance(KIND, [*good, *bad]) > 0.8


def test_one_very_bad_trial_does_not_hide_the_others() -> None:
    trials = [Trial(i, {"kind": "ab"[i % 2]}, (float(i % 2) + i / 100,)) for i in range(12)]
    trials += [Trial(12, {"kind": "b"}, (-1e9,))]
    assert importance(KIND, trials) > 0.3
    levels = level_indices(KIND, trials)
    returns = np.array([trial.score for trial in trials])
    assert variance_explained(levels, returns) < 0.1  # as it would


def test_only_trials_count_in_which_it_has_an_effect() -> None:
    with_it = [Trial(i, {"x": i / 20}, (float(i),)) for i in range(20)]
    without = [Trial(20 + i, {}, (100.0 * (i % 2),)) for i in range(20)]
    assert importance(X, with_it + without) == importance(X, with_it) > 0.9


@pytest.mark.parametrize("count", [0, 1, 5])
def test_too_few_trials_say_nothing(count: int) -> None:
    assert importance(X, [Trial(i, {"x": i / 10}, (float(i),)) for i in range(count)]) is None
    assert importance(KIND, [Trial(i, {"kind": "a"}, (float(i),)) for i in range(20)]) is None


def test_a_range_is_cut_into_parts_of_as_many_trials() -> None:
    trials = [Trial(i, {"x": 10.0**-i}, (0.0,)) for i in range(20)]
    assert level_indices(X, trials).tolist() == [4] * 4 + [3] * 4 + [2] * 4 + [1] * 4 + [0] * 4
