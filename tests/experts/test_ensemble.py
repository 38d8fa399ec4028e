"""Ensembles of experts: two experts that are optimal in half of the states are optimal together."""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from aggrevated.algorithm import Learner, aggrevated
from aggrevated.core.errors import UsageError
from aggrevated.experts import DiscreteQExpert, StateValueExpert, get_discount
from aggrevated.experts.ensemble import QExpertEnsemble, StateValueExpertEnsemble, make_expert_ensemble
from aggrevated.experts.loading import BUILTIN_WEIGHTS, load_expert
from aggrevated.experts.network_experts import ActorCriticExpert
from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.oracles.advantage import AdvantageOracle
from aggrevated.oracles.q_star import QStarOracle
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.problems.control import ControlProblem
from aggrevated.simulators.cartpole import CartPole
from aggrevated.simulators.mujoco import MuJoCo
from aggrevated.simulators.tabular import TabularSimulator, compute_policy_q_values, compute_total_cost
from aggrevated.storage import load_checksummed, save_checksummed
from aggrevated.updates.regular import RegularUpdate
from helpers.tiny_mdp import Home

STATES = 7
GOAL = 6
H = 10
WAIT = 0
MOVE = 1


def make_corridor() -> TabularSimulator:
    """Return a corridor from 0 to 6: moving costs 0.9, waiting 1, and the goal nothing."""
    transitions = np.zeros((STATES, 2, STATES))
    costs = np.tile([1.0, 0.9], (STATES, 1))
    transitions[np.arange(STATES), WAIT, np.arange(STATES)] = 1.0
    transitions[np.arange(STATES), MOVE, np.minimum(np.arange(STATES) + 1, GOAL)] = 1.0
    costs[GOAL] = 0.0
    return TabularSimulator(transitions, costs, np.eye(STATES)[0], H, "corridor")


@dataclass(frozen=True)
class HalfExpert:
    """Expert that moves in some states, waits in the others, and has the exact costs-to-go of doing so."""

    mdp: TabularSimulator
    capability: tuple[int, ...]
    name: str = "half"
    discount: float = 1.0

    @property
    def policy(self):
        """Action probabilities, [H, S, A]."""
        moves = np.isin(np.arange(STATES), self.capability).astype(int)
        return np.broadcast_to(np.eye(2)[moves], (H, STATES, 2))

    def act(self, states, t):
        return self.policy[t, states[:, 0].astype(int)].argmax(axis=1)


class HalfQExpert(HalfExpert):
    def q(self, states):
        return compute_policy_q_values(self.mdp.transitions, self.mdp.costs, self.policy)[
            states[:, 1].astype(int), states[:, 0].astype(int)
        ]


class HalfVExpert(HalfExpert):
    def v(self, states):
        q = compute_policy_q_values(self.mdp.transitions, self.mdp.costs, self.policy) * self.policy
        return q.sum(axis=2)[states[:, 1].astype(int), states[:, 0].astype(int)]


def exact_total_cost(expert, mdp) -> float:
    """Return the exact μ(π)."""
    s = np.arange(STATES)
    tables = [np.eye(2)[expert.act(np.stack([s, np.full(STATES, t), s], axis=1), t)] for t in range(H)]
    return float(compute_total_cost(mdp.transitions, mdp.costs, mdp.start, np.stack(tables)))


def probability_table(policy: FeedForwardPolicy, mdp: TabularSimulator):
    """Return π(a|s, t), [H, S, A], of a policy with H·S one-hot observations."""
    states, actions = mdp.costs.shape
    observations = torch.eye(mdp.horizon * states)[None]
    with torch.no_grad():
        found = policy.distribution(observations, torch.ones(1, mdp.horizon * states)).probs[0]
    return found.double().numpy().reshape(mdp.horizon, states, actions)


@pytest.mark.parametrize("kind", [HalfQExpert, HalfVExpert])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_expert_ensemble_of_two_half_experts_is_optimal(kind, order):
    mdp = make_corridor()
    halves = [kind(mdp, (0, 1, 2)), kind(mdp, (3, 4, 5))]
    best = float(mdp.q_star[0, 0].min())
    assert best == pytest.approx(6 * 0.9)
    ensemble = make_expert_ensemble([halves[i] for i in order])
    assert exact_total_cost(halves[0], mdp) == pytest.approx(3 * 0.9 + 7) and exact_total_cost(
        halves[1], mdp
    ) == pytest.approx(10)
    assert exact_total_cost(ensemble, mdp) == pytest.approx(best)


def test_expert_ensemble_q_and_v_are_the_minimum_over_its_experts():
    mdp = make_corridor()
    states = np.array([[s, t, 0] for s in range(STATES) for t in range(H)])
    for kind, method in ((HalfQExpert, "q"), (HalfVExpert, "v")):
        halves = [kind(mdp, (0, 1, 2)), kind(mdp, (3, 4, 5)), kind(mdp, ())]
        found = getattr(make_expert_ensemble(halves), method)(states)
        np.testing.assert_array_equal(found, np.min([getattr(half, method)(states) for half in halves], axis=0))
    assert make_expert_ensemble([HalfVExpert(mdp, ())]).discount == 1.0


def test_aggrevated_learner_of_an_expert_ensemble_reaches_the_optimum():
    mdp = make_corridor()
    expert = make_expert_ensemble([HalfQExpert(mdp, (0, 1, 2)), HalfQExpert(mdp, (3, 4, 5))])
    policy = FeedForwardPolicy(H * STATES, CategoricalHead(2), hidden=())
    learner = Learner(policy, RegularUpdate(0.3))
    loop = aggrevated(
        learner, mdp, expert, AdvantageOracle(QStarOracle(expert)), all_actions_loss, k=40, validation_episodes=20
    )
    list(islice(loop, 60))
    table = probability_table(policy, mdp)
    assert float(compute_total_cost(mdp.transitions, mdp.costs, mdp.start, table)) < 6 * 0.9 + 0.1


def test_expert_ensemble_has_the_capability_of_its_experts():
    mdp = make_corridor()
    with_q = make_expert_ensemble([HalfQExpert(mdp, ())] * 2)
    with_v = make_expert_ensemble([HalfVExpert(mdp, ())] * 2)
    assert isinstance(with_q, DiscreteQExpert) and not isinstance(with_q, StateValueExpert)
    assert isinstance(with_v, StateValueExpert) and not isinstance(with_v, DiscreteQExpert)
    assert with_q.name == with_v.name == "half,half"
    assert with_q.act(np.zeros((0, 3), np.uint64), 0).shape == (0,)


def test_expert_ensemble_keeps_the_discount_of_its_experts():
    expert = load_expert("cartpole", CartPole())
    assert get_discount(make_expert_ensemble([expert, expert])) == get_discount(expert) < 1


@pytest.mark.parametrize(
    ("experts", "words"),
    [
        ([Home(), Home()], "cannot compare the experts home,home in a state: all need a method q, or all"),
        ([HalfQExpert(make_corridor(), ()), Home()], "cannot compare the experts half,home"),
        ([HalfQExpert(make_corridor(), ()), HalfVExpert(make_corridor(), ())], "cannot compare the experts half,half"),
        ([], "cannot compare the experts \\(none\\)"),
        (
            [HalfVExpert(make_corridor(), ()), HalfVExpert(make_corridor(), (), discount=0.9)],
            "experts half,half have different discounts",
        ),
    ],
)
def test_make_expert_ensemble_refuses_experts_that_cannot_be_compared(experts, words):
    with pytest.raises(UsageError, match=words):
        make_expert_ensemble(experts)


def test_load_expert_makes_an_ensemble_of_comma_separated_experts(tmp_path: Path, monkeypatch):
    weights, metadata = load_checksummed(BUILTIN_WEIGHTS / "cartpole.safetensors")
    save_checksummed(tmp_path / "mine.safetensors", {name: -w for name, w in weights.items()}, metadata)
    monkeypatch.chdir(tmp_path)
    problem = ControlProblem(make=CartPole, horizon=20, expert="cartpole, mine.safetensors").fill_defaults(1, ())
    assert problem.expert == f"cartpole,{tmp_path.resolve() / 'mine.safetensors'}"
    expert = problem.loaded_expert
    one = load_expert("cartpole", CartPole())
    assert isinstance(expert, QExpertEnsemble) and len(expert.networks) == 2
    states = CartPole().reset(np.arange(9))
    other = load_expert("mine.safetensors", CartPole())
    np.testing.assert_array_equal(expert.q(states), np.minimum(one.q(states), other.q(states)))
    assert len(problem.build(0).fingerprint) == 2 * len(
        ControlProblem(make=CartPole, expert="cartpole").build(0).fingerprint
    )
    with pytest.raises(UsageError, match="no expert 'nobody'"):
        load_expert("cartpole,nobody", CartPole())


def test_load_expert_makes_an_ensemble_of_robot_critics():
    expert = load_expert("hopper,hopper", MuJoCo("hopper"))
    one = load_expert("hopper", MuJoCo("hopper"))
    states = MuJoCo("hopper").reset(np.arange(5))
    assert isinstance(expert, StateValueExpertEnsemble) and isinstance(one, ActorCriticExpert)
    np.testing.assert_array_equal(expert.act(states, 0), one.act(states, 0))
    np.testing.assert_array_equal(expert.v(states), one.v(states))
