"""Line 9 of Algorithm 1: a copy of the best policy so far, which may be the first."""

import numpy as np
import pytest
import torch

from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.simulators.cartpole import CartPole
from aggrevated.validation import BestPolicy, evaluate_returns
from helpers.tiny_mdp import EXPERT, TinyExpert, TinyMdp, flat, linear_policy

SEEDS = np.arange(16, dtype=np.uint64)


def test_best_policy_keeps_a_copy_of_weights():
    policy = FeedForwardPolicy(3, CategoricalHead(3))
    best = BestPolicy()
    best.update_best(policy, -5.0, 0)
    expected = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter += 1.0
    assert all(torch.equal(best.weights[name], expected[name]) for name in expected)
    assert not any(tensor.requires_grad for tensor in best.weights.values())
    restored = FeedForwardPolicy(3, CategoricalHead(3))
    restored.load_state_dict(best.weights)
    assert (flat(restored) != flat(policy)).all()


def test_best_policy_replaces_weights_only_if_return_is_higher():
    policy = FeedForwardPolicy(3, CategoricalHead(3))
    best = BestPolicy()
    found = []
    for n, mean_return in enumerate([-5.0, -7.0, -3.0, -3.0, -4.0, float("nan"), -2.0]):
        best.update_best(policy, mean_return, n)
        found.append((best.n, best.best_return))
    assert found == [(0, -5), (0, -5), (2, -3), (2, -3), (2, -3), (2, -3), (6, -2)]
    assert best.initial_return == -5.0


def test_evaluate_returns_of_expert_match_hand_computed_mean():
    """−V*_1 averaged over the starts: (8 · 1 + 4 · 3 + 4 · 0.5) / 16 = 1.375; no episode ends early: 48 steps."""
    returns, steps = evaluate_returns(TinyExpert(), TinyMdp(), SEEDS)
    assert (returns.mean(), steps) == (-1.375, 48)


def test_evaluate_returns_of_imitating_policy_equal_those_of_expert():
    policy = linear_policy(None).float()
    with torch.no_grad():
        policy.network[0].weight.copy_(20 * torch.eye(3)[torch.from_numpy(EXPERT)].T)
    np.testing.assert_array_equal(
        evaluate_returns(policy, TinyMdp(), SEEDS, deterministic=True)[0],
        evaluate_returns(TinyExpert(), TinyMdp(), SEEDS)[0],
    )


def test_evaluate_returns_of_uniform_policy_match_exact_mean():
    """μ = 403/108 by enumeration in fractions; 8,000 episodes, 4 standard deviations."""
    returns, _ = evaluate_returns(linear_policy(None).float(), TinyMdp(), np.arange(8000, dtype=np.uint64))
    assert -returns.mean() == pytest.approx(403 / 108, abs=4 * returns.std() / np.sqrt(8000))


def test_evaluate_returns_are_determined_by_seeds():
    policy = FeedForwardPolicy(4, CategoricalHead(2))
    first, repeated = (evaluate_returns(policy, CartPole(), SEEDS)[0] for _ in range(2))
    np.testing.assert_array_equal(first, repeated)
