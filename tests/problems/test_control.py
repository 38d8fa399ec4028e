"""Control: what the expert earns beside a policy."""

from dataclasses import replace

import numpy as np
import pytest

from aggrevated.config.builder import build_policy
from aggrevated.config.resolver import resolve_config
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.experts.loading import load_expert
from aggrevated.problems import control
from aggrevated.problems.control import ControlProblem, FreshEpisodesSettings
from aggrevated.simulators.cartpole import CartPole
from aggrevated.tasks.cartpole import TASK
from aggrevated.validation import evaluate_mean_return, evaluate_returns


@pytest.fixture
def measured(monkeypatch):
    """The experts that were tried, in a process where none was yet."""
    tried = []

    def counted(policy, simulator, *given, **named):
        if hasattr(policy, "act"):
            tried.append(policy.name)
        return evaluate_returns(policy, simulator, *given, **named)

    monkeypatch.setattr(control, "returns_of", counted)
    monkeypatch.setattr(control, "_MEASURED", {})
    return tried


def world(**settings):
    return replace(TASK.problem, horizon=30, test_episodes=5, **settings)


POLICY = build_policy(resolve_config("cartpole", horizon=30))


def test_the_same_expert_is_tried_once_on_the_same_episodes(measured):
    """By its trials' results and evaluations, each with a world of its own."""
    scores = [world().build(3).test(POLICY), world().returns(POLICY, 5, 3), world().returns(POLICY, 5, 3, True)]
    assert measured == ["cartpole"]
    expected = evaluate_mean_return(world().loaded_expert, world().simulator, derive_seeds(3, SeedPurpose.TEST, 0, 5))
    assert [score.expert_return for score in scores] == [expected] * 3
    assert scores[0] == scores[1]


def test_other_episodes_horizons_and_simulators_are_tried_anew(measured):
    class Slower(CartPole):
        """Another simulator."""

    others = [world(), replace(world(), horizon=31), replace(world(), make=lambda horizon: Slower(horizon))]
    for other in others:
        for episodes, seed in ((5, 3), (6, 3), (5, 4)):
            other.returns(POLICY, episodes, seed)
    assert measured == ["cartpole"] * 9


def test_a_file_that_has_changed_is_another_expert(measured, monkeypatch):
    """Weights tell experts of one name apart."""
    shipped = load_expert("cartpole", CartPole())
    first, *others = shipped.network.weights
    for sign in (1.0, -1.0, 1.0):
        turned = replace(shipped, network=replace(shipped.network, weights=(sign * first, *others)))
        monkeypatch.setattr(control, "load_expert", lambda name, seen, turned=turned: turned)
        world().returns(POLICY, 5, 3)
    assert len(measured) == 2


def test_an_expert_of_ones_own_is_asked_each_time(measured):
    """Nobody knows what it hangs on."""
    own = ControlProblem(make=CartPole, make_expert=lambda seen: load_expert("cartpole", seen), horizon=30)
    assert own.returns(POLICY, 5, 3) == own.returns(POLICY, 5, 3)
    assert len(measured) == 2


def test_evaluation_says_what_it_said(measured):
    facts = [FreshEpisodesSettings(episodes=5, seed=3).measure(world(), POLICY) for _ in range(2)]
    assert facts[0] == facts[1] and np.isfinite(facts[0]["expert_return"]) and len(measured) == 1


def test_the_errors_are_those_of_both_means():
    fresh = derive_seeds(3, SeedPurpose.TEST, 0, 50)
    score = world().returns(POLICY, 50, 3)
    returns, _ = evaluate_returns(POLICY, world().simulator, fresh)
    assert score.test_return == returns.mean()
    assert score.test_standard_error == pytest.approx(np.sqrt(returns.var(ddof=1) / 50)) and returns.std() > 0
    assert score.expert_standard_error == 0.0  # it never falls within 30 steps
    assert world().returns(POLICY, 1, 3).test_standard_error is None
