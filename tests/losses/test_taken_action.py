"""Eq. 11 and 13 on the tiny MDP, also with steps of the expert, and with the learner's reward-to-go."""

import numpy as np
import pytest
import torch

from aggrevated.core.errors import UsageError
from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.losses.taken_action import taken_action_loss
from aggrevated.oracles.advantage import AdvantageOracle, TakenActionOracle
from aggrevated.oracles.q_star import QStarOracle
from aggrevated.oracles.reward_to_go import RewardToGoOracle
from aggrevated.rollout.trajectories import Trajectories
from helpers.tiny_mdp import (
    COST,
    START,
    TinyExpert,
    deep_policy,
    every_trajectory,
    exact_gradient,
    gradient,
    linear_policy,
    probabilities,
    random_costs,
    random_trajectories,
    transitions,
)

Q = QStarOracle(TinyExpert())


@pytest.mark.parametrize("oracle", [TakenActionOracle(Q), TakenActionOracle(AdvantageOracle(Q))], ids=["Q", "A"])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.7])
def test_taken_action_gradient_expectation_is_the_exact_gradient(oracle, alpha):
    """Enumerates every trajectory and who acted. With α > 0, 1/(1 − α) is a float32: seven digits."""
    policy = linear_policy()
    expected = exact_gradient(probabilities(policy), alpha)
    mean = every_trajectory(policy, alpha).expectation(
        lambda tau: gradient(policy, taken_action_loss, tau, oracle(tau))
    )
    assert np.abs(expected).max() > 0.01
    np.testing.assert_allclose(mean, expected, atol=1e-12 if alpha == 0 else 1e-7)


def test_taken_action_gradient_has_lower_variance_with_advantage():
    """Exact over every trajectory: Σ ρ(τ) ‖∇(τ)‖² decreases, the mean does not change."""
    policy = linear_policy()
    every = every_trajectory(policy)
    second = [
        every.expectation(lambda tau, oracle=oracle: (gradient(policy, taken_action_loss, tau, oracle(tau)) ** 2).sum())
        for oracle in (TakenActionOracle(Q), TakenActionOracle(AdvantageOracle(Q)))
    ]
    assert second[1] < 0.5 * second[0]


def test_taken_action_gradient_mean_over_actions_is_all_actions_gradient():
    """Σ_a π(a|s) · (the estimate if a is taken) = Eq. 10, in every state and at every t."""
    policy = deep_policy()
    pi = probabilities(policy)
    for s in range(3):
        for t in range(3):
            ones = np.ones((1, 1), bool)
            observation = np.eye(3)[None, s : s + 1]
            state = np.array([[[s, t, 0]]])
            taken = [
                Trajectories(state, observation, np.array([[a]]), ones * 1.0, ones, ~ones, horizon=3) for a in range(3)
            ]
            mean = sum(
                pi[s, a] * gradient(policy, taken_action_loss, tau, TakenActionOracle(Q)(tau))
                for a, tau in enumerate(taken)
            )
            np.testing.assert_allclose(mean, gradient(policy, all_actions_loss, taken[0], Q(taken[0])), atol=1e-15)


def true_policy_gradient(policy, horizon, starts=(0, 1, 2)):
    """Return ∇_θ μ(π_θ) / H by differentiating the recursion of d_t."""
    pi = policy.distribution(torch.eye(3, dtype=torch.float64)[None], torch.ones(1, 3)).probs[0]
    rho = np.zeros(3)
    rho[list(starts)] = START[list(starts)] / START[list(starts)].sum()
    d = torch.from_numpy(rho)
    total = 0.0
    for _ in range(horizon):
        total = total + torch.einsum("s,sa,sa->", d, pi, torch.from_numpy(COST))
        d = torch.einsum("s,sa,sax->x", d, pi, torch.from_numpy(transitions()))
    return torch.cat([g.reshape(-1) for g in torch.autograd.grad(total / horizon, list(policy.parameters()))]).numpy()


def test_taken_action_gradient_with_reward_to_go_is_the_policy_gradient():
    """REINFORCE: with the learner's cost-to-go the loss has the expected gradient ∇μ/H."""
    policy = deep_policy()
    mean = every_trajectory(policy).expectation(
        lambda tau: gradient(policy, taken_action_loss, tau, RewardToGoOracle()(tau))
    )
    expected = true_policy_gradient(policy, 3)
    assert np.abs(expected).max() > 0.01
    np.testing.assert_allclose(mean, expected, atol=1e-12)


def test_leave_one_out_baseline_keeps_taken_action_gradient_unbiased():
    """Enumerates pairs of trajectories, K = 2, each the other's baseline; some end at once and are no baseline."""
    policy = deep_policy()
    starts = (0, 2)
    every = every_trajectory(policy, horizon=2, starts=starts)
    count = len(every.probability)
    oracle = AdvantageOracle(RewardToGoOracle())
    mean = 0.0
    second = 0.0
    plain = 0.0
    for i in range(count):
        for j in range(count):
            pair = every.trajectories.take(np.array([i, j]))
            probability = every.probability[i] * every.probability[j]
            estimate = gradient(policy, taken_action_loss, pair, oracle(pair))
            mean = mean + probability * estimate
            second += probability * (estimate**2).sum()
            plain += probability * (gradient(policy, taken_action_loss, pair, RewardToGoOracle()(pair)) ** 2).sum()
    np.testing.assert_allclose(mean, true_policy_gradient(policy, 2, starts), atol=1e-7)
    assert second != plain  # the baseline has an effect


def test_taken_action_loss_rejects_all_actions_costs():
    trajectories = random_trajectories()
    with pytest.raises(AssertionError, match="use TakenActionOracle"):
        taken_action_loss(deep_policy(), trajectories, random_costs(trajectories))


def test_taken_action_loss_rejects_alpha_1():
    every = every_trajectory(linear_policy(), alpha=1.0).trajectories
    with pytest.raises(UsageError, match="use an alpha below 1"):
        taken_action_loss(linear_policy(), every, TakenActionOracle(Q)(every))
