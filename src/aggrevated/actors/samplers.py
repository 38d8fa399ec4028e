"""NumPy copies of the heads, which choose actions from a network's outputs and noise sampled before."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.random import Generator

from aggrevated.core.arrays import Array
from aggrevated.kernels.elementary_functions import gumbel

LEAST = np.float32(-3e38)


class Sampler(Protocol):
    """NumPy copy of a head."""

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        """Return the noise of all actions of K episodes of H steps, one generator per episode, [K, H, A]."""
        ...

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None) -> Array:
        """Return actions, [n] or [n, A], from parameters and noise [n, A]; noise 0 gives the mode."""
        ...

    def encode(self, actions: Array) -> Array:
        """Return actions as inputs of a policy that observes them, float32 [..., A]."""
        ...


@dataclass(frozen=True)
class CategoricalSampler:
    """Sampler of a categorical distribution, by Gumbel-argmax: one addition and one argmax a step."""

    actions: int

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        """Return Gumbel noise [K, H, A]: argmax_a (logit_a + noise_a) is a sample of softmax(logits)."""
        uniforms = np.stack([generator.random((horizon, self.actions), np.float32) for generator in generators])
        return gumbel(uniforms)

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None) -> Array:
        """Return actions [n]."""
        value = parameters + noise
        if legal is not None:  # a legal action stays above illegal ones even if its noise is −∞
            value = np.where(legal, np.maximum(value, LEAST), -np.inf)
        actions: Array = value.argmax(axis=1)
        return actions

    def encode(self, actions: Array) -> Array:
        """Return one-hot vectors, float32 [..., A]."""
        code: Array = (actions[..., None] == np.arange(self.actions)).astype(np.float32)
        return code


@dataclass(frozen=True)
class GaussianSampler:
    """Sampler of a Gaussian: the mean plus scaled normal noise."""

    deviation: Array  # [A], a multiple of `unit`
    centre: Array  # [A]
    unit: Array  # [A]

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        """Return standard normal noise, [K, H, A]."""
        shape = (horizon, len(self.deviation))
        return np.stack([generator.standard_normal(shape, np.float32) for generator in generators])

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None) -> Array:
        """Return actions [n, A]."""
        assert legal is None, "a Gaussian policy has no illegal actions"
        actions: Array = self.centre + self.unit * (parameters + self.deviation * noise)
        return actions

    def encode(self, actions: Array) -> Array:
        """Return the distance from the center in units, float32 [..., A]."""
        return ((actions - self.centre) / self.unit).astype(np.float32)
