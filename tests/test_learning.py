"""One short run for each task, tested on new episodes; `aggrevated reproduce` does the full runs."""

from pathlib import Path

import pytest

from aggrevated.config.resolver import resolve_config
from aggrevated.training.run_folder import Run
from helpers.small_runs import fit_run


@pytest.mark.parametrize(
    ("task", "update", "iterations", "ratio"),
    [
        ("cartpole", "natural", 45, 1.0),
        ("cartpole", "regular", 60, 1.0),
        ("acrobot", "natural", 25, 1.0),
        ("acrobot", "regular", 15, 1.0),
        ("acrobot-partial", "natural", 15, 0.8),  # the ratio of a random policy is 0
    ],
)
def test_short_run_reaches_expert_return(tmp_path: Path, task: str, update: str, iterations: int, ratio: float) -> None:
    config = resolve_config(task, "aggrevated", update=update, iterations=iterations, seed=17)
    result = fit_run(Run.create(tmp_path / "run", config))
    assert result.more["ratio"] > ratio
    assert result.initial_return < result.best_return


def test_reinforce_does_not_reach_goal_of_acrobot(tmp_path: Path) -> None:
    """As in the paper: a random policy gets no reward within 200 steps, so its gradient is zero."""
    config = resolve_config("acrobot", "reinforce", iterations=5, seed=17)
    result = fit_run(Run.create(tmp_path / "run", config))
    assert result.more["test_return"] == -200
