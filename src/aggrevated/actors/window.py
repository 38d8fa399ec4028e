"""Those that see the last few observations."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from aggrevated.actors.feed_forward import FeedForwardActor
from aggrevated.core.arrays import Array


@dataclass(frozen=True)
class WindowActor:
    """The policy on NumPy; the memory is the last w − 1 observations, the oldest first."""

    inner: FeedForwardActor
    past: int  # numbers remembered
    size: int  # numbers in an observation

    def memory(self, count: int) -> Array:
        return np.zeros((count, self.past), np.float32)

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        return self.inner.noise(generators, horizon)

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        window = np.concatenate([memory, observation], axis=1)
        return self.inner.network(window), window[:, self.size :]

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None = None) -> Array:
        return self.inner.choose(parameters, noise, legal)
