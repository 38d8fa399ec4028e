"""Q* from a critic: by hand, and exactly Q* on average with an exact critic."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from aggrevated.oracles.value_function import ValueFunctionOracle
from aggrevated.rollout.trajectories import Trajectories
from helpers.tiny_mdp import EXPERT, Q_STAR, every_trajectory, linear_policy, with_expert_steps

V_STAR = Q_STAR.min(axis=2)


@dataclass(frozen=True)
class Critic:
    """Critic with V(s) = 10, 20, 40 in states 0, 1, 2 at any time."""

    discount: float = 0.5
    name: str = "critic"

    def act(self, states, t):
        return EXPERT[states[:, 0]]

    def v(self, states):
        return np.array([10.0, 20.0, 40.0])[states[:, 0]]


class ExactCritic(Critic):
    """Critic with V* of the tiny MDP."""

    def v(self, states):
        return V_STAR[states[:, 1], states[:, 0]]


@pytest.fixture
def three_trajectories() -> Trajectories:
    """Return s = 0, 1, which ends it; s = 2, 0, 1, which the horizon ends; s = 1, which ends at once."""
    s = np.array([[0, 1, 0], [2, 0, 1], [1, 0, 0]])
    states = np.stack([s, np.tile(np.arange(3), (3, 1)), np.zeros_like(s)], axis=2)
    mask = np.array([[1, 1, 0], [1, 1, 1], [1, 0, 0]], bool)
    states[~mask] = 0
    costs = np.array([[1.0, 4.0, 0.0], [0.0, 2.0, 3.0], [4.0, 0.0, 0.0]])
    return Trajectories(states, np.eye(3)[s], np.zeros_like(s), costs, mask, np.zeros_like(mask), horizon=3)


def test_value_function_oracle_matches_hand_computed_costs(three_trajectories):
    """The cost is c + V(s')/2, or c where the episode ended; the last step before the horizon has weight 0."""
    costs = ValueFunctionOracle(Critic(), advantage=False)(three_trajectories)
    np.testing.assert_array_equal(costs.values[:, :2], [[1 + 10, 4], [0 + 5, 2 + 10], [4, 0]])
    np.testing.assert_array_equal(costs.weight, [[1, 1, 0], [1, 1, 0], [1, 0, 0]])
    assert (costs.queries, costs.simulator_steps, costs.diverged) == (6, 0, 0)
    assert costs.values.dtype == costs.weight.dtype == np.float32 and not costs.has_all_actions
    costs = ValueFunctionOracle(Critic())(three_trajectories)
    np.testing.assert_array_equal(costs.values[:, :2], [[11 - 10, 4 - 20], [5 - 40, 12 - 10], [4 - 20, 0]])


def test_value_function_oracle_weights_last_step_before_horizon(three_trajectories):
    """All three trajectories ended early: no step is left out."""
    early = replace(three_trajectories, horizon=5)
    np.testing.assert_array_equal(ValueFunctionOracle(Critic())(early).weight, three_trajectories.mask)


def test_value_function_oracle_gives_expert_steps_zero_weight(three_trajectories):
    mixed = with_expert_steps(three_trajectories, 0.5)
    costs = ValueFunctionOracle(Critic())(mixed)
    assert mixed.by_expert[:, :2].any()
    np.testing.assert_array_equal(costs.weight[:, :2], mixed.by_learner[:, :2])
    np.testing.assert_array_equal(costs.values, ValueFunctionOracle(Critic())(three_trajectories).values)


@pytest.mark.parametrize("advantage", [False, True])
def test_value_function_oracle_mean_with_exact_critic_is_q_star(advantage):
    """E[c + V*(s_{t+1}) | s_t, a_t] = Q*_t(s_t, a_t) over every trajectory, at every step with a weight."""
    every = every_trajectory(linear_policy())
    costs = ValueFunctionOracle(ExactCritic(discount=1.0), advantage)(every.trajectories)
    assert not costs.weight[:, 2].any()
    s = every.trajectories.states[..., 0]
    a = every.trajectories.actions
    for t in range(2):
        for i in range(3):
            for j in range(3):
                weight = every.probability * ((s == i) & (a == j))[:, t] * costs.weight[:, t]
                expected = Q_STAR[t, i, j] - advantage * V_STAR[t, i]
                assert weight @ costs.values[:, t] / weight.sum() == pytest.approx(expected, abs=1e-6)
