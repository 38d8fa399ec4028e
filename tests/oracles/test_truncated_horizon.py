"""Truncated horizon of THOR: by hand, in its limits, and on a tree where a larger k corrects a wrong critic."""

from dataclasses import dataclass
from itertools import islice, product

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from aggrevated.algorithm import Learner, aggrevated
from aggrevated.core.errors import UsageError
from aggrevated.losses.taken_action import taken_action_loss
from aggrevated.oracles.truncated_horizon import TruncatedHorizonOracle, TruncatedHorizonSettings, query_v_star
from aggrevated.oracles.value_function import ValueFunctionOracle
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.updates.natural import NaturalUpdate
from helpers.tiny_mdp import Q_STAR, Home, TinyExpert, every_trajectory, linear_policy, random_trajectories, with_legal

V_STAR = Q_STAR.min(axis=2)
DEPTH = 3
EDGES = np.array(
    [[2, 3], [1, 4], [2, 0], [9, 9], [1, 2], [5, 6], [3, 1]], float
)  # costs of left and right at each node
GUESSED_VALUES = np.array([0, 2, 6, 0, 3, 0, 7], float)  # values of the nodes by a wrong critic


@dataclass(frozen=True)
class Tree:
    """Binary tree of seven nodes with root 0, whose children are 1 and 2; episodes end after three steps."""

    horizon: int = DEPTH + 2
    name: str = "tree"
    action_space = Discrete(2)
    observation_space = Box(0.0, 1.0, (7,), np.float32)

    def reset(self, seeds):
        return np.zeros((len(seeds), 1), np.int64)

    def observe(self, state):
        return np.eye(7, dtype=np.float32)[state[:, 0]]

    def step(self, state, action):
        node = state[:, 0]
        following = 2 * node + 1 + action
        return np.where(following < 7, following, 0)[:, None], EDGES[node, action], following >= 7


@dataclass(frozen=True)
class GuessedCritic:
    """Critic with given values, right or wrong."""

    table: np.ndarray
    discount: float = 1.0
    name: str = "guess"

    def act(self, states, t):
        return np.zeros(len(states), np.int64)

    def v(self, states):
        return self.table[states[:, 0]]


def all_paths() -> Trajectories:
    """Return the eight episodes of the tree."""
    actions = np.array(list(product((0, 1), repeat=DEPTH)))
    nodes = np.zeros((8, DEPTH, 1), np.int64)
    costs = np.zeros((8, DEPTH))
    tree = Tree()
    state = tree.reset(np.zeros(8))
    for t in range(DEPTH):
        nodes[:, t] = state
        state, costs[:, t], done = tree.step(state, actions[:, t])
    assert done.all()
    mask = np.ones((8, DEPTH), bool)
    observations = np.eye(7, dtype=np.float32)[nodes[..., 0]]
    return Trajectories(nodes, observations, actions, costs, mask, ~mask, horizon=tree.horizon)


def exact_values() -> np.ndarray:
    """Return V* of the nodes, by backward induction."""
    v = np.zeros(15)
    for node in reversed(range(7)):
        v[node] = min(EDGES[node, a] + v[2 * node + 1 + a] for a in (0, 1))
    return v[:7]


def test_truncated_horizon_oracle_matches_hand_computed_costs():
    """The path left, right, left: nodes 0, 1, 4, costs 2, 4, 1; the guessed values are 0, 2, 3."""
    path = all_paths().take(np.array([0b010]))
    for k, expected in {1: [2 + 2, 4 + 3, 1], 2: [2 + 4 + 3, 4 + 1, 1], 3: [7, 5, 1], 9: [7, 5, 1]}.items():
        costs = TruncatedHorizonOracle(GuessedCritic(GUESSED_VALUES), k, advantage=False)(path)
        np.testing.assert_array_equal(costs.values, [expected])
        np.testing.assert_array_equal(costs.weight, [[1, 1, 1]])
        costs = TruncatedHorizonOracle(GuessedCritic(GUESSED_VALUES), k)(path)
        np.testing.assert_array_equal(costs.values, [np.array(expected) - [0, 2, 3]])
    costs = TruncatedHorizonOracle(GuessedCritic(GUESSED_VALUES, discount=0.5), 2, advantage=False)(path)
    np.testing.assert_array_equal(costs.values, [[2 + 4 / 2 + 3 / 4, 4 + 1 / 2, 1]])


def test_truncated_horizon_oracle_with_exact_critic_and_k_1_is_the_advantage():
    paths = all_paths()
    v = exact_values()
    actual = TruncatedHorizonOracle(GuessedCritic(v), 1)(paths).values
    node = paths.states[..., 0]
    action = paths.actions
    following = np.append(v, np.zeros(8))[2 * node + 1 + action]
    np.testing.assert_allclose(actual, EDGES[node, action] + following - v[node], atol=1e-6)
    assert (actual >= 0).all() and (actual == 0).any(axis=0).all()


@pytest.mark.parametrize("advantage", [False, True])
def test_truncated_horizon_oracle_without_critic_uses_min_q_and_averages_q_star(advantage):
    """E[c + V*(s_{t+1}) | s_t, a_t] = Q*_t(s_t, a_t) over every trajectory of the tiny MDP."""
    every = every_trajectory(linear_policy())
    costs = TruncatedHorizonOracle(TinyExpert(), 1, advantage)(every.trajectories)
    s = every.trajectories.states[..., 0]
    a = every.trajectories.actions
    for t, i, j in product(range(2), range(3), range(3)):
        weight = every.probability * ((s == i) & (a == j))[:, t] * costs.weight[:, t]
        expected = Q_STAR[t, i, j] - advantage * V_STAR[t, i]
        assert weight @ costs.values[:, t] / weight.sum() == pytest.approx(expected, abs=1e-6)


def test_truncated_horizon_oracle_beyond_horizon_is_reward_to_go_minus_v():
    """The critic's values telescope: to the end, or to the last recorded state at the horizon."""
    trajectories = random_trajectories(k=30, t=6)
    guess = np.random.default_rng(0).normal(size=7)
    expert = GuessedCritic(guess)
    early = Trajectories(**{**vars(trajectories), "states": np.arange(180).reshape(30, 6, 1) % 7})
    v = query_v_star(expert, early)
    reward_to_go = np.cumsum(early.costs[:, ::-1], axis=1)[:, ::-1]
    costs = TruncatedHorizonOracle(expert, 6)(early)
    np.testing.assert_allclose(costs.values, (reward_to_go - v) * early.mask, atol=1e-6)
    np.testing.assert_array_equal(costs.weight, early.mask)
    cut = Trajectories(**{**vars(early), "horizon": 6})
    last = early.mask[:, -1] * (v[:, -1] - early.costs[:, -1])  # V* replaces the last step
    costs = TruncatedHorizonOracle(expert, 6)(cut)
    np.testing.assert_allclose(costs.values[:, :5], ((reward_to_go + last[:, None] - v) * early.mask)[:, :5], atol=1e-6)
    assert not costs.weight[:, 5].any() and not costs.values[:, 5].any()


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("horizon", [6, 7])
def test_truncated_horizon_oracle_is_the_sum_of_k_shaped_costs(k, horizon):
    """Sums c + γ V*(s') − V*(s) over the recorded steps."""
    random_part = random_trajectories(k=20, t=6)
    states = np.arange(120).reshape(20, 6, 1) % 7
    trajectories = Trajectories(**{**vars(random_part), "states": states, "horizon": horizon})
    expert = GuessedCritic(np.random.default_rng(1).normal(size=7), discount=0.9)
    one = ValueFunctionOracle(expert)(trajectories)
    shaped = np.pad(one.values * one.weight, ((0, 0), (0, k)))
    expected = sum(0.9**i * shaped[:, i : i + 6] for i in range(k))
    np.testing.assert_allclose(TruncatedHorizonOracle(expert, k)(trajectories).values, expected, atol=1e-5)


@pytest.mark.parametrize("advantage", [False, True])
def test_truncated_horizon_oracle_with_k_1_has_bits_of_value_function_oracle(advantage):
    """Computes c + γ V*(s') − V*(s) in float64, from left to right."""
    trajectories = Trajectories(**{**vars(random_trajectories(k=50, t=6)), "states": np.ones((50, 6, 1), int)})
    expert = GuessedCritic(np.random.default_rng(2).normal(size=7), discount=0.99)
    v = np.pad(query_v_star(expert, trajectories), ((0, 0), (0, 1)))
    expected = trajectories.costs + 0.99 * v[:, 1:] - (v[:, :-1] if advantage else 0.0)
    for oracle in (ValueFunctionOracle(expert, advantage), TruncatedHorizonOracle(expert, 1, advantage)):
        costs = oracle(trajectories)
        np.testing.assert_array_equal(costs.values, (expected * trajectories.mask).astype(np.float32))


def cost_of_lookahead_policy(k: int) -> float:
    """Return the cost of the policy that minimizes, at each node, k steps plus the guessed value after them."""
    paths = all_paths()
    values = TruncatedHorizonOracle(GuessedCritic(GUESSED_VALUES), k, advantage=False)(paths).values
    nodes = paths.states[..., 0]
    total = 0.0
    state = np.zeros((1, 1), np.int64)
    for t in range(DEPTH):
        here = nodes[:, t] == state[0, 0]
        q = [values[here & (paths.actions[:, t] == a), t].min() for a in (0, 1)]
        state, cost, _ = Tree().step(state, np.array([np.argmin(q)]))
        total += cost[0]
    return total


def test_truncated_horizon_oracle_with_larger_k_corrects_wrong_critic():
    """k = 1 goes left, 2 + 2 < 3 + 6, then left, 1 + 0 < 4 + 3, and pays 9; k = 2 sees the 9; k = 3 sees all costs."""
    assert [cost_of_lookahead_policy(k) for k in (1, 2, 3)] == [12.0, 7.0, 4.0]
    assert exact_values()[0] == all_paths().costs.sum(axis=1).min() == 4.0


@pytest.mark.parametrize(("k", "expected"), [(1, 12.0), (3, 4.0)])
def test_learning_with_truncated_horizon_oracle_reaches_expected_return(k, expected):
    """With k = 1 the learner relies on the critic; with k = 3 it is reinforcement learning and finds the optimum."""
    ends = []
    for seed in range(3):  # the last iteration of a single run may be an outlier
        learner = Learner(FeedForwardPolicy(7, CategoricalHead(2), hidden=()), NaturalUpdate(0.05, damping=0.1))
        oracle = TruncatedHorizonOracle(GuessedCritic(GUESSED_VALUES), k)
        loop = aggrevated(learner, Tree(), None, oracle, taken_action_loss, k=100, validation_episodes=50, seed=seed)
        ends += [line.current_return for line in islice(loop, 30, 60)]
    assert np.median(ends) == pytest.approx(-expected, abs=0.3)


def test_query_v_star_ignores_illegal_actions():
    trajectories = with_legal(every_trajectory(linear_policy()).trajectories)
    q = TinyExpert().q(trajectories.states.reshape(-1, 3))
    v = query_v_star(TinyExpert(), trajectories)
    least = np.where(trajectories.action_mask, q.reshape(*trajectories.mask.shape, 3), np.inf).min(axis=2)
    np.testing.assert_array_equal(v[trajectories.mask], least[trajectories.mask])
    assert (v > q.min(axis=1).reshape(v.shape))[trajectories.mask].any()


def test_truncated_horizon_settings_reject_expert_without_v_or_q():
    with pytest.raises(
        UsageError, match="truncated-horizon needs an expert with the method v or q, which home does not have"
    ):
        TruncatedHorizonSettings().build(Tree(), Home())
