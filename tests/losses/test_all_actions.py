"""Eq. 10 and 12 on the tiny MDP."""

import numpy as np
import pytest
import torch

from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.oracles import CostToGo
from aggrevated.oracles.advantage import AdvantageOracle
from aggrevated.oracles.q_star import QStarOracle
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.rollout.trajectories import Trajectories
from helpers.tiny_mdp import (
    TinyExpert,
    TinyMdp,
    deep_policy,
    every_trajectory,
    exact_gradient,
    gradient,
    linear_policy,
    probabilities,
    random_costs,
    random_trajectories,
)

Q = QStarOracle(TinyExpert())


@pytest.mark.parametrize("oracle", [Q, AdvantageOracle(Q)], ids=["Q", "A"])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.7])
def test_all_actions_gradient_expectation_is_the_exact_gradient(oracle, alpha):
    policy = linear_policy()
    expected = exact_gradient(probabilities(policy), alpha)
    mean = every_trajectory(policy, alpha).expectation(lambda tau: gradient(policy, all_actions_loss, tau, oracle(tau)))
    assert np.abs(expected).max() > 0.01
    np.testing.assert_allclose(mean, expected, atol=1e-12)


def test_all_actions_gradient_of_uniform_policy_matches_hand_computed_values():
    """K = 16 trajectories of one step, one for each start: Σ_a ∇π Q with π = 1/3 and ρ₀ = (1/2, 1/4, 1/4), H = 1."""
    policy = linear_policy(None).float()
    trajectories = roll_in(TinyMdp(horizon=1), RollInPolicy(None, policy.actor()), np.arange(16))
    # W[:, 0]: 1/2 · 1/3 · (2.25, 2, 1) − mean 1.75; W[:, 1]: 1/4 · 1/3 · …
    weights = np.array([[1 / 12, 1 / 24, -1 / 8], [-1 / 72, -5 / 144, 7 / 144], [-1 / 12, 1 / 8, -1 / 24]]).T
    expected = [*weights.reshape(-1), -1 / 72, 19 / 144, -17 / 144]
    np.testing.assert_allclose(gradient(policy, all_actions_loss, trajectories, Q(trajectories)), expected, atol=1e-7)


@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_all_actions_gradient_is_the_same_with_q_and_with_advantage(alpha):
    """The gradients of the probabilities sum to zero, so a constant subtracted from all actions cancels."""
    policy = deep_policy()
    every = every_trajectory(policy, alpha).trajectories
    for j in range(0, every.count, 5):
        one = every.take(np.array([j]))
        with_q, with_a = (gradient(policy, all_actions_loss, one, oracle(one)) for oracle in (Q, AdvantageOracle(Q)))
        np.testing.assert_allclose(with_q, with_a, atol=1e-15)


def test_all_actions_loss_divides_by_horizon_times_trajectories():
    """One trajectory of one step out of H = 4: the loss is Σ_a π(a) Q(a) / 4, not / 1."""
    policy = linear_policy(None)
    observations = np.eye(3)[None, :1]
    ones = np.ones((1, 1), bool)
    trajectories = Trajectories(observations, observations, np.zeros((1, 1), int), ones * 1.0, ones, ~ones, horizon=4)
    costs = CostToGo(np.array([[[3.0, 6.0, 9.0]]]), np.ones((1, 1)))
    assert all_actions_loss(policy, trajectories, costs).item() == pytest.approx(6.0 / 4)


def test_all_actions_loss_multiplies_steps_by_their_weights():
    """With M of H steps queried at weight H/M, only the queried steps contribute."""
    policy = deep_policy()
    trajectories = random_trajectories()
    costs = random_costs(trajectories)
    weight = np.zeros_like(costs.weight)
    weight[:, 0] = 4.0
    weighted = gradient(policy, all_actions_loss, trajectories, CostToGo(costs.values, weight))
    first = CostToGo(costs.values[:, :1], np.ones((6, 1)))
    short = Trajectories(
        *(
            getattr(trajectories, name)[:, :1]
            for name in ("states", "observations", "actions", "costs", "mask", "by_expert")
        ),
        trajectories.horizon,
    )
    np.testing.assert_allclose(weighted, 4 * gradient(policy, all_actions_loss, short, first), atol=1e-14)


def test_all_actions_loss_ignores_padded_steps():
    policy = deep_policy()
    trajectories = random_trajectories()
    costs = random_costs(trajectories)
    before = gradient(policy, all_actions_loss, trajectories, costs)
    trajectories.observations[~trajectories.mask] = 123.0
    np.testing.assert_array_equal(gradient(policy, all_actions_loss, trajectories, costs), before)


def test_all_actions_loss_rejects_taken_action_costs():
    trajectories = random_trajectories()
    with pytest.raises(AssertionError, match="use taken_action_loss"):
        all_actions_loss(deep_policy(), trajectories, random_costs(trajectories, actions=None))


def test_all_actions_gradient_in_float32_is_close_to_float64():
    policy = deep_policy()
    trajectories = random_trajectories()
    exact = gradient(policy, all_actions_loss, trajectories, random_costs(trajectories))
    small = random_trajectories(dtype=np.float32)
    rough = gradient(policy.float(), all_actions_loss, small, random_costs(small))
    assert next(policy.parameters()).dtype == torch.float32
    np.testing.assert_allclose(rough, exact, atol=1e-6)
