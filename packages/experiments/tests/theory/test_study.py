"""Studies of regret: curves, exponents, facts, and the runs of the four experiments."""

import json
from dataclasses import replace

import numpy as np
import pytest

from aggrevated_experiments.theory import experiments
from aggrevated_experiments.theory.study import (
    MAX_POINTS,
    Growth,
    Recorder,
    Regret,
    Study,
    fit_slope,
    list_recorded_episodes,
)
from aggrevated_experiments.theory.tuning import (
    TUNING_SEED_OFFSET,
    Tunable,
    choose_setting,
    list_plotted_settings,
    tune,
)


def test_growth_exponent_of_a_power_law_is_its_power():
    x = np.array([10.0, 100.0, 300.0, 5000.0])
    assert Growth("N", "law", x, 7 * x**0.37).exponent == pytest.approx(0.37, abs=1e-12)
    assert np.isfinite(Growth("N", "nothing lost", x, np.zeros(4)).exponent)
    assert fit_slope(np.array([0.0, 1, 2]), np.array([0.0, 1, 5])) == pytest.approx(2.5)


@pytest.mark.parametrize("episodes", [1, 7, 200, 201, 12345])
def test_recorded_episodes_run_evenly_from_first_to_last(episodes):
    at = list_recorded_episodes(episodes)
    assert at[0] == 1 and at[-1] == episodes and len(at) == min(episodes, MAX_POINTS)
    assert len(set(np.diff(at))) <= 2  # evenly, up to rounding


def test_recorder_accumulates_regret():
    recorder = Recorder(2, 1000)
    for n in range(1, 1001):
        recorder.add(n, np.array([1.0, n]))
    regret = recorder.make_regret("sum", learns_from_expert=False)
    at = list_recorded_episodes(1000)
    np.testing.assert_array_equal(regret.curve, [at, at * (at + 1) / 2])
    assert regret.label == "sum" and not regret.learns_from_expert


def small_study():
    regrets = Regret("EG", np.array([[1.0, 2.0, 3.0], [1.0, 3.0, 5.0]])), Regret("UCB1", np.full((2, 3), 50.0), False)
    growths = (
        Growth("N", "EG", np.array([1.0, 4.0]), np.array([2.0, 4.0])),
        Growth("S", "EG", np.array([1.0, 2.0]), np.array([3.0, 3.0])),
    )
    bound = np.array([2.0, 4.0, 10.0])
    episodes = np.array([1, 2, 3])
    return Study("tree", "A tree", {"depth": 3}, episodes, regrets, bound, "bound", ("EG",), growths, more={"extra": 1})


def test_study_to_dict_matches_hand_computed_values():
    """The largest ratio is 3/4, at the second point of the second trial; the bound does not apply to UCB1."""
    facts = small_study().to_dict()
    assert facts == {
        "experiment": "tree", "depth": 3, "regret": {"EG": 4.0, "UCB1": 50.0},
        "exponents": {"N": {"EG": 0.5}, "S": {"EG": 0.0}}, "bound": 10.0, "largest_ratio_to_bound": 0.75, "extra": 1,
        "regret_interval": {"EG": [3.0, 5.0], "UCB1": [50.0, 50.0]},
        "regret_of_trials": {"EG": [3.0, 5.0], "UCB1": [50.0, 50.0]},
        "curves": {"episodes": [1, 2, 3], "bound": [2.0, 4.0, 10.0], "EG": [1.0, 2.5, 4.0], "UCB1": [50.0] * 3},
        "comparisons": [], "tuned": {}, "tuning": [],
    }  # fmt: skip
    assert json.loads(json.dumps(facts)) == facts


def test_study_comparison_names_a_leader_only_if_the_interval_excludes_zero():
    found = small_study().compare("EG", "UCB1")
    assert found == {
        "first": "EG", "second": "UCB1", "difference": -46.0, "difference_low": -47.0, "difference_high": -45.0,
        "ahead": "EG",
    }  # fmt: skip
    assert small_study().compare("UCB1", "EG")["ahead"] == "EG"
    assert small_study().compare("EG", "EG")["ahead"] is None


def test_tune_selects_the_least_mean_regret_on_other_instances():
    calls = []

    def run(seed, setting):
        calls.append((seed, setting))
        return Regret("", np.array([[0.0, abs(setting - 10.0)], [0.0, 2.0]]))

    tunable = Tunable("EG", "step ×", (1.0, 10.0, 100.0, 1000.0), run)
    tried = tune(tunable, seed=7)
    assert calls == [(7 + TUNING_SEED_OFFSET, setting) for setting in (1.0, 10.0, 100.0, 1000.0)]
    assert [one.chosen for one in tried] == [False, True, False, False] and tried[1].trials == (0.0, 2.0)
    assert [one.setting for one in tried] == ["step × 1", "step × 10", "step × 100", "step × 1000"]
    assert tried[0].regret == 5.5 and tried[1].label == "EG, step × 10" and tried[0].label == "EG"
    assert list_plotted_settings(tunable, tried) == [1.0, 10.0]
    assert list_plotted_settings(replace(tunable, has_theorem=False), tried) == [10.0]
    assert choose_setting(tried, "EG") is tried[1]
    with pytest.raises(AssertionError, match="as many tries"):
        Tunable("EG", "step ×", (1.0, 10.0), run)


def test_experiments_table_has_a_row_per_algorithm():
    eg, ucb = experiments.make_regret_rows(small_study())
    assert (eg.regret, eg.low, eg.high, eg.least, eg.most) == (4.0, 3.0, 5.0, 3.0, 5.0)
    assert (eg.exponent_n, eg.exponent_s) == pytest.approx((0.5, 0.0), abs=1e-12)
    assert ucb.algorithm == "UCB1" and ucb.exponent_n is None and ucb.exponent_s is None


def test_experiments_growth_uses_final_means_and_drops_single_points():
    runs = {
        10: [Regret("a", np.array([[1.0, 2.0], [1.0, 4.0]]))],
        40: [Regret("a", np.array([[9.0, 6.0]])), Regret("b", np.ones((1, 1)))],
    }
    (only,) = experiments.compute_growths("N", runs)
    assert only.label == "a" and only.exponent == pytest.approx(0.5)
    np.testing.assert_array_equal(only.regret, [3.0, 6.0])
    np.testing.assert_array_equal(only.x, [10.0, 40.0])


def test_halvings_lists_halved_episode_counts():
    assert experiments.list_halvings(1600, least=100) == [100, 200, 400, 800]
    assert experiments.list_halvings(1600, least=300) == [400, 800]
    assert experiments.list_halvings(1600, least=100, times=2) == [400, 800]


def test_tree_hard_gap_matches_hand_computed_values():
    assert experiments.compute_hard_gap(5, 1600) == pytest.approx(0.05)
    assert experiments.compute_hard_gap(9, 16) == 0.49


def test_slowest_finds_the_slowest_random_tree():
    """With two uniform leaves half of the first policies are wrong, by 1/3 on average: a regret of 1/6."""
    assert experiments.run_leader_on_random_trees(2, seed=0) == (1, pytest.approx(1 / 6, abs=4 * 0.23 / np.sqrt(1000)))
    assert experiments.run_leader_on_random_trees(4, seed=0)[0] == 3
