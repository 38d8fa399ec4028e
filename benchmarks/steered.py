"""Two decent policies made by hand: one direction of the observation, realised in the paper's layer of 16 ReLU."""

from collections.abc import Sequence

import torch

from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead


def steered(actions: int, direction: Sequence[float], gain: float) -> FeedForwardPolicy:
    """Logits that run linearly from −gain·(w·o) for the first action to +gain·(w·o) for the last one.

    Eight of the 16 units are relu(w·o), eight relu(−w·o): their difference is w·o.
    """
    policy = FeedForwardPolicy(len(direction), CategoricalHead(actions))
    first, last = policy.network[0], policy.network[2]
    signs = torch.tensor([1.0, -1.0]).repeat(8)
    with torch.no_grad():
        first.weight.copy_(torch.outer(signs, torch.tensor(direction)))
        last.weight.copy_(torch.outer(torch.linspace(-gain, gain, actions), signs / 8))
    return policy


def balancing() -> FeedForwardPolicy:
    """Keeps CartPole up for all of 500 steps."""
    return steered(2, (0.1, 0.3, 2.0, 0.6), gain=5.0)


def swinging() -> FeedForwardPolicy:
    """Pushes Acrobot's second link the way it moves; the tip is up after about 100 steps."""
    return steered(3, (0.0, 0.0, 0.0, 0.0, 0.0, 1.0), gain=2.0)
