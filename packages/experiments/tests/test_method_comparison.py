"""Comparison of methods: the JSON and the sentences of the page, with every trial."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aggrevated.reports.comparison import TrialGroup
from aggrevated.storage import JsonDict
from aggrevated.tasks import FigureRow, find_task
from aggrevated_experiments.figures import Request
from aggrevated_experiments.method_comparison.numbers import summarize_paired_difference
from aggrevated_experiments.method_comparison.page import make_measure_panel
from aggrevated_experiments.method_comparison.spec import Case
from aggrevated_experiments.method_comparison.study import MethodStudy
from aggrevated_experiments.method_comparison.summary_text import (
    describe_case_range,
    describe_cases,
    describe_differences,
    describe_reached_cases,
)
from helpers.small_runs import fit_run

SMALL = {"budget": 600, "trajectories": 2, "validation_episodes": 5, "test_episodes": 10}
TINY = MethodStudy(
    name="tiny",
    title="Tiny",
    question="Does it matter?",
    task=find_task("cartpole"),
    varied="horizon H",
    cases=(Case(5, "H = 5", {"horizon": 5}), Case(30, "H = 30", {"horizon": 30})),
    methods={
        "AggreVaTeD": FigureRow("aggrevated", "exponentiated"),
        "slow": FigureRow("reinforce", "regular", settings={"learning_rate": 1e-9}),
    },
    settings=SMALL,
    tells=("reached", "difference"),
    lines={"steps": {"theory": lambda case: 2.0 ** case.x}},
)  # fmt: skip


@pytest.fixture(scope="module")
def study_report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, JsonDict]:
    folder = tmp_path_factory.mktemp("tiny")
    request = Request(trials=2, out=folder / "runs")
    groups = TINY.create_runs(request)
    for run in (run for runs in groups for run in runs):
        fit_run(run)
    TINY.write([TrialGroup.from_runs(runs) for runs in groups], request, folder)
    return folder, json.loads((folder / "tiny.json").read_text())


def test_method_study_json_has_every_trial(study_report: tuple[Path, JsonDict]) -> None:
    _, facts = study_report
    assert [case["x"] for case in facts["cases"]] == [5, 30]
    for case in facts["cases"]:
        assert [method["label"] for method in case["methods"]] == ["AggreVaTeD", "slow"]
        for method in case["methods"]:
            assert [trial["seed"] for trial in method["trials"]] == [0, 1]
            for trial in method["trials"]:
                assert trial["simulator_steps"] <= trial["budget"] == 600
                assert trial["ratio"] == pytest.approx(trial["test_return"] / trial["expert_return"])
                assert len(trial["weights_sha256"]) == 64
    assert set(facts["settings"]["H = 5"]) == {"AggreVaTeD", "slow"}
    assert facts["settings"]["H = 5"]["slow"]["problem"]["horizon"] == 5


def test_method_study_has_a_folder_per_case_and_reuses_runs(study_report: tuple[Path, JsonDict]) -> None:
    folder, _ = study_report
    found = sorted(str(path.parent.relative_to(folder / "runs")) for path in folder.rglob("config.json"))
    assert found[0] == "H-30/AggreVaTeD/trial-00" and len(found) == 8
    again = TINY.create_runs(Request(trials=2, out=folder / "runs"))
    assert all(run.result() is not None for runs in again for run in runs)


def test_method_study_keeps_trials_that_never_reach_the_expert(study_report: tuple[Path, JsonDict]) -> None:
    """REINFORCE with a tiny rate stays at its first policy."""
    _, facts = study_report
    _, slow = facts["cases"][1]["methods"]
    assert slow["reached"] == 0 and slow["steps_to_expert"] == {"median": None, "low": None, "high": None}
    assert [trial["steps_to_expert"] for trial in slow["trials"]] == [None, None]
    drawn = make_measure_panel(TINY, facts, "steps")
    assert np.isinf(drawn.series[1].value[1]) and np.isinf(drawn.series[1].trials[1]).all()
    assert drawn.limit is not None and drawn.limit.tolist() == [600, 600]
    assert drawn.lines["theory"].tolist() == [2.0**5, 2.0**30]


def test_method_study_page_has_question_answer_and_all_rows(study_report: tuple[Path, JsonDict]) -> None:
    folder, facts = study_report
    page = (folder / "tiny.md").read_text()
    assert "*Does it matter?*" in page and facts["answer"] in page
    assert page.count("| H = 30 |") == 2 and "| never | never to never |" in page
    assert all((folder / f"tiny.{ending}").stat().st_size > 5000 for ending in ("png", "svg"))


def test_method_study_quick_runs_have_a_fifth_of_the_budget() -> None:
    case = TINY.cases[0]
    row = TINY.methods["AggreVaTeD"]
    assert TINY.make_config(case, row, quick=True).loop.budget == 120
    by_iterations = replace(TINY, settings=SMALL | {"budget": 0, "iterations": 10})
    assert by_iterations.make_config(case, row, quick=True).loop.iterations == 2


def test_paired_comparison_cancels_differences_between_seeds() -> None:
    seeds = np.array([0.0, 10.0, -30.0, 2.0, 5.0])
    found = summarize_paired_difference(seeds + np.array([1.0, 1.1, 0.9, 1.0, 1.0]), seeds)
    assert found["difference"] == pytest.approx(1.0) and 0.9 < found["low"] < found["high"] < 1.1


def make_case(label: str, reached: tuple[int, int], difference: tuple[float, float, float]) -> JsonDict:
    keys = ("difference", "low", "high")
    trials = [{}] * 5
    return {
        "label": label,
        "methods": [
            {"reached": reached[0], "trials": trials, "to_first": dict.fromkeys(keys, 0.0)},
            {"reached": reached[1], "trials": trials, "to_first": dict(zip(keys, difference, strict=True))},
        ],
    }


def test_summary_sentences_follow_from_the_numbers() -> None:
    cases = [
        make_case("2", (5, 5), (0, -1, 1)),
        make_case("4", (5, 3), (-2, -3, -1)),
        make_case("8", (4, 2), (1, 0.5, 2)),
    ]
    assert describe_reached_cases(TINY, cases) == (
        "In more than half of the trials, AggreVaTeD reaches the expert's return in every case; "
        "slow reaches the expert's return up to 4 and not above."
    )
    assert describe_differences(TINY, cases) == (
        "Beside AggreVaTeD, paired by seeds with 95 % intervals: slow earns less at 4 (-2, -3 to -1) and more at 8 "
        "(+1, +0.5 to +2)."
    )
    assert describe_cases(["2", "4"], ["x"], ["2", "4", "x"]) == "in every case"
    assert describe_cases(["2", "4"], ["x"], ["2", "4"]) == "everywhere but at x"  # not "up to 4 and not above"
    assert describe_cases(["2", "4"], ["x"], ["2", "x"]) == "only at 2 and at x"
    assert describe_cases(["2", "4"], ["x"], ["x"]) == "only at x" and describe_cases(["2"], ["x"], []) == "in no case"
    assert describe_case_range(["4", "8"], ["2", "4", "8"]) == "from 4 on"
    assert describe_case_range(["4"], ["2", "4"]) == "only at 4" and describe_case_range([], ["2"]) == "in no case"
    assert describe_case_range(["2", "8"], ["2", "4", "8"]) == "everywhere but at 4"
