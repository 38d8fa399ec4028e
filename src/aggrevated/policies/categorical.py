"""Feed-forward policies over a finite set of actions; the paper's has one hidden layer of 16 ReLU."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch.distributions import Categorical

from aggrevated.arrays import Array
from aggrevated.policies import Policy
from aggrevated.policies.networks import NumpyNetwork, relu_network


class CategoricalPolicy(Policy):
    """π_θ(a|o) = softmax of a ReLU network."""

    def __init__(
        self,
        observation_size: int,
        actions: int,
        hidden: Sequence[int] = (16,),
        generator: torch.Generator | None = None,
    ) -> None:
        """A random policy. Its last layer starts at a tenth, so that π₁ is nearly uniform and rules no action out."""
        super().__init__()
        self.network = relu_network([observation_size, *hidden, actions], generator, last_gain=0.1)

    def distribution(self, observations: Tensor, mask: Tensor) -> Categorical:
        """Categorical [K, T] over the actions."""
        return Categorical(logits=self.network(observations), validate_args=False)

    def actor(self) -> "CategoricalActor":
        return CategoricalActor(NumpyNetwork.copy_of(self.network))


@dataclass(frozen=True)
class CategoricalActor:
    """The policy on NumPy; samples by Gumbel-argmax, which costs one addition and one argmax a step."""

    network: NumpyNetwork

    def memory(self, count: int) -> Array:
        return np.zeros((count, 0), np.float32)

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        """Gumbel noise: argmax_a (logit_a + noise_a) is then distributed as the softmax of the logits."""
        shape = (horizon, len(self.network.biases[-1]))
        uniforms = np.stack([generator.random(shape, np.float32) for generator in generators])
        with np.errstate(divide="ignore"):  # a uniform of exactly 0 is noise −∞: that action is not drawn
            noise: Array = -np.log(-np.log(uniforms))
        return noise

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        """Logits [n, A]."""
        return self.network(observation), memory

    def choose(self, parameters: Array, noise: Array | float) -> Array:
        """Actions [n]."""
        actions: Array = (parameters + noise).argmax(axis=1)
        return actions
