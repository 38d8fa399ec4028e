"""Experts from bad to best: their order, and the page's sentence on who gains over them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.experts.loading import load_expert
from aggrevated.reports.comparison import TrialGroup
from aggrevated.simulators.acrobot import Acrobot
from aggrevated.validation import evaluate_returns
from aggrevated_experiments.expert_strength import (
    CARDS,
    EXPERTS,
    STRENGTH,
    describe_gains,
    render_experts_section,
    summarize_expert,
)
from aggrevated_experiments.figures import Request
from helpers.small_runs import fit_run


def test_strength_experts_are_eight_of_one_training_from_bad_to_best() -> None:
    returns = [card.mean_return for card in CARDS.values()]
    assert len(returns) == EXPERTS == 8 and returns == sorted(set(returns))
    assert returns[0] > -200.0 and returns[0] < -190.0 and returns[-1] > -82.0
    assert len({card.step for card in CARDS.values()}) == EXPERTS
    assert {(card.seed, card.chosen, card.task) for card in CARDS.values()} == {
        (0, next(iter(CARDS.values())).chosen, "acrobot")
    }


@pytest.mark.parametrize("number", [1, 4, 8])
def test_strength_expert_return_equals_its_card(number: int) -> None:
    name = f"strength/acrobot-{number}"
    simulator = Acrobot(200)
    card = CARDS[name]
    fresh = derive_seeds(card.seed, SeedPurpose.TEST, 0, card.episodes)
    returns, _ = evaluate_returns(load_expert(name, simulator), simulator, fresh)
    assert np.isclose(returns.mean(), card.mean_return, atol=6e-4)


def test_strength_study_gives_every_method_the_same_budget() -> None:
    configs = [
        STRENGTH.make_config(case, row, quick=False) for case in STRENGTH.cases for row in STRENGTH.methods.values()
    ]
    assert {config.loop.budget for config in configs} == {30_000}
    assert {config.loop.trajectories for config in configs} == {10}
    assert len({config.settings["expert"] for config in configs}) == EXPERTS


def test_gaining_sentence_follows_from_the_intervals() -> None:
    def make_gain(iqm: float, low: float, high: float) -> dict[str, object]:
        return {"label": "A", "iqm": iqm, "low": low, "high": high}

    cases = [
        {"x": -150.0, "methods": [make_gain(9.0, 5.0, 12.0), make_gain(1.0, -2.0, 3.0) | {"label": "B"}]},
        {"x": -80.0, "methods": [make_gain(-4.0, -6.0, -1.0), make_gain(0.5, -1.0, 1.0) | {"label": "B"}]},
    ]
    sentence = describe_gains({"cases": cases})
    assert "A ends above -150.0 (+9.0, +5.0 to +12.0) and below -80.0 (-4.0, -6.0 to -1.0)" in sentence
    assert sentence.endswith("B ends where its expert does, as far as can be told.")


def test_strength_page_has_training_steps_of_every_expert() -> None:
    experts = [summarize_expert(case) for case in STRENGTH.cases]
    page = "\n".join(render_experts_section({"experts": experts}))
    assert all(f"| {one['expert']} |" in page and f"{one['step']:,} |" in page for one in experts)


def test_strength_report_has_the_gain_of_every_trial(tmp_path: Path) -> None:
    few = {
        "AggreVaTeD (exponentiated)": STRENGTH.methods["AggreVaTeD (exponentiated)"],
        "SL-RL": replace(STRENGTH.methods["SL-RL"], settings={"start_steps": 5, "demonstrations": 1}),
    }
    small = {"budget": 600, "trajectories": 1, "validation_episodes": 2, "test_episodes": 5}
    figure = replace(STRENGTH, cases=STRENGTH.cases[-2:], methods=few, settings=small)
    request = Request(trials=1, out=tmp_path / "runs")
    groups = figure.create_runs(request)
    for run in (run for runs in groups for run in runs):
        fit_run(run)
    figure.write([TrialGroup.from_runs(runs) for runs in groups], request, tmp_path)
    facts = json.loads((tmp_path / "expert-strength.json").read_text())
    assert facts["measure"] == "gain" and [one["step"] for one in facts["experts"]] == [38_500, 72_000]
    for case in facts["cases"]:
        for method in case["methods"]:
            (trial,) = method["trials"]
            assert trial["gain"] == pytest.approx(trial["test_return"] - trial["expert_return"]) == method["iqm"]
    page = (tmp_path / "expert-strength.md").read_text()
    assert "return less the expert's" in page and "| strength/acrobot-8 | -79.22 ± 0.52 | 72,000 |" in page
    assert (tmp_path / "expert-strength.png").stat().st_size > 10_000
