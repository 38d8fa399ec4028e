"""LOLS and SEARN rollouts against backward induction, and against rollouts of π* alone."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from aggrevated.collection import check_any_cost_finite
from aggrevated.core.errors import DataError
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.oracles.lols import LolsOracle
from aggrevated.oracles.monte_carlo import MonteCarloOracle
from aggrevated.oracles.reward_to_go import RewardToGoOracle
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead, GaussianHead
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.policies.window import WindowPolicy
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.simulators.cartpole import CartPole
from aggrevated.simulators.tabular import (
    TabularExpert,
    TabularSimulator,
    compute_policy_q_values,
    make_greedy_policy,
    make_random_mdps,
)
from helpers.tabular_policy import tabular_probabilities
from helpers.tiny_mdp import Q_STAR, Home, TinyExpert, TinyMdp, Walk, every_trajectory, linear_policy, randomise

KINDS = {
    "feed-forward": lambda size, head: FeedForwardPolicy(size, head),
    "window": lambda size, head: WindowPolicy(size, head, width=3),
    "LSTM": lambda size, head: RecurrentPolicy(size, head, 8, "lstm"),
    "GRU": lambda size, head: RecurrentPolicy(size, head, 8, "gru"),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@dataclass(frozen=True)
class SignExpert:
    """Suboptimal expert that depends on the signs of the state and on the time."""

    name: str = "swinger"

    def act(self, states, t):
        return ((states > 0).sum(axis=1) + t) % 2


def random_table(mdp: TabularSimulator, seed: int, scale: float = 1.0) -> FeedForwardPolicy:
    """Return a random table of π(a|s, t), nearly deterministic for a large scale."""
    policy = FeedForwardPolicy(mdp.observation_space.shape[0], CategoricalHead(mdp.costs.shape[1]), hidden=())
    return randomise(policy, seed, scale)


def deterministic_mdp() -> TabularSimulator:
    """Return an MDP of five states and three actions, with deterministic transitions and costs of 0 or 1."""
    generator = np.random.default_rng(0)
    transitions = np.eye(5)[generator.integers(5, size=(5, 3))]
    return TabularSimulator(transitions, generator.integers(2, size=(5, 3)).astype(float), np.full(5, 0.2), horizon=6)


def stochastic_mdp() -> TabularSimulator:
    transitions, costs, start = make_random_mdps(1, 4, 3, seed=1)
    return TabularSimulator(transitions[0], costs[0], start[0], horizon=4)


@dataclass(frozen=True)
class MyopicExpert(TabularExpert):
    """Expert that minimizes the immediate cost, and is worse than π*."""

    def q(self, states):
        return self.mdp.costs[states[:, 0].astype(int)]

    @property
    def policy(self):
        """Return π as [H, S, A]."""
        return np.broadcast_to(make_greedy_policy(self.mdp.costs), self.mdp.q_star.shape)


@pytest.mark.parametrize("simulator", [CartPole(horizon=30), Walk(horizon=9)], ids=["finite", "vectors"])
@pytest.mark.parametrize("advantage", [False, True])
@pytest.mark.parametrize("steps", [None, 2])
@every_kind
def test_lols_oracle_with_beta_1_equals_monte_carlo_oracle_bit_for_bit(kind, steps, advantage, simulator):
    finite = simulator.name == "cartpole"
    expert, head = (SignExpert(), CategoricalHead(2)) if finite else (Home(), GaussianHead(2))
    policy = randomise(KINDS[kind](simulator.observation_space.shape[0], head), 1, 0.4)
    trajectories = roll_in(
        simulator, RollInPolicy(expert, policy.actor(), 0.3), derive_seeds(0, SeedPurpose.ROLL_IN, 1, 12)
    )
    costs = LolsOracle(simulator, expert, 1.0, steps, advantage, all_actions=False)(trajectories, policy)
    expected = MonteCarloOracle(simulator, expert, steps, advantage=advantage)(trajectories)
    for name, array in expected.arrays.items():
        np.testing.assert_array_equal(costs.arrays[name], array, err_msg=name)
    assert (costs.queries, costs.simulator_steps) == (expected.queries, expected.simulator_steps)


def test_lols_oracle_with_beta_1_estimates_q_star_of_every_action():
    """Enumerates every trajectory: E[estimate | s_t] = Q*_t(s, a) for each s, a and t."""
    every = every_trajectory(linear_policy())
    policy = linear_policy().float()
    costs = LolsOracle(TinyMdp(), TinyExpert(), 1.0, advantage=False)(every.trajectories, policy)
    s = every.trajectories.states[..., 0]
    for t in range(3):
        for i in range(3):
            weight = every.probability * ((s == i) & every.trajectories.mask)[:, t]
            np.testing.assert_allclose(weight @ costs.values[:, t] / weight.sum(), Q_STAR[t, i], atol=1e-6)
    advantages = LolsOracle(TinyMdp(), TinyExpert(), 1.0)(every.trajectories, policy)
    np.testing.assert_array_equal(advantages.values, costs.values - costs.values.min(axis=2, keepdims=True))


@pytest.mark.parametrize("scale", [1e4, -1e4])
def test_lols_oracle_with_beta_0_equals_learner_q_by_backward_induction(scale):
    """Exact, since both the MDP and the learner are deterministic."""
    mdp = deterministic_mdp()
    policy = random_table(mdp, 3, scale)
    pi = tabular_probabilities(policy, mdp)
    assert ((pi < 1e-6) | (pi > 1 - 1e-6)).all()
    trajectories = roll_in(
        mdp, RollInPolicy(TabularExpert(mdp), policy.actor(), 0.5), derive_seeds(0, SeedPurpose.ROLL_IN, 1, 30)
    )
    q = compute_policy_q_values(mdp.transitions, mdp.costs, pi)
    s = trajectories.states[..., 0].astype(int)
    t = np.arange(6)
    costs = LolsOracle(mdp, TabularExpert(mdp), 0.0, advantage=False)(trajectories, policy)
    np.testing.assert_allclose(costs.values, q[t, s], atol=1e-5)
    advantage = LolsOracle(mdp, TabularExpert(mdp), 0.0)(trajectories, policy)
    np.testing.assert_allclose(advantage.values, (q - q.min(axis=2, keepdims=True))[t, s], atol=1e-5)


def expected_q(beta, pi, expert):
    """Return Q of the rollout policy, [H, S, A]: LOLS draws who acts for each rollout, SEARN for each step."""
    mdp = expert.mdp
    if beta is None:
        return compute_policy_q_values(mdp.transitions, mdp.costs, 0.5 * expert.policy + 0.5 * pi)  # α_n is 0.5 below
    of_expert, of_learner = (
        compute_policy_q_values(mdp.transitions, mdp.costs, policy) for policy in (expert.policy, pi)
    )
    return beta * of_expert + (1 - beta) * of_learner


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0, None], ids=["learner", "LOLS", "expert", "SEARN"])
def test_lols_oracle_mean_is_q_of_the_rollout_policy(beta):
    """Mean of 4,000 trajectories of a stochastic MDP, for each t, s and a, within 4.5 standard errors."""
    mdp = stochastic_mdp()
    expert = MyopicExpert(mdp)
    policy = random_table(mdp, 5)
    trajectories = roll_in(
        mdp, RollInPolicy(expert, policy.actor(), 0.5), derive_seeds(0, SeedPurpose.ROLL_IN, 1, 4000)
    )
    values = LolsOracle(mdp, expert, beta, advantage=False)(trajectories, policy).values
    expected = expected_q(beta, tabular_probabilities(policy, mdp), expert)
    s = trajectories.states[..., 0].astype(int)
    other = expected_q(0.7, tabular_probabilities(policy, mdp), expert)
    assert np.abs(expected - other).max() > 0.08  # the test can distinguish the values of β
    for t in range(4):
        for i in range(4):
            here = values[s[:, t] == i, t]
            error = here.std(axis=0) / np.sqrt(len(here))
            assert (np.abs(here.mean(axis=0) - expected[t, i]) <= 4.5 * error + 1e-6).all(), (t, i)


@every_kind
def test_lols_oracle_rollouts_continue_with_learner_memory(kind):
    """A deterministic learner repeats its roll-in, so that the taken action costs exactly the reward-to-go."""
    simulator = CartPole(horizon=40)
    policy = randomise(KINDS[kind](4, CategoricalHead(2)), 1, 0.6)
    with torch.no_grad():
        for parameter in list(policy.parameters())[-2:]:  # the last layer
            parameter *= 1e5
    trajectories = roll_in(simulator, RollInPolicy(None, policy.actor()), derive_seeds(0, SeedPurpose.ROLL_IN, 1, 20))
    reward_to_go = RewardToGoOracle()(trajectories).values
    taken = LolsOracle(simulator, SignExpert(), 0.0, advantage=False, all_actions=False)(trajectories, policy)
    np.testing.assert_array_equal(taken.values, reward_to_go)
    every = LolsOracle(simulator, SignExpert(), 0.0, advantage=False)(trajectories, policy).values
    np.testing.assert_array_equal(
        np.take_along_axis(every, trajectories.actions[..., None], axis=2)[..., 0], reward_to_go
    )
    advantages = LolsOracle(simulator, SignExpert(), 0.0, all_actions=False)(trajectories, policy)
    assert not advantages.values.any()  # the learner chose this action


@dataclass(frozen=True)
class MaskedMdp(TinyMdp):
    """Tiny MDP in which action s is illegal in state s."""

    def action_mask(self, state):
        return np.arange(3) != state[:, :1]

    def step(self, state, action):
        assert (action != state[:, 0]).all()
        return super().step(state, action)


class LegalExpert(TinyExpert):
    def act(self, states, t):
        return np.array([2, 0, 0])[states[:, 0]]


@pytest.mark.parametrize("beta", [0.0, 0.5, None])
def test_lols_oracle_evaluates_legal_actions_only(beta):
    policy = linear_policy().float()
    trajectories = roll_in(MaskedMdp(), RollInPolicy(LegalExpert(), policy.actor(), 0.4), np.arange(40))
    q = LolsOracle(MaskedMdp(), LegalExpert(), beta, advantage=False)(trajectories, policy).values
    assert not q[~trajectories.action_mask].any()
    advantages = LolsOracle(MaskedMdp(), LegalExpert(), beta)(trajectories, policy).values
    least = np.where(trajectories.action_mask, advantages, np.inf).min(axis=2)
    np.testing.assert_array_equal(least[trajectories.mask], 0)


@dataclass(frozen=True)
class BrittleMdp(TinyMdp):
    """Tiny MDP in which action 2 in state 1 gives a cost that is not finite."""

    def step(self, state, action):
        following, cost, done = super().step(state, action)
        return following, np.where((state[:, 0] == 1) & (action == 2), np.nan, cost), done


def test_lols_oracle_excludes_and_counts_diverged_rollouts():
    policy = linear_policy().float()
    trajectories = roll_in(TinyMdp(), RollInPolicy(None, policy.actor()), np.arange(40))
    costs = LolsOracle(BrittleMdp(), TinyExpert(), 1.0)(trajectories, policy)
    broken = trajectories.mask & (trajectories.states[..., 0] == 1)
    assert broken.any() and not costs.weight[broken].any() and (costs.weight[trajectories.mask & ~broken] > 0).all()
    assert costs.diverged == broken.sum() and not costs.values[broken].any()
    with pytest.raises(DataError, match=r"every one of .* rollouts diverged"):
        check_any_cost_finite(LolsOracle(BrittleMdp(), TinyExpert(), 1.0)(single_step(trajectories), policy))


def single_step(trajectories):
    """Return the first step of one trajectory that began in state 1."""
    first = trajectories.take(np.flatnonzero(trajectories.states[:, 0, 0] == 1)[:1])
    arrays = {name: getattr(first, name)[:, :1] for name in ("states", "observations", "actions", "costs", "mask")}
    return type(first)(**arrays, by_expert=first.by_expert[:, :1], horizon=3, action_mask=first.action_mask[:, :1])
