"""Episodes to zero regret: the definition, and the least that RL needs."""

import numpy as np
import pytest

from aggrevated_experiments.theory.time_to_zero_regret import (
    CONTENDERS,
    GAP,
    ZERO_REGRET_SHARE,
    compute_random_policy_regret,
    compute_rl_lower_bound,
    count_episodes_to_zero_regret,
)
from aggrevated_experiments.theory.tree import make_hard_trees


def loop_to_zero_regret(regrets: list[float], level: float) -> float:
    """Return the first episode from which on the newer half of the episodes has zero regret."""
    found = np.inf
    for n in range(len(regrets), 0, -1):
        if np.mean(regrets[n // 2 : n]) > ZERO_REGRET_SHARE * level:
            break
        found = n
    return found


def test_episodes_to_zero_regret_equals_plain_loop() -> None:
    generator = np.random.default_rng(0)
    regrets = (generator.random((60, 40)) < np.linspace(0.6, -0.1, 60)[:, None]).astype(float)
    found = count_episodes_to_zero_regret(iter(regrets), 0.8)
    np.testing.assert_array_equal(found, [loop_to_zero_regret(list(column), 0.8) for column in regrets.T])
    assert np.isfinite(found).any()


def test_episodes_to_zero_regret_ignores_early_zero_regret() -> None:
    assert count_episodes_to_zero_regret(np.array([[0.0], [1.0], [1.0], [0.0]]), 1.0)[0] == np.inf
    assert count_episodes_to_zero_regret(np.zeros((4, 1)), 1.0)[0] == 1


@pytest.mark.parametrize("one", [one for one in CONTENDERS if one.learns_from_expert], ids=lambda one: one.label)
def test_contenders_with_expert_learn_a_deep_tree_in_few_episodes(one) -> None:
    depth = 12
    trees = make_hard_trees(3, depth, GAP, 1)
    found = count_episodes_to_zero_regret(one.play(trees, one.episodes(depth), 1), compute_random_policy_regret(depth))
    assert (found <= one.episodes(depth)).all() and found.max() < compute_rl_lower_bound(depth)


def test_bandits_need_more_episodes_than_the_rl_lower_bound() -> None:
    depth = 6
    trials = 20
    trees = make_hard_trees(trials, depth, GAP, 0)
    for one in (one for one in CONTENDERS if not one.learns_from_expert):
        found = count_episodes_to_zero_regret(
            one.play(trees, one.episodes(depth), 0), compute_random_policy_regret(depth)
        )
        assert np.median(found) > compute_rl_lower_bound(depth) > 2 ** (depth - 1)


def test_random_policy_regret_equals_mean_minus_best_leaf() -> None:
    trees = make_hard_trees(1, 5, GAP, 0)
    assert compute_random_policy_regret(5) == pytest.approx(trees.means.mean() - trees.means.min())
