"""Tuning of rows: three values on separate seeds, and the one with the largest area over the budget."""

from pathlib import Path

from aggrevated.config.resolver import resolve_config
from aggrevated.tasks import ComparisonProtocol, FigureRow
from aggrevated_experiments.row_tuning import Tuning, compute_area
from helpers.small_runs import fit_run

SMALL = {"trajectories": 2, "validation_episodes": 4, "test_episodes": 4, "update": "regular", "budget": 900}


def test_row_tuning_selects_the_best_value_and_reports_all(tmp_path: Path) -> None:
    row = FigureRow("aggrevated", "regular", tuned_by="learning_rate")
    config = resolve_config("cartpole", **SMALL)
    tuning = Tuning.create(row, config, ComparisonProtocol(900, tuning_seeds=(100, 101), tuning_budget=400), tmp_path)
    assert list(tuning.tries) == [0.03, 0.01, 0.09] and len(tuning.runs) == 6
    for run in tuning.runs:
        assert fit_run(run).budget == 400
    facts = tuning.to_dict("a label")
    means = {tried["value"]: sum(tried["areas"]) / 2 for tried in facts["tried"]}
    assert tuning.choose_settings() == {"learning_rate": facts["chosen"]} and means[facts["chosen"]] == max(
        means.values()
    )
    assert facts["tried"][0]["seeds"] == [100, 101]
    assert facts["tried"][0]["areas"][0] == compute_area(tuning.runs[0]) > 5  # steps of a pole that falls at once


def test_row_tuning_without_tunable_setting_makes_no_runs(tmp_path: Path) -> None:
    tuning = Tuning.create(
        FigureRow("aggrevated", "exponentiated"), resolve_config("cartpole"), ComparisonProtocol(900), tmp_path
    )
    assert not tuning.runs and tuning.choose_settings() == {} and not list(tmp_path.iterdir())
