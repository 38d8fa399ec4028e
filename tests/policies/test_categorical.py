"""The softmax policy: its start, its sampling, its copies."""

import numpy as np
import pytest
import torch

from aggrevated.core.rng import make_generator
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead

SOFTMAX_012 = np.array([0.09003057, 0.24472847, 0.66524096])


def constant_policy(logits):
    """The same logits whatever is observed."""
    policy = FeedForwardPolicy(1, CategoricalHead(len(logits)), hidden=())
    with torch.no_grad():
        policy.network[0].weight.zero_()
        policy.network[0].bias.copy_(torch.tensor(logits))
    return policy


def test_softmax_by_hand():
    policy = constant_policy([0.0, 1.0, 2.0])
    probs = policy.distribution(torch.zeros(1, 1, 1), torch.ones(1, 1)).probs
    np.testing.assert_allclose(probs[0, 0].detach().numpy(), SOFTMAX_012, atol=1e-7)


def test_a_relu_network_by_hand():
    """o = 2: hidden = relu(1 · 2 − 1, −1 · 2 + 0) = (1, 0); logits = (3 · 1 + 5 · 0 + 0.5, −1 · 1 + 0 − 0.5)."""
    policy = FeedForwardPolicy(1, CategoricalHead(2), hidden=(2,))
    weights = [[[1.0], [-1.0]], [-1.0, 0.0], [[3.0, 5.0], [-1.0, 7.0]], [0.5, -0.5]]
    with torch.no_grad():
        for parameter, value in zip(policy.parameters(), weights, strict=True):
            parameter.copy_(torch.tensor(value))
    actor = policy.actor()
    logits, _ = actor.parameters(np.array([[2.0]], np.float32), actor.memory(1))
    np.testing.assert_array_equal(logits, [[3.5, -1.5]])


def test_gumbel_sampling_has_the_frequencies_of_the_softmax():
    """χ² with 2 degrees of freedom is above 13.82 once in a thousand."""
    actor = constant_policy([0.0, 1.0, 2.0]).actor()
    n = 100_000
    noise = actor.noise([make_generator(7)], n)[0]
    logits, _ = actor.parameters(np.zeros((n, 1), np.float32), actor.memory(n))
    counts = np.bincount(actor.choose(logits, noise), minlength=3)
    expected = SOFTMAX_012 * n
    assert ((counts - expected) ** 2 / expected).sum() < 13.82


def test_predict_has_the_frequencies_of_the_softmax():
    """Unseeded, so the bound is wide: χ² with 2 degrees of freedom is above 50 once in 10¹⁰."""
    actions, _ = constant_policy([0.0, 1.0, 2.0]).predict(np.zeros((20_000, 1), np.float32))
    expected = SOFTMAX_012 * 20_000
    assert ((np.bincount(actions, minlength=3) - expected) ** 2 / expected).sum() < 50


def test_noise_0_gives_the_mode():
    actor = constant_policy([0.0, 1.0, 2.0]).actor()
    logits = np.array([[0.0, 1.0, 2.0], [5.0, 1.0, 2.0]])
    np.testing.assert_array_equal(actor.choose(logits, 0.0), [2, 0])


def test_a_uniform_draw_of_exactly_0_rules_its_action_out_and_warns_no_one():
    class Zero:
        def random(self, shape, dtype):
            out = np.full(shape, 0.5, dtype)
            out[..., 0] = 0.0
            return out

    noise = constant_policy([0.0, 0.0]).actor().noise([Zero()], 4)
    assert (noise[..., 0] == -np.inf).all() and np.isfinite(noise[..., 1]).all()
    assert (constant_policy([9.0, 0.0]).actor().choose(np.tile([9.0, 0.0], (4, 1)), noise[0]) == 1).all()


def test_a_new_policy_is_close_to_uniform():
    policy = FeedForwardPolicy(4, CategoricalHead(2), generator=torch.Generator().manual_seed(0))
    observations = torch.randn(1, 1000, 4, generator=torch.Generator().manual_seed(1))
    probs = policy.distribution(observations, torch.ones(1, 1000)).probs
    assert 0.2 < probs.min() < 0.5 < probs.max() < 0.8


@pytest.mark.parametrize(("inputs", "hidden"), [(1, ()), (1, (16,)), (4, (1,)), (4, (16,))])
def test_an_actor_shares_no_memory_with_its_policy(inputs, hidden):
    """A matrix with one row or column is contiguous either way round: transposing it makes no copy."""
    policy = FeedForwardPolicy(inputs, CategoricalHead(3), hidden)
    network = policy.actor().network
    for copied in (*network.weights, *network.biases):
        for parameter in policy.parameters():
            assert not np.shares_memory(copied, parameter.detach().numpy())


def test_the_paper_s_policy_has_114_parameters():
    """4 · 16 + 16 + 16 · 2 + 2."""
    assert sum(parameter.numel() for parameter in FeedForwardPolicy(4, CategoricalHead(2), (16,)).parameters()) == 114
