"""Fully connected networks with ReLU."""

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
    """A ReLU network with He's initialisation and zero biases; the last layer's weights are scaled by `last_gain`."""
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
    """π_θ(a|o): it sees the present observation only."""

    memoryless = True
    registry_name = "mlp"

    def __init__(
        self,
        observation_size: int,
        head: Head,
        hidden: Sequence[int] = DEFAULT_WIDTHS,
        generator: torch.Generator | None = None,
    ) -> None:
        """A random policy, without a generator always the same one.

        Its last layer starts at a tenth, so that π₁ is nearly uniform and rules no action out.
        """
        super().__init__()
        self.sizes = [observation_size, *hidden, head.outputs]
        self.network = make_relu_network(self.sizes, generator or make_initial_generator(0), last_gain=0.1)
        self.head = head

    def distribution(self, observations: Tensor, mask: Tensor, legal: Tensor | None = None) -> Distribution:
        return self.head.distribution(self.head.complete(self.network(observations)), legal)

    def actor(self) -> FeedForwardActor:
        return FeedForwardActor(NumpyNetwork.copy_of(self.network), self.head.sampler())

    def architecture(self) -> JsonDict:
        return {"observations": self.sizes[0], "hidden": self.sizes[1:-1]}

    @classmethod
    def from_architecture(cls, shape: JsonDict, head: Head) -> Self:
        return cls(shape["observations"], head, shape["hidden"])


@dataclass(frozen=True)
class MlpSettings(HiddenSettings):
    """It remembers nothing."""

    name = "mlp"

    def build(self, observations: Space[Any], head: Head, seed: int) -> FeedForwardPolicy:
        return FeedForwardPolicy(get_input_size(observations), head, self.hidden, make_initial_generator(seed))
