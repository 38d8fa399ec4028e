"""Packing learned with few items and tested with more: numbers, and comparison with heuristics."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.reports.comparison import TrialGroup
from aggrevated.storage import JsonDict
from aggrevated.validation import evaluate_returns
from aggrevated_experiments.figures import Request, find_figure
from aggrevated_experiments.where_it_pays import study_packing
from aggrevated_experiments.where_it_pays.experts.exact_packing import BestFit, ExactPacking
from aggrevated_experiments.where_it_pays.simulators.packing import Packing
from aggrevated_experiments.where_it_pays.study_packing import PACKING, describe_best_fit_comparison
from helpers.small_runs import fit_run

SMALL = {"budget": 1200, "trajectories": 5, "validation_episodes": 10, "test_episodes": 10}
TWO = {name: PACKING.methods[name] for name in ("AggreVaTeD (exponentiated)", "TNPG (critic)")}
FIGURE = replace(PACKING, methods=TWO, settings=SMALL, sizes=(12, 24))
EPISODES = 20


@pytest.fixture(scope="module")
def study_report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, JsonDict]:
    folder = tmp_path_factory.mktemp("packing")
    request = Request(trials=2, out=folder / "runs")
    groups = FIGURE.create_runs(request)
    assert [len(runs) for runs in groups] == [2, 2]
    for run in (run for runs in groups for run in runs):
        fit_run(run)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(study_packing, "EPISODES", EPISODES)
        FIGURE.write([TrialGroup.from_runs(runs) for runs in groups], request, folder)
    return folder, json.loads((folder / "pays-packing.json").read_text())


def test_find_figure_finds_the_packing_study() -> None:
    assert find_figure("pays-packing") is PACKING


def test_packing_study_tests_every_trial_with_every_item_count(study_report: tuple[Path, JsonDict]) -> None:
    _, facts = study_report
    assert [case["items"] for case in facts["larger"]] == [12, 24]
    for case in facts["larger"]:
        assert [method["label"] for method in case["methods"]] == list(TWO)
        for method in case["methods"]:
            assert [trial["seed"] for trial in method["trials"]] == [0, 1]
            for trial in method["trials"]:
                assert trial["lower_bound"] <= trial["exact"]
                assert trial["exact"] <= min(trial["bins"], trial["best_fit"], trial["first_fit"])


def test_packing_study_measures_heuristics_on_the_same_episodes(study_report: tuple[Path, JsonDict]) -> None:
    _, facts = study_report
    simulator = Packing(12, 12)
    fresh = derive_seeds(1, SeedPurpose.TEST, 0, EPISODES)
    trial = facts["larger"][0]["methods"][0]["trials"][1]
    assert trial["best_fit"] == -evaluate_returns(BestFit(simulator), simulator, fresh)[0].mean()
    assert trial["exact"] == -evaluate_returns(ExactPacking(simulator), simulator, fresh)[0].mean()


def test_packing_study_reports_percentages_and_paired_differences(study_report: tuple[Path, JsonDict]) -> None:
    _, facts = study_report
    method = facts["larger"][1]["methods"][0]
    above = [100 * (one["bins"] / one["lower_bound"] - 1) for one in method["trials"]]
    best_fit = [100 * (one["best_fit"] / one["lower_bound"] - 1) for one in method["trials"]]
    assert method["iqm"] == pytest.approx(np.mean(above))
    assert method["to_best_fit"]["difference"] == pytest.approx(np.mean(above) - np.mean(best_fit))


def test_packing_study_page_has_tables_and_answer(study_report: tuple[Path, JsonDict]) -> None:
    folder, facts = study_report
    page = (folder / "pays-packing.md").read_text()
    assert facts["answer"] in page and "| items | method |" in page and "| items | best fit | first fit |" in page
    assert (folder / "pays-packing.png").stat().st_size > 10_000


def test_best_fit_comparison_sentence_follows_from_the_intervals() -> None:
    def make_case(items: int, low: float, high: float) -> JsonDict:
        return {
            "items": items,
            "methods": [{"label": "X", "to_best_fit": {"difference": (low + high) / 2, "low": low, "high": high}}],
        }

    sentence = describe_best_fit_comparison(
        [make_case(12, -2.0, -1.0), make_case(20, -1.0, 0.5), make_case(40, 1.0, 2.0)]
    )
    assert "X takes fewer with 12 (-1.50, -2.00 to -1.00) and more with 40 (+1.50, +1.00 to +2.00) items." in sentence
    assert "X is not told apart." in describe_best_fit_comparison([make_case(20, -1.0, 0.5)])
