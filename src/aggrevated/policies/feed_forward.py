"""Feed-forward policies: fully connected networks with ReLU."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import torch
from gymnasium.spaces import Space
from torch import Tensor, nn
from torch.distributions import Distribution

from aggrevated.actors.feed_forward import FeedForwardActor, NumpyNetwork
from aggrevated.policies import DEFAULT_WIDTHS, HiddenSettings, Policy, get_input_size, make_initial_generator
from aggrevated.policies.heads import Head
from aggrevated.storage import JsonDict


def make_relu_network(
    sizes: Sequence[int], generator: torch.Generator | None = None, last_gain: float = 1.0
) -> nn.Sequential:
    """Return a ReLU network with He's initialization and zero biases; `last_gain` scales the last weights."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        linear = nn.Linear(inputs, outputs)
        nn.init.kaiming_uniform_(linear.weight, nonlinearity="relu", generator=generator)
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.ReLU()]
    with torch.no_grad():
        linear.weight *= last_gain
    return nn.Sequential(*layers[:-1])


class FeedForwardPolicy(Policy):
    """π_θ(a|o): a fully connected network with ReLU, without memory.

    The weights of its last layer are scaled by 0.1, so that π₁ is nearly uniform and excludes no action.

    Args:
        observation_size: Size of an observation vector.
        head: Output layer, for the action space.
        hidden: Units of each hidden layer.
        generator: Generator of the initial weights; by default they are always the same.

    Example:
        >>> from aggrevated import CategoricalHead
        >>> policy = FeedForwardPolicy(4, CategoricalHead(2), hidden=(16,))
        >>> action, _ = policy.predict([0.0, 0.1, 0.0, -0.1], deterministic=True)
        >>> int(action) in (0, 1)
        True
    """

    memoryless = True
    registry_name = "mlp"

    def __init__(
        self,
        observation_size: int,
        head: Head,
        hidden: Sequence[int] = DEFAULT_WIDTHS,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.sizes = [observation_size, *hidden, head.outputs]
        self.network = make_relu_network(self.sizes, generator or make_initial_generator(0), last_gain=0.1)
        self.head = head

    def distribution(self, observations: Tensor, mask: Tensor, legal: Tensor | None = None) -> Distribution:
        return self.head.distribution(self.head.complete(self.network(observations)), legal)

    def actor(self) -> FeedForwardActor:
        return FeedForwardActor(NumpyNetwork.copy_of(self.network), self.head.sampler())

    def architecture(self) -> JsonDict:
        """Return the JSON from which `from_architecture` builds an equal policy."""
        return {"observations": self.sizes[0], "hidden": self.sizes[1:-1]}

    @classmethod
    def from_architecture(cls, shape: JsonDict, head: Head) -> Self:
        return cls(shape["observations"], head, shape["hidden"])


@dataclass(frozen=True)
class MlpSettings(HiddenSettings):
    """Fully connected network, without memory."""

    name = "mlp"

    def build(self, observations: Space[Any], head: Head, seed: int) -> FeedForwardPolicy:
        return FeedForwardPolicy(get_input_size(observations), head, self.hidden, make_initial_generator(seed))
