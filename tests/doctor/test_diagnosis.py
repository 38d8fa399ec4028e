"""Diagnoses of whole configs, also with faulty experts."""

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from planted import HiddenCounterSimulator, config_with_expert, config_with_simulator

from aggrevated.config.resolver import resolve_config
from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError
from aggrevated.doctor import diagnose
from aggrevated.doctor.checks.environment import check_markov_state
from aggrevated.doctor.checks.expert import check_greedy_consistency
from aggrevated.doctor.examination import Examination
from aggrevated.simulators.cartpole import CartPole


class RaisingExpert:
    """An expert whose q raises."""

    name = "raising"
    discount = 0.99

    def __init__(self, expert: Any) -> None:
        self.expert = expert

    def act(self, states: Array, t: int) -> Array:
        return np.asarray(self.expert.act(states, t))

    def q(self, states: Array) -> Array:
        raise RuntimeError("no costs today")


class ActOnlyExpert(RaisingExpert):
    """An expert that only acts."""

    q = None  # type: ignore[assignment]


class NanActionExpert(RaisingExpert):
    """An expert whose actions are NaN."""

    def act(self, states: Array, t: int) -> Array:
        return np.full(len(states), np.nan)


def test_diagnose_reports_an_expert_that_raises_with_a_remedy() -> None:
    diagnosis = diagnose(config_with_expert(RaisingExpert), episodes=10, seconds=1.5)
    raised = {one.check: one for one in diagnosis.faults}
    assert "no costs today" in raised["sign"].sentence and raised["sign"].remedy == "fix its q"


def test_diagnose_stops_at_an_expert_that_cannot_act() -> None:
    diagnosis = diagnose(config_with_expert(NanActionExpert), episodes=10, seconds=1)
    assert [one.check for one in diagnosis.findings] == ["parts"] and diagnosis.verdict == "fault"
    assert diagnosis.recommendation is None and "not finite" in diagnosis.findings[0].sentence


def test_diagnose_rolls_out_an_expert_that_only_acts() -> None:
    diagnosis = diagnose(config_with_expert(ActOnlyExpert), episodes=20, seconds=2)
    assert not diagnosis.faults
    assert not {"sign", "noise", "calibration"} & {one.check for one in diagnosis.findings}
    advice = diagnosis.recommendation
    assert advice is not None and advice.command == "aggrevated train cartpole --oracle monte-carlo"
    assert advice.parts["oracle"] > 0


def test_diagnosis_can_be_written_as_json() -> None:
    diagnosis = diagnose(resolve_config("cartpole", horizon=60), episodes=10, seconds=1)
    report = json.loads(json.dumps(diagnosis.to_dict(), allow_nan=False))
    assert report["task"] == "cartpole" and report["recommendation"]["command"].endswith("--horizon 60")


def test_diagnose_refuses_invalid_arguments() -> None:
    with pytest.raises(UsageError, match="seconds"):
        diagnose(resolve_config("cartpole"), seconds=0)
    with pytest.raises(UsageError, match="doctor"):
        diagnose(
            resolve_config("cartpole").__class__(**{**vars(resolve_config("cartpole")), "problem": NonControlProblem()})
        )


class NonControlProblem:
    """A problem that is not a control problem."""

    name = "paper"


def test_check_markov_state_reports_a_hidden_counter_only_if_it_matters() -> None:
    examination = Examination(
        config_with_simulator(lambda h: HiddenCounterSimulator(CartPole(h), every=10**6)), episodes=8
    )
    assert [one.verdict for one in check_markov_state(examination)] == ["fine"]
    relevant = replace(
        examination, config=config_with_simulator(lambda h: HiddenCounterSimulator(CartPole(h), every=300))
    )
    assert [one.verdict for one in check_markov_state(relevant)] == ["fault"]


@dataclass(frozen=True)
class MaskedCartPole:
    """CartPole where pushing to the left is illegal on the left side."""

    simulator: CartPole

    def __getattr__(self, name: str) -> Any:
        return getattr(self.simulator, name)

    def action_mask(self, state: Array) -> Array:
        return np.stack([state[:, 0] > -0.02, np.ones(len(state), bool)], axis=1)


def test_diagnose_reports_illegal_actions_of_the_expert() -> None:
    diagnosis = diagnose(config_with_simulator(lambda h: MaskedCartPole(CartPole(h))), episodes=10, seconds=1)
    assert diagnosis.verdict == "fault" and "illegal action" in diagnosis.findings[0].sentence


@dataclass(frozen=True)
class InconsistentVExpert:
    """An expert whose V is not the minimum of its Q."""

    expert: Any
    discount: float = 0.99
    name: str = "two minds"

    def act(self, states: Array, t: int) -> Array:
        return np.asarray(self.expert.act(states, t))

    def q(self, states: Array) -> Array:
        return np.asarray(self.expert.q(states))

    def v(self, states: Array) -> Array:
        return np.asarray(self.expert.q(states).min(axis=1) + 5.0)


def test_check_greedy_consistency_warns_if_v_is_not_the_minimum_of_q() -> None:
    found = [*check_greedy_consistency(Examination(config_with_expert(InconsistentVExpert), episodes=8, seconds=3))]
    assert [one.verdict for one in found] == ["fine", "warning"]
    assert "V is not the minimum of its Q" in found[1].sentence
