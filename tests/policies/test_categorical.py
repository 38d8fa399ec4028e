"""The softmax policy: its initialization, sampling and copies."""

import numpy as np
import pytest
import torch

from aggrevated.core.rng import make_generator
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead

SOFTMAX_012 = np.array([0.09003057, 0.24472847, 0.66524096])


def make_constant_policy(logits):
    """Return a policy with these logits for every observation."""
    policy = FeedForwardPolicy(1, CategoricalHead(len(logits)), hidden=())
    with torch.no_grad():
        policy.network[0].weight.zero_()
        policy.network[0].bias.copy_(torch.tensor(logits))
    return policy


def test_categorical_policy_softmax_matches_hand_computed_probabilities():
    policy = make_constant_policy([0.0, 1.0, 2.0])
    probs = policy.distribution(torch.zeros(1, 1, 1), torch.ones(1, 1)).probs
    np.testing.assert_allclose(probs[0, 0].detach().numpy(), SOFTMAX_012, atol=1e-7)


def test_feed_forward_actor_matches_hand_computed_relu_network():
    """o = 2: hidden = relu(1 · 2 − 1, −1 · 2 + 0) = (1, 0); logits = (3 · 1 + 5 · 0 + 0.5, −1 · 1 + 0 − 0.5)."""
    policy = FeedForwardPolicy(1, CategoricalHead(2), hidden=(2,))
    weights = [[[1.0], [-1.0]], [-1.0, 0.0], [[3.0, 5.0], [-1.0, 7.0]], [0.5, -0.5]]
    with torch.no_grad():
        for parameter, value in zip(policy.parameters(), weights, strict=True):
            parameter.copy_(torch.tensor(value))
    actor = policy.actor()
    logits, _ = actor.parameters(np.array([[2.0]], np.float32), actor.memory(1))
    np.testing.assert_array_equal(logits, [[3.5, -1.5]])


def test_categorical_actor_gumbel_samples_match_the_softmax():
    """χ² with 2 degrees of freedom exceeds 13.82 with probability 1/1000."""
    actor = make_constant_policy([0.0, 1.0, 2.0]).actor()
    n = 100_000
    noise = actor.noise([make_generator(7)], n)[0]
    logits, _ = actor.parameters(np.zeros((n, 1), np.float32), actor.memory(n))
    counts = np.bincount(actor.choose(logits, noise), minlength=3)
    expected = SOFTMAX_012 * n
    assert ((counts - expected) ** 2 / expected).sum() < 13.82


def test_categorical_policy_predict_samples_match_the_softmax():
    """Unseeded, so the bound is wide: χ² with 2 degrees of freedom exceeds 50 with probability 10⁻¹⁰."""
    actions, _ = make_constant_policy([0.0, 1.0, 2.0]).predict(np.zeros((20_000, 1), np.float32))
    expected = SOFTMAX_012 * 20_000
    assert ((np.bincount(actions, minlength=3) - expected) ** 2 / expected).sum() < 50


def test_categorical_actor_without_noise_takes_the_mode():
    actor = make_constant_policy([0.0, 1.0, 2.0]).actor()
    logits = np.array([[0.0, 1.0, 2.0], [5.0, 1.0, 2.0]])
    np.testing.assert_array_equal(actor.choose(logits, 0.0), [2, 0])


def test_categorical_actor_rules_out_an_action_with_a_zero_draw_silently():
    class Zero:
        def random(self, shape, dtype):
            out = np.full(shape, 0.5, dtype)
            out[..., 0] = 0.0
            return out

    noise = make_constant_policy([0.0, 0.0]).actor().noise([Zero()], 4)
    assert (noise[..., 0] == -np.inf).all() and np.isfinite(noise[..., 1]).all()
    assert (make_constant_policy([9.0, 0.0]).actor().choose(np.tile([9.0, 0.0], (4, 1)), noise[0]) == 1).all()


def test_feed_forward_policy_starts_close_to_uniform():
    policy = FeedForwardPolicy(4, CategoricalHead(2), generator=torch.Generator().manual_seed(0))
    observations = torch.randn(1, 1000, 4, generator=torch.Generator().manual_seed(1))
    probs = policy.distribution(observations, torch.ones(1, 1000)).probs
    assert 0.2 < probs.min() < 0.5 < probs.max() < 0.8


@pytest.mark.parametrize(("inputs", "hidden"), [(1, ()), (1, (16,)), (4, (1,)), (4, (16,))])
def test_feed_forward_actor_shares_no_memory_with_its_policy(inputs, hidden):
    """A matrix with one row or column is contiguous in both orders: transposing it makes no copy."""
    policy = FeedForwardPolicy(inputs, CategoricalHead(3), hidden)
    network = policy.actor().network
    for copied in (*network.weights, *network.biases):
        for parameter in policy.parameters():
            assert not np.shares_memory(copied, parameter.detach().numpy())


def test_feed_forward_policy_of_the_paper_has_114_parameters():
    """Counts 4 · 16 + 16 + 16 · 2 + 2."""
    assert sum(parameter.numel() for parameter in FeedForwardPolicy(4, CategoricalHead(2), (16,)).parameters()) == 114
