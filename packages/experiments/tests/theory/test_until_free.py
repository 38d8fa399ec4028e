"""Until play is free of regret: what that means, and what RL needs at least."""

import numpy as np
import pytest

from aggrevated_experiments.theory.time_to_zero_regret import (
    CONTENDERS,
    GAP,
    SHARE,
    episodes_to_zero_regret,
    random_policy_regret,
    rl_lower_bound,
)
from aggrevated_experiments.theory.tree import one_good_leaf


def by_a_loop(regrets: list[float], level: float) -> float:
    """The first episode from which on the newer half is always free."""
    found = np.inf
    for n in range(len(regrets), 0, -1):
        if np.mean(regrets[n // 2 : n]) > SHARE * level:
            break
        found = n
    return found


def test_it_is_a_plain_loop() -> None:
    generator = np.random.default_rng(0)
    regrets = (generator.random((60, 40)) < np.linspace(0.6, -0.1, 60)[:, None]).astype(float)
    found = episodes_to_zero_regret(iter(regrets), 0.8)
    np.testing.assert_array_equal(found, [by_a_loop(list(column), 0.8) for column in regrets.T])
    assert np.isfinite(found).any()


def test_luck_at_first_is_not_being_free_of_regret() -> None:
    assert episodes_to_zero_regret(np.array([[0.0], [1.0], [1.0], [0.0]]), 1.0)[0] == np.inf
    assert episodes_to_zero_regret(np.zeros((4, 1)), 1.0)[0] == 1


@pytest.mark.parametrize("one", [one for one in CONTENDERS if one.learns_from_expert], ids=lambda one: one.label)
def test_with_an_expert_a_deep_tree_is_learned_in_few_episodes(one) -> None:
    depth = 12
    trees = one_good_leaf(3, depth, GAP, 1)
    found = episodes_to_zero_regret(one.play(trees, one.episodes(depth), 1), random_policy_regret(depth))
    assert (found <= one.episodes(depth)).all() and found.max() < rl_lower_bound(depth)


def test_bandits_need_more_than_any_rl_must() -> None:
    depth = 6
    trials = 20
    trees = one_good_leaf(trials, depth, GAP, 0)
    for one in (one for one in CONTENDERS if not one.learns_from_expert):
        found = episodes_to_zero_regret(one.play(trees, one.episodes(depth), 0), random_policy_regret(depth))
        assert np.median(found) > rl_lower_bound(depth) > 2 ** (depth - 1)


def test_random_play_is_what_it_says() -> None:
    trees = one_good_leaf(1, 5, GAP, 0)
    assert random_policy_regret(5) == pytest.approx(trees.means.mean() - trees.means.min())
