"""One step of every action, then V*: by hand, and exactly Q* with an exact critic."""

from dataclasses import dataclass

import numpy as np
import pytest

from aggrevated.core.errors import UserCodeError
from aggrevated.oracles import Feedback
from aggrevated.oracles.advantage import AdvantageOracle
from aggrevated.oracles.one_step_lookahead import LookaheadOracle
from aggrevated.oracles.value_function import ValueFunctionOracle, ValueFunctionSettings
from helpers.tiny_mdp import COST, EXPERT, Q_STAR, TinyMdp, Walk, every_trajectory, linear_policy, with_legal


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
    """Critic with V* of the tiny MDP at the time in the state; it rejects states beyond the horizon."""

    def v(self, states):
        return Q_STAR.min(axis=2)[states[:, 1], states[:, 0]]


def test_lookahead_oracle_matches_hand_computed_costs(two_trajectories):
    """With coin 0, state 0 leads to 0, 2, 1, state 1 to 0, 1 and the end; after the horizon no cost is added."""
    costs = LookaheadOracle(TinyMdp(), Critic())(two_trajectories)
    np.testing.assert_array_equal(costs.values[0], [[1 + 5, 2 + 20, 0 + 10], [3 + 5, 1 + 10, 4], [0, 0, 0]])
    np.testing.assert_array_equal(costs.values[1, 2], COST[0])
    np.testing.assert_array_equal(costs.weight, two_trajectories.mask)
    assert (costs.queries, costs.simulator_steps, costs.diverged) == (5, 15, 0)


def test_lookahead_oracle_mean_with_exact_critic_is_q_star():
    every = every_trajectory(linear_policy())
    costs = LookaheadOracle(TinyMdp(), ExactCritic(discount=1.0))(every.trajectories)
    s = every.trajectories.states[..., 0]
    for t in range(3):
        for i in range(3):
            weight = every.probability * ((s == i) & every.trajectories.mask)[:, t]
            np.testing.assert_allclose(weight @ costs.values[:, t] / weight.sum(), Q_STAR[t, i], atol=1e-6)


def test_lookahead_oracle_does_not_step_illegal_actions(two_trajectories):
    restricted = with_legal(two_trajectories)
    costs = LookaheadOracle(TinyMdp(), Critic())(restricted)
    legal = restricted.action_mask & restricted.mask[..., None]
    assert costs.simulator_steps == legal.sum() < 15 and not costs.values[~legal].any()


def test_lookahead_oracle_excludes_and_counts_diverged_steps(two_trajectories):
    class Diverging(TinyMdp):
        def step(self, state, action):
            following, cost, done = super().step(state, action)
            return following, np.where((state[:, 1] == 1) & (action == 1), np.nan, cost), done

    costs = LookaheadOracle(Diverging(), Critic())(two_trajectories)
    np.testing.assert_array_equal(costs.weight, [[2, 0, 0], [1.5, 0, 1.5]])
    assert costs.diverged == 2 and not costs.values[:, 1].any()


def test_lookahead_oracle_reports_episode_of_a_failing_critic(two_trajectories):
    class Broken(Critic):
        def v(self, states):
            return np.where(states[:, 0] == 0, np.inf, 0.0)

    with pytest.raises(UserCodeError, match=r"values that are not finite \(inf\).*check its weights") as error:
        LookaheadOracle(TinyMdp(), Broken())(two_trajectories)
    assert error.value.seed == 0


def test_value_function_settings_choose_oracle_by_action_space():
    settings = ValueFunctionSettings()
    assert (
        settings.get_feedback(finite=True) is Feedback.ALL_ACTIONS
        and settings.get_feedback(finite=False) is Feedback.TAKEN_ACTION
    )
    assert settings.build(TinyMdp(), Critic()) == AdvantageOracle(LookaheadOracle(TinyMdp(), Critic()))
    assert settings.build(Walk(), Critic()) == ValueFunctionOracle(Critic())
    only = ValueFunctionSettings(all_actions=False)
    assert only.get_feedback(finite=True) is Feedback.TAKEN_ACTION and only.build(
        TinyMdp(), Critic()
    ) == ValueFunctionOracle(Critic())
