"""Loss of supervised learning and DAgger: −log π of the best action."""

import numpy as np
import pytest

from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.losses.likelihood import best_action_nll_loss
from aggrevated.oracles import CostToGo
from aggrevated.oracles.zero_one import ZeroOneOracle
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import GaussianHead
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from helpers.tiny_mdp import (
    TinyExpert,
    TinyMdp,
    gradient,
    linear_policy,
    random_costs,
    random_trajectories,
    randomise,
    with_vectors,
)


def test_best_action_nll_loss_of_uniform_policy_matches_hand_computed_value():
    """The expert takes 3 steps in every episode of the tiny MDP; each costs log 3, and the sum is divided by H·K."""
    policy = linear_policy(None).float()
    expert = TinyExpert()
    trajectories = roll_in(TinyMdp(), RollInPolicy(expert, None, 1.0), np.arange(16))
    costs = ZeroOneOracle(expert, TinyMdp.action_space)(trajectories)
    assert best_action_nll_loss(policy, trajectories, costs).item() == pytest.approx(np.log(3), rel=1e-6)
    assert all_actions_loss(policy, trajectories, costs).item() == pytest.approx(2 / 3, rel=1e-6)


def test_best_action_nll_loss_has_gradient_where_policy_is_confident_and_wrong():
    """At logits (20, 0, 0) with action 1 best, Σ_a π(a) A(a) has no gradient left; this loss has one."""
    policy = linear_policy(None)
    policy.network[0].bias.data[0] = 20.0
    trajectories = random_trajectories()
    costs = CostToGo(np.tile([1.0, 0.0, 1.0], (6, 4, 1)), trajectories.mask * 1.0)
    assert np.abs(gradient(policy, all_actions_loss, trajectories, costs)).max() < 1e-8
    assert np.abs(gradient(policy, best_action_nll_loss, trajectories, costs)).max() > 0.1


def test_best_action_nll_loss_of_gaussian_policy_matches_hand_computed_value():
    """The loss is Σ_j (a_j − μ_j)²/2σ² + log σ + log √2π per step, divided by H·K."""
    policy = randomise(FeedForwardPolicy(3, GaussianHead(2), hidden=()).double(), 0)
    trajectories = with_vectors(random_trajectories(), 2)
    expert_actions = np.random.default_rng(1).normal(size=(6, 4, 2))
    costs = CostToGo(np.zeros((6, 4)), trajectories.mask * 1.0, expert_actions=expert_actions)
    weight, bias = (p.detach().numpy() for p in policy.network[0].parameters())
    deviation = np.exp(policy.head.log_deviation.detach().numpy())
    away = (expert_actions - trajectories.observations @ weight.T - bias) / deviation
    each = (away**2 / 2 + np.log(deviation) + np.log(2 * np.pi) / 2).sum(axis=2)
    expected = each[trajectories.mask].sum() / (5 * 6)
    assert best_action_nll_loss(policy, trajectories, costs).item() == pytest.approx(expected, rel=1e-12)


def test_best_action_nll_loss_rejects_taken_action_costs():
    trajectories = random_trajectories()
    with pytest.raises(AssertionError, match="needs expert actions or the costs of all actions"):
        best_action_nll_loss(linear_policy(), trajectories, random_costs(trajectories, actions=None))
