"""Each oracle against values computed by hand."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from gymnasium.spaces import Discrete

from aggrevated.core.errors import DataError
from aggrevated.oracles import CostToGo, scatter_to_steps
from aggrevated.oracles.advantage import AdvantageOracle, TakenActionOracle, leave_one_out_mean
from aggrevated.oracles.q_star import QStarOracle
from aggrevated.oracles.reward_to_go import RewardToGoOracle
from aggrevated.oracles.zero_one import ExpertActionOracle, ZeroOneOracle, make_zero_one_oracle
from aggrevated.rollout.trajectories import Trajectories
from helpers.tiny_mdp import (
    Q_STAR,
    Home,
    TinyExpert,
    TinyMdp,
    Walk,
    every_trajectory,
    linear_policy,
    random_trajectories,
)


@dataclass(frozen=True)
class ConstantExpert:
    """Expert with the same Q in every state."""

    row: tuple[float, ...]
    name: str = "constant"

    def q(self, states):
        return np.tile(np.array(self.row), (len(states), 1))

    def act(self, states, t):
        return np.zeros(len(states), np.int64)


def test_q_star_oracle_matches_hand_computed_costs(two_trajectories):
    costs = QStarOracle(TinyExpert())(two_trajectories)
    expected = [[[2.25, 2, 1], [3, 2, 4], [0, 0, 0]], [[0.5, 3, 1], [1.5, 2, 0.5], [1, 2, 0]]]
    np.testing.assert_array_equal(costs.values, np.array(expected, np.float32))
    np.testing.assert_array_equal(costs.weight, [[1, 1, 0], [1, 1, 1]])
    assert (costs.queries, costs.simulator_steps, costs.has_all_actions) == (5, 0, True)
    assert costs.values.dtype == costs.weight.dtype == np.float32


def test_advantage_oracle_of_q_star_matches_hand_computed_costs(two_trajectories):
    costs = AdvantageOracle(QStarOracle(TinyExpert()))(two_trajectories)
    expected = [[[1.25, 1, 0], [1, 0, 2], [0, 0, 0]], [[0, 2.5, 0.5], [1, 1.5, 0], [1, 2, 0]]]
    np.testing.assert_array_equal(costs.values, np.array(expected, np.float32))
    assert costs.queries == 5


def test_taken_action_oracle_selects_cost_of_taken_action(two_trajectories):
    costs = TakenActionOracle(QStarOracle(TinyExpert()))(two_trajectories)
    np.testing.assert_array_equal(costs.values, [[1, 4, 0], [0.5, 0.5, 2]])
    assert not costs.has_all_actions and costs.queries == 5
    costs = TakenActionOracle(AdvantageOracle(QStarOracle(TinyExpert())))(two_trajectories)
    np.testing.assert_array_equal(costs.values, [[0, 2, 0], [0, 0, 2]])


def test_taken_action_oracle_rejects_oracle_of_taken_action(two_trajectories):
    with pytest.raises(AssertionError, match="remove TakenActionOracle"):
        TakenActionOracle(RewardToGoOracle())(two_trajectories)


def test_zero_one_oracle_matches_hand_computed_costs(two_trajectories):
    """π* takes 2 in state 0, 1 in state 1, 0 in state 2."""
    costs = ZeroOneOracle(TinyExpert(), Discrete(3))(two_trajectories)
    expected = [[[1, 1, 0], [1, 0, 1], [0, 0, 0]], [[0, 1, 1], [1, 1, 0], [1, 1, 0]]]
    np.testing.assert_array_equal(costs.values, np.array(expected, np.float32))
    assert costs.queries == 5


def test_zero_one_oracle_passes_time_to_expert():
    class ClockExpert:
        def act(self, states, t):
            return np.full(len(states), t)

    trajectories = replace(random_trajectories(k=2, t=3), mask=np.ones((2, 3), bool))
    costs = ZeroOneOracle(ClockExpert(), Discrete(3))(trajectories)
    np.testing.assert_array_equal(costs.values, np.tile(1 - np.eye(3), (2, 1, 1)))


def test_expert_action_oracle_returns_expert_actions():
    """The expert takes (0, −x/2) in state x."""
    x = np.array([[[1.0], [0.5]], [[-2.0], [0.0]]])
    mask = np.array([[True, True], [True, False]])
    nothing = np.zeros((2, 2))
    trajectories = Trajectories(x, x, np.ones((2, 2, 2), np.float32), nothing, mask, ~mask, horizon=2)
    costs = ExpertActionOracle(Home(), Walk.action_space)(trajectories)
    np.testing.assert_array_equal(costs.expert_actions, [[[0, -0.5], [0, -0.25]], [[0, 1], [0, 0]]])
    np.testing.assert_array_equal(costs.weight, mask)
    assert (costs.queries, costs.simulator_steps, costs.has_all_actions) == (3, 0, False)
    assert costs.expert_actions.dtype == costs.weight.dtype == np.float32 and set(costs.arrays) == {
        "values",
        "weight",
        "expert_actions",
    }


def test_expert_action_oracle_passes_time_to_expert():
    class ClockExpert:
        def act(self, states, t):
            return np.full((len(states), 2), [t, -t], np.float32)

    trajectories = replace(random_trajectories(k=2, t=3), mask=np.ones((2, 3), bool))
    np.testing.assert_array_equal(
        ExpertActionOracle(ClockExpert(), Walk.action_space)(trajectories).expert_actions,
        [[[0, 0], [1, -1], [2, -2]]] * 2,
    )


def test_make_zero_one_oracle_chooses_oracle_by_action_space():
    assert make_zero_one_oracle(TinyExpert(), TinyMdp.action_space) == ZeroOneOracle(TinyExpert(), Discrete(3))
    assert make_zero_one_oracle(Home(), Walk.action_space) == ExpertActionOracle(Home(), Walk.action_space)


def test_reward_to_go_oracle_matches_hand_computed_costs(two_trajectories):
    costs = RewardToGoOracle()(two_trajectories)
    np.testing.assert_array_equal(costs.values, [[4, 4, 0], [2, 2, 2]])
    np.testing.assert_array_equal(costs.weight, [[1, 1, 0], [1, 1, 1]])
    assert (costs.queries, costs.simulator_steps, costs.has_all_actions) == (0, 0, False)


def test_reward_to_go_oracle_mean_under_expert_is_q_star():
    """Σ_τ ρ(τ | s₁, a₁) Σ_t c_t = Q*_1(s₁, a₁) if π* acts from the second step on; here it always acts."""
    every = every_trajectory(linear_policy(), alpha=1.0)
    reward_to_go = RewardToGoOracle()(every.trajectories).values
    for t in range(3):
        for s, a in enumerate(TinyExpert().act(np.arange(3)[:, None], t)):
            weight = every.probability * (every.trajectories.states[:, t, 0] == s) * every.trajectories.mask[:, t]
            weight = weight * every.trajectories.by_expert.all(axis=1)
            assert weight @ reward_to_go[:, t] / weight.sum() == pytest.approx(Q_STAR[t, s, a], abs=1e-6)


def test_leave_one_out_mean_matches_hand_computed_values():
    values = np.array([[1.0, 10.0, 5.0], [2.0, 20.0, 0.0], [6.0, 0.0, 0.0]])
    mask = np.array([[True, True, True], [True, True, False], [True, False, False]])
    expected = [[4.0, 20.0, 0.0], [3.5, 10.0, 5.0], [1.5, 15.0, 5.0]]
    np.testing.assert_array_equal(leave_one_out_mean(values, mask), expected)


def test_advantage_oracle_of_reward_to_go_matches_hand_computed_costs(two_trajectories):
    costs = AdvantageOracle(RewardToGoOracle())(two_trajectories)
    np.testing.assert_array_equal(costs.values, [[2, 2, 0], [-2, -2, 2]])  # only one trajectory at t = 3: no baseline


def test_leave_one_out_mean_is_independent_of_own_costs():
    values = np.random.default_rng(0).normal(size=(5, 3))
    mask = np.ones((5, 3), bool)
    before = leave_one_out_mean(values, mask)
    values[2] = 100.0
    after = leave_one_out_mean(values, mask)
    np.testing.assert_allclose(after[2], before[2], atol=1e-12)
    assert (after[[0, 1, 3, 4]] != before[[0, 1, 3, 4]]).all()


def test_scatter_to_steps_places_values_at_live_steps(two_trajectories):
    actual = scatter_to_steps(two_trajectories, np.arange(1, 6))
    np.testing.assert_array_equal(actual, [[1, 2, 0], [3, 4, 5]])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_q_star_oracle_rejects_non_finite_costs_of_expert(two_trajectories, bad):
    sentence = (
        f"the expert constant gave costs-to-go that are not finite (number 1 is {bad}) in step 0 of the episode of "
        "seed 0; check its weights, and that it was made for this simulator"
    )
    with pytest.raises(DataError) as error:
        QStarOracle(ConstantExpert((1.0, bad, 0.0)))(two_trajectories)
    assert str(error.value) == sentence
    assert error.value.exit_code == 65


def test_cost_to_go_rejects_nan_values():
    with pytest.raises(DataError, match="not finite at 1 of 6 entries"):
        CostToGo(np.array([[0.0, np.nan, 1.0], [0.0, 0.0, 0.0]]), np.ones((2, 3)))


def test_cost_to_go_rejects_mismatched_shapes():
    with pytest.raises(AssertionError):
        CostToGo(np.zeros((2, 3, 4)), np.ones((2, 4)))


def test_advantage_of_expert_actions_is_zero_on_tiny_mdp():
    """A*(s, π*(s)) = 0 along trajectories of the expert."""
    from aggrevated.rollout.roll_in import RollInPolicy, roll_in

    trajectories = roll_in(TinyMdp(), RollInPolicy(TinyExpert(), None, 1.0), np.arange(16))
    assert not TakenActionOracle(AdvantageOracle(QStarOracle(TinyExpert())))(trajectories).values.any()
