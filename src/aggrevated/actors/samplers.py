"""What chooses actions from a network's outputs with noise drawn beforehand: the NumPy twins of the heads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.random import Generator

from aggrevated.core.arrays import Array
from aggrevated.kernels.elementary_functions import gumbel

LEAST = np.float32(-3e38)


class Sampler(Protocol):
    """The NumPy twin of a head."""

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        """[K, H, A]: all that is random in the actions of K trajectories, each drawn from its own generator."""
        ...

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None) -> Array:
        """[n] or [n, A] actions: drawn from the distribution with `noise` [n, A], its mode with noise 0."""
        ...

    def encode(self, actions: Array) -> Array:
        """[..., A] float32: actions as a policy that sees them does."""
        ...


@dataclass(frozen=True)
class CategoricalSampler:
    """Samples by Gumbel-argmax, which costs one addition and one argmax a step."""

    actions: int

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        """Gumbel noise: argmax_a (logit_a + noise_a) is then distributed as the softmax of the logits."""
        uniforms = np.stack([generator.random((horizon, self.actions), np.float32) for generator in generators])
        return gumbel(uniforms)

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None) -> Array:
        """Actions [n]."""
        value = parameters + noise
        if legal is not None:  # noise of −∞ on the only legal action still leaves it above the others
            value = np.where(legal, np.maximum(value, LEAST), -np.inf)
        actions: Array = value.argmax(axis=1)
        return actions

    def encode(self, actions: Array) -> Array:
        """One of A numbers is 1."""
        code: Array = (actions[..., None] == np.arange(self.actions)).astype(np.float32)
        return code


@dataclass(frozen=True)
class GaussianSampler:
    """Samples as mean plus scaled normal noise."""

    deviation: Array  # [A], in units
    centre: Array  # [A]
    unit: Array  # [A]

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        """Standard normal noise."""
        shape = (horizon, len(self.deviation))
        return np.stack([generator.standard_normal(shape, np.float32) for generator in generators])

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None) -> Array:
        """Actions [n, A]."""
        assert legal is None, "a Gaussian policy has no illegal actions"
        actions: Array = self.centre + self.unit * (parameters + self.deviation * noise)
        return actions

    def encode(self, actions: Array) -> Array:
        """In units, from the centre."""
        return ((actions - self.centre) / self.unit).astype(np.float32)
