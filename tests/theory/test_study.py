"""What is made of regret: curves, exponents, facts, and the four experiments' bookkeeping."""

import json

import numpy as np
import pytest

from aggrevated.theory import experiments
from aggrevated.theory.study import POINTS, Growth, Recorder, Regret, Study, slope, when


def test_the_exponent_of_a_power_law_is_its_power():
    x = np.array([10.0, 100.0, 300.0, 5000.0])
    assert Growth("N", "law", x, 7 * x**0.37).exponent == pytest.approx(0.37, abs=1e-12)
    assert np.isfinite(Growth("N", "nothing lost", x, np.zeros(4)).exponent)
    assert slope(np.array([0.0, 1, 2]), np.array([0.0, 1, 5])) == pytest.approx(2.5)


@pytest.mark.parametrize("episodes", [1, 7, 200, 201, 12345])
def test_a_curve_is_recorded_from_the_first_episode_to_the_last(episodes):
    at = when(episodes)
    assert at[0] == 1 and at[-1] == episodes and len(at) == min(episodes, POINTS)
    assert len(set(np.diff(at))) <= 2  # evenly, up to rounding


def test_the_recorder_adds_up():
    recorder = Recorder(2, 1000)
    for n in range(1, 1001):
        recorder.add(n, np.array([1.0, n]))
    regret = recorder.regret("sum", learns_from_expert=False)
    at = when(1000)
    np.testing.assert_array_equal(regret.curve, [at, at * (at + 1) / 2])
    assert regret.label == "sum" and not regret.learns_from_expert


def small_study():
    regrets = Regret("EG", np.array([[1.0, 2.0, 3.0], [1.0, 3.0, 5.0]])), Regret("UCB1", np.full((2, 3), 50.0), False)
    growths = (
        Growth("N", "EG", np.array([1.0, 4.0]), np.array([2.0, 4.0])),
        Growth("S", "EG", np.array([1.0, 2.0]), np.array([3.0, 3.0])),
    )
    bound, episodes = np.array([2.0, 4.0, 10.0]), np.array([1, 2, 3])
    return Study("tree", "A tree", {"depth": 3}, episodes, regrets, bound, "bound", ("EG",), growths, more={"extra": 1})


def test_the_facts_by_hand():
    """The largest ratio is 3/4, at the second point of the second trial; UCB1 is not what the bound is for."""
    facts = small_study().facts()
    assert facts == {
        "experiment": "tree", "depth": 3, "regret": {"EG": 4.0, "UCB1": 50.0},
        "exponents": {"N": {"EG": 0.5}, "S": {"EG": 0.0}}, "bound": 10.0, "largest_ratio_to_bound": 0.75, "extra": 1,
    }  # fmt: skip
    assert json.loads(json.dumps(facts)) == facts


def test_a_table_has_a_row_for_each_algorithm():
    eg, ucb = experiments.table(small_study())
    assert (eg.regret, eg.least, eg.most) == (4.0, 3.0, 5.0)
    assert (eg.exponent_n, eg.exponent_s) == pytest.approx((0.5, 0.0), abs=1e-12)
    assert ucb.algorithm == "UCB1" and ucb.exponent_n is None and ucb.exponent_s is None


def test_growth_takes_the_mean_at_the_end_and_leaves_single_points_out():
    runs = {
        10: [Regret("a", np.array([[1.0, 2.0], [1.0, 4.0]]))],
        40: [Regret("a", np.array([[9.0, 6.0]])), Regret("b", np.ones((1, 1)))],
    }
    (only,) = experiments.growth("N", runs)
    assert only.label == "a" and only.exponent == pytest.approx(0.5)
    np.testing.assert_array_equal(only.regret, [3.0, 6.0])
    np.testing.assert_array_equal(only.x, [10.0, 40.0])


def test_halvings():
    assert experiments.halvings(1600, least=100) == [100, 200, 400, 800]
    assert experiments.halvings(1600, least=300) == [400, 800]
    assert experiments.halvings(1600, least=100, times=2) == [400, 800]


def test_the_hard_gap_of_the_tree_by_hand():
    assert experiments.hard_gap(5, 1600) == pytest.approx(0.05)
    assert experiments.hard_gap(9, 16) == 0.49


def test_the_slowest_of_all_the_random_trees():
    """With two uniform leaves half of the first policies are wrong, by 1/3 on average: a regret of 1/6."""
    assert experiments.slowest(2, seed=0) == (1, pytest.approx(1 / 6, abs=4 * 0.23 / np.sqrt(1000)))
    assert experiments.slowest(4, seed=0)[0] == 3
