"""Steps and queries until the expert's return was reached, on learning curves computed by hand."""

from aggrevated.reports.comparison import find_steps_to_reach, make_reach_row, mean_best_return

COURSE = {
    "simulator_steps": [0.0, 10.0, 40.0],
    "episodes": [0.0, 1.0, 4.0],
    "oracle_queries": [0.0, 5.0, 20.0],
    "cpu_seconds": [0.0, 0.1, 0.4],
    "iteration": [0.0, 1.0, 4.0],
    "best_return": [1.0, 3.0, 5.0],
}


def test_steps_to_reach_finds_the_first_policy_at_the_level() -> None:
    assert find_steps_to_reach(COURSE, 2.0)["simulator_steps"] == 10.0
    assert find_steps_to_reach(COURSE, 5.0) == {
        "simulator_steps": 40.0,
        "episodes": 4.0,
        "oracle_queries": 20.0,
        "cpu_seconds": 0.4,
    }
    assert find_steps_to_reach(COURSE, 0.5)["simulator_steps"] == 0.0
    assert find_steps_to_reach(COURSE, 5.1)["simulator_steps"] is None


def test_mean_best_return_averages_over_the_whole_budget() -> None:
    assert mean_best_return(COURSE, 50.0, before=0.0) == (10 * 1 + 30 * 3 + 10 * 5) / 50
    assert (
        mean_best_return(COURSE, 20.0, before=0.0) == (10 * 1 + 10 * 3) / 20
    )  # later steps than the budget do not count
    late = COURSE | {
        "simulator_steps": [4.0, 10.0, 40.0]
    }  # the policy of a start that took 4 steps does not exist before them
    assert mean_best_return(late, 50.0, before=0.5) == (4 * 0.5 + 6 * 1 + 30 * 3 + 10 * 5) / 50


def test_reach_row_has_medians_and_counts_of_trials() -> None:
    trials = [find_steps_to_reach(COURSE, 2.0), find_steps_to_reach(COURSE, 5.0), find_steps_to_reach(COURSE, 9.0)]
    row = make_reach_row("a", {"expert": trials, "more": [find_steps_to_reach(COURSE, 9.0)] * 3})
    assert (row["expert"], row["expert_reached"], row["expert_episodes"]) == (40.0, 2, 4.0)
    assert (row["more"], row["more_reached"], row["trials"]) == (None, 0, 3)
