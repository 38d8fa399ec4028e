"""Control problems evaluate the expert together with a policy."""

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
def evaluated_experts(monkeypatch):
    """Return the names of the experts evaluated from now on, with an empty cache."""
    evaluated = []

    def counted(policy, simulator, *given, **named):
        if hasattr(policy, "act"):
            evaluated.append(policy.name)
        return evaluate_returns(policy, simulator, *given, **named)

    monkeypatch.setattr(control, "evaluate_returns", counted)
    monkeypatch.setattr(control, "_MEASURED", {})
    return evaluated


def make_problem(**settings):
    return replace(TASK.problem, horizon=30, test_episodes=5, **settings)


POLICY = build_policy(resolve_config("cartpole", horizon=30))


def test_control_problem_evaluates_the_expert_once_on_the_same_episodes(evaluated_experts):
    """Trials and evaluations have separate problems and share one evaluation."""
    scores = [
        make_problem().build(3).test(POLICY),
        make_problem().returns(POLICY, 5, 3),
        make_problem().returns(POLICY, 5, 3, True),
    ]
    assert evaluated_experts == ["cartpole"]
    expected = evaluate_mean_return(
        make_problem().loaded_expert, make_problem().simulator, derive_seeds(3, SeedPurpose.TEST, 0, 5)
    )
    assert [score.expert_return for score in scores] == [expected] * 3
    assert scores[0] == scores[1]


def test_control_problem_reevaluates_the_expert_when_settings_differ(evaluated_experts):
    class Slower(CartPole):
        """Another simulator."""

    others = [
        make_problem(),
        replace(make_problem(), horizon=31),
        replace(make_problem(), make=lambda horizon: Slower(horizon)),
    ]
    for other in others:
        for episodes, seed in ((5, 3), (6, 3), (5, 4)):
            other.returns(POLICY, episodes, seed)
    assert evaluated_experts == ["cartpole"] * 9


def test_control_problem_reevaluates_an_expert_with_changed_weights(evaluated_experts, monkeypatch):
    """Experts of one name are distinguished by their weights."""
    builtin = load_expert("cartpole", CartPole())
    first, *others = builtin.network.weights
    for sign in (1.0, -1.0, 1.0):
        turned = replace(builtin, network=replace(builtin.network, weights=(sign * first, *others)))
        monkeypatch.setattr(control, "load_expert", lambda name, seen, turned=turned: turned)
        make_problem().returns(POLICY, 5, 3)
    assert len(evaluated_experts) == 2


def test_control_problem_reevaluates_a_user_expert_each_time(evaluated_experts):
    """The expert's dependencies are unknown."""
    problem = ControlProblem(make=CartPole, make_expert=lambda seen: load_expert("cartpole", seen), horizon=30)
    assert problem.returns(POLICY, 5, 3) == problem.returns(POLICY, 5, 3)
    assert len(evaluated_experts) == 2


def test_fresh_episodes_settings_measure_repeats_its_result(evaluated_experts):
    facts = [FreshEpisodesSettings(episodes=5, seed=3).measure(make_problem(), POLICY) for _ in range(2)]
    assert facts[0] == facts[1] and np.isfinite(facts[0]["expert_return"]) and len(evaluated_experts) == 1


def test_control_problem_returns_have_the_standard_errors_of_both_means():
    fresh = derive_seeds(3, SeedPurpose.TEST, 0, 50)
    score = make_problem().returns(POLICY, 50, 3)
    returns, _ = evaluate_returns(POLICY, make_problem().simulator, fresh)
    assert score.test_return == returns.mean()
    assert score.test_standard_error == pytest.approx(np.sqrt(returns.var(ddof=1) / 50)) and returns.std() > 0
    assert score.expert_standard_error == 0.0  # it never falls within 30 steps
    assert make_problem().returns(POLICY, 1, 3).test_standard_error is None
