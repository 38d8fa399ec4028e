"""Those that see the present observation only."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from aggrevated.actors.networks import NumpyNetwork
from aggrevated.actors.samplers import Sampler
from aggrevated.core.arrays import Array


@dataclass(frozen=True)
class FeedForwardActor:
    """The policy on NumPy."""

    network: NumpyNetwork
    sampler: Sampler

    def memory(self, count: int) -> Array:
        return np.zeros((count, 0), np.float32)

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        return self.sampler.noise(generators, horizon)

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        return self.network(observation), memory

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None = None) -> Array:
        return self.sampler.choose(parameters, noise, legal)
