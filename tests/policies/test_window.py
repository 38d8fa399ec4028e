"""The window: the last w observations, the oldest first, zeros before the first."""

import numpy as np
import torch

from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead, GaussianHead
from aggrevated.policies.window import WindowPolicy
from helpers.tiny_mdp import randomise


def test_window_policy_matches_hand_computed_means():
    """Two observed numbers, a window of 3, mean = the digits in it: six positions, the oldest first."""
    policy = WindowPolicy(2, GaussianHead(1), hidden=(), width=3)
    with torch.no_grad():
        policy.inner.network[0].weight.copy_(10.0 ** torch.arange(5, -1, -1))
        policy.inner.network[0].bias.zero_()
    observations = np.array([[[1, 2], [3, 4], [5, 6], [7, 8]], [[9, 0], [0, 1], [0, 0], [2, 3]]], np.float32)
    expected = [[12, 1234, 123456, 345678], [90, 9001, 900100, 10023]]
    sequence_means = policy.distribution(torch.from_numpy(observations), torch.ones(2, 4, dtype=torch.bool)).mean
    np.testing.assert_array_equal(sequence_means[..., 0].detach(), expected)
    actor = policy.actor()
    found = []
    memory = actor.memory(2)
    assert memory.shape == (2, 4)
    for t in range(4):
        mean, memory = actor.parameters(observations[:, t], memory)
        found.append(mean[:, 0])
    np.testing.assert_array_equal(np.stack(found, 1), expected)
    np.testing.assert_array_equal(memory, [[5, 6, 7, 8], [0, 0, 2, 3]])


def test_window_policy_of_width_1_is_a_feed_forward_policy():
    window = randomise(WindowPolicy(3, CategoricalHead(2), width=1), 0)
    plain = randomise(FeedForwardPolicy(3, CategoricalHead(2)), 0)
    observations = torch.randn(4, 6, 3, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(4, 6, dtype=torch.bool)
    assert torch.equal(window.distribution(observations, mask).logits, plain.distribution(observations, mask).logits)
    assert window.actor().memory(4).shape == (4, 0)


def test_window_policy_forgets_observations_older_than_the_window():
    policy = randomise(WindowPolicy(3, CategoricalHead(2), width=4), 0)
    observations = torch.randn(4, 9, 3, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(4, 9)
    before = policy.distribution(observations, mask).logits.clone()
    observations[:, 2] += 1.0
    changed = (policy.distribution(observations, mask).logits != before).any(dim=2).any(dim=0)
    assert changed.tolist() == [False, False, True, True, True, True, False, False, False]


def test_window_actor_shares_no_memory_with_its_policy():
    policy = WindowPolicy(1, CategoricalHead(3), hidden=(), width=1)
    network = policy.actor().inner.network
    for copied in (*network.weights, *network.biases):
        for parameter in policy.parameters():
            assert not np.shares_memory(copied, parameter.detach().numpy())
