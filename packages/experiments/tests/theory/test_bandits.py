"""Index policies on bandits with predictable pulls."""

import numpy as np
import pytest

from aggrevated_experiments.theory.bandits import compute_moss_bonus, compute_ucb1_bonus, pull_arms, run_index_policy


def test_ucb1_and_moss_widths_match_hand_computed_values():
    np.testing.assert_allclose(
        compute_ucb1_bonus(np.array([1.0, 2.0, 8.0]), 7, 100), np.sqrt(2 * np.log(100) / np.array([1, 2, 8]))
    )
    np.testing.assert_allclose(
        compute_moss_bonus(np.array([2.0, 4.0, 16.0]), 4, 64), [np.sqrt(np.log(8) / 2), np.sqrt(np.log(4)) / 2, 0]
    )
    assert compute_moss_bonus(np.array([30.0]), 4, 64)[0] == 0.0  # more than N/L pulls: certain


@pytest.mark.parametrize("bonus", [compute_ucb1_bonus, compute_moss_bonus])
def test_index_policy_pulls_every_arm_once_first(bonus):
    pulls = []

    def record_pulls(often, arms, rounds):
        pulls.append(often)
        return bonus(often, arms, rounds)

    run_index_policy(np.random.default_rng(0).random((5, 16)), 40, record_pulls, "noted", seed=0)
    assert np.array_equal(pulls[:16], np.ones((16, 5)))
    assert (pulls[16] == 2).all()


def test_ucb1_on_two_arms_matches_hand_computed_curve():
    """Certain costs 0 and 1, N = 10, width 2.146/√n: two pulls of the expensive arm.

    Each arm is pulled once, then the cheap arm until its 4th pull (index −1.073, the other's is −1.146), then the
    expensive one (−0.517), and the cheap one to the end.
    """
    curve = run_index_policy(np.array([[0.0, 1.0]] * 20), 10, compute_ucb1_bonus, "UCB1", seed=0).curve
    np.testing.assert_array_equal(curve[:, 1:], np.broadcast_to([1, 1, 1, 1, 2, 2, 2, 2, 2], (20, 9)))
    assert set(curve[:, 0]) == {0.0, 1.0}  # the first arm is random


def test_index_policy_without_bonus_follows_the_leader():
    """Certain costs: each arm once, then always the best."""
    means = np.array([[1.0, 0.0, 1.0, 1.0]])
    assert run_index_policy(means, 30, compute_ucb1_bonus, "greedy", seed=0, scale=0.0).curve[0, -1] == 3


def test_index_policy_regret_is_zero_for_equal_arms_and_never_negative():
    assert (run_index_policy(np.full((3, 8), 0.3), 50, compute_moss_bonus, "MOSS", seed=0).curve == 0).all()
    regret = run_index_policy(np.random.default_rng(0).random((3, 8)), 50, compute_moss_bonus, "MOSS", seed=0)
    assert (np.diff(regret.curve, axis=1) >= 0).all() and not regret.learns_from_expert


@pytest.mark.parametrize(("bonus", "scale"), [(compute_ucb1_bonus, 0.25), (compute_moss_bonus, 0.5)])
def test_index_policy_learns_the_best_arm(bonus, scale):
    """The regret is far below that of random pulls, and the best arm is pulled most at the end."""
    means = np.full((20, 8), 0.6)
    means[:, 3] = 0.2
    curve = run_index_policy(means, 1000, bonus, "learns", seed=1, scale=scale).curve
    assert curve[:, -1].mean() < 0.1 * 1000 * 0.4 * 7 / 8
    assert (curve[:, -1] - curve[:, -50]).mean() < 0.02 * 250 * 0.4


def test_index_policy_trials_are_independent_and_deterministic_per_seed():
    means = np.tile(np.linspace(0.1, 0.9, 8), (6, 1))
    first, again = (run_index_policy(means, 100, compute_moss_bonus, "MOSS", seed=3).curve for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert len(np.unique(first[:, -1])) > 3


def test_pull_arms_rounds_add_up_to_the_regret_curve():
    means = np.random.default_rng(1).random((4, 8))
    rounds = list(pull_arms(means, 50, compute_ucb1_bonus, seed=2, scale=0.25))
    lost = np.cumsum([one.regret for one in rounds], axis=0).T
    np.testing.assert_array_equal(
        lost, run_index_policy(means, 50, compute_ucb1_bonus, "UCB1", seed=2, scale=0.25).curve
    )
    k = np.arange(4)
    for one in rounds:
        np.testing.assert_array_equal(one.regret, means[k, one.arm] - means.min(axis=1))
        assert one.cost.dtype == bool
