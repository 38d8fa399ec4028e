"""Heads turn a network's outputs into action distributions: categorical for finite sets, Gaussian for vectors.

Each has a NumPy twin, its `sampler`, that chooses actions from the same outputs with noise drawn beforehand.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor, nn
from torch.distributions import Categorical, Distribution, Independent, Normal

from aggrevated.arrays import Array

ILLEGAL = -1e8  # a logit that is never chosen, and finite, so that a step with no legal action is no NaN
LEAST = np.float32(-3e38)


class Sampler(Protocol):
    """The NumPy twin of a head."""

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        """[K, H, A]: all that is random in the actions of K trajectories, each drawn from its own generator."""
        ...

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None) -> Array:
        """[n] or [n, A] actions: drawn from the distribution with `noise` [n, A], its mode with noise 0."""
        ...


class Head(Protocol):
    """What follows a network."""

    outputs: int  # how many numbers the network must give

    def complete(self, outputs: Tensor) -> Tensor:
        """The outputs [..., A] with the head's own parameters appended: all that the distribution depends on."""
        ...

    def distribution(self, completed: Tensor, legal: Tensor | None = None) -> Distribution:
        """The action distributions, from what `complete` gave; actions that are not `legal` have probability 0."""
        ...

    def within(self, actions: Array) -> Array:
        """The actions as an environment may be given them."""
        ...

    def sampler(self) -> Sampler:
        """A NumPy copy of the head as it is now."""
        ...


class CategoricalHead(nn.Module):
    """π(a) = softmax of the outputs."""

    def __init__(self, actions: int) -> None:
        super().__init__()
        self.outputs = actions

    def complete(self, outputs: Tensor) -> Tensor:
        return outputs

    def distribution(self, completed: Tensor, legal: Tensor | None = None) -> Categorical:
        logits = completed if legal is None else completed.masked_fill(~legal, ILLEGAL)
        return Categorical(logits=logits, validate_args=False)

    def within(self, actions: Array) -> Array:
        return actions

    def sampler(self) -> "CategoricalSampler":
        return CategoricalSampler(self.outputs)


@dataclass(frozen=True)
class CategoricalSampler:
    """Samples by Gumbel-argmax, which costs one addition and one argmax a step."""

    actions: int

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        """Gumbel noise: argmax_a (logit_a + noise_a) is then distributed as the softmax of the logits."""
        uniforms = np.stack([generator.random((horizon, self.actions), np.float32) for generator in generators])
        with np.errstate(divide="ignore"):  # a uniform of exactly 0 is noise −∞: that action is not drawn
            noise: Array = -np.log(-np.log(uniforms))
        return noise

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None) -> Array:
        """Actions [n]."""
        value = parameters + noise
        if legal is not None:  # noise of −∞ on the only legal action still leaves it above the others
            value = np.where(legal, np.maximum(value, LEAST), -np.inf)
        actions: Array = value.argmax(axis=1)
        return actions


class GaussianHead(nn.Module):
    """π(a) = N(outputs, σ²), with one learned deviation per dimension, the same in all states."""

    def __init__(
        self, size: int, log_deviation: float = -0.5, low: Array | float = -np.inf, high: Array | float = np.inf
    ) -> None:
        """`low` and `high` are the bounds of the action space, for `within`; the distribution does not know them."""
        super().__init__()
        self.outputs, self.low, self.high = size, low, high
        self.log_deviation = nn.Parameter(torch.full((size,), log_deviation))

    def complete(self, outputs: Tensor) -> Tensor:
        return torch.cat([outputs, self.log_deviation.expand_as(outputs)], dim=-1)

    def distribution(self, completed: Tensor, legal: Tensor | None = None) -> Distribution:
        assert legal is None, "a Gaussian policy has no illegal actions"
        mean, log_deviation = completed.chunk(2, dim=-1)
        return Independent(Normal(mean, log_deviation.exp(), validate_args=False), 1, validate_args=False)

    def within(self, actions: Array) -> Array:
        """The actions, clipped to the action space: what an environment is given."""
        return np.clip(actions, self.low, self.high)

    def sampler(self) -> "GaussianSampler":
        return GaussianSampler(self.log_deviation.detach().exp().numpy().copy())


@dataclass(frozen=True)
class GaussianSampler:
    """Samples as mean plus scaled normal noise."""

    deviation: Array  # [A]

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        """Standard normal noise."""
        shape = (horizon, len(self.deviation))
        return np.stack([generator.standard_normal(shape, np.float32) for generator in generators])

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None) -> Array:
        """Actions [n, A]."""
        assert legal is None, "a Gaussian policy has no illegal actions"
        actions: Array = parameters + self.deviation * noise
        return actions
