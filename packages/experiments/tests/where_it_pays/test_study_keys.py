"""Blocked moves among doors and keys, counted independently and compared with the page."""

import json
from dataclasses import replace

import numpy as np
import pytest

from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.reports.comparison import TrialGroup
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.storage import JsonDict
from aggrevated.training.run_folder import Run
from aggrevated_experiments.figures import Request
from aggrevated_experiments.where_it_pays.simulators.keys import POSITION, Keys
from aggrevated_experiments.where_it_pays.study_keys import EPISODES, KEYS, MASKED_CASE, make_case
from helpers.small_runs import fit_run

SMALL = {"trajectories": 5, "validation_episodes": 10, "test_episodes": 10}
CASES = tuple(replace(case, settings={**case.settings, "budget": 400}) for case in (make_case(3), MASKED_CASE))
METHODS = {"AggreVaTeD (exponentiated)": KEYS.methods["AggreVaTeD (exponentiated)"], "DAgger": KEYS.methods["DAgger"]}


@pytest.fixture(scope="module")
def study_report(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[list[Run]], JsonDict, str]:
    folder = tmp_path_factory.mktemp("keys")
    request = Request(trials=2, out=folder / "runs")
    figure = replace(KEYS, cases=CASES, methods=METHODS, settings=SMALL)
    groups = figure.create_runs(request)
    for run in (run for runs in groups for run in runs):
        fit_run(run)
    figure.write([TrialGroup.from_runs(runs) for runs in groups], request, folder)
    return groups, json.loads((folder / "pays-keys.json").read_text()), (folder / "pays-keys.md").read_text()


def blocked_share(run: Run) -> float:
    """Return the share of steps that do not change the state; the last step of an episode is repeated."""
    problem = run.config.problem
    fresh = derive_seeds(run.config.loop.seed, SeedPurpose.TEST, 0, EPISODES)
    simulator = Keys(problem.horizon, problem.grid_size, problem.doors)  # type: ignore[attr-defined]
    found = roll_in(run.config.built_problem.simulator, RollInPolicy(None, run.policy.actor()), fresh)
    states = found.states[found.mask]
    following, _, _ = simulator.step(states, found.actions[found.mask])
    return float(np.mean(following[:, POSITION] == states[:, POSITION]))


def test_keys_study_reports_the_share_of_blocked_moves(study_report: tuple[list[list[Run]], JsonDict, str]) -> None:
    groups, facts, page = study_report
    shares = [method["on_the_spot"]["share"] for case in facts["cases"] for method in case["methods"]]
    assert shares[:2] == pytest.approx([np.mean([blocked_share(run) for run in runs]) for runs in groups[:2]])
    assert shares[0] > shares[1]
    assert shares[2:] == [0, 0]  # no blocked moves
    assert f"| AggreVaTeD (exponentiated) | {shares[0]:.3f} (" in page
    differences = [case["methods"][1]["to_first"]["difference"] for case in facts["cases"]]
    assert f"DAgger earns {differences[0]:+.2f} (" in page and f"and {differences[1]:+.2f} (" in page


def test_keys_study_last_case_differs_in_blocked_moves_only(
    study_report: tuple[list[list[Run]], JsonDict, str],
) -> None:
    groups, _, _ = study_report
    assert groups[2][0].config == groups[0][0].config.with_settings(blocked_moves_stay=False)
