"""Those with a memory."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from aggrevated.actors.cells import NumpyCell
from aggrevated.actors.samplers import Sampler
from aggrevated.core.arrays import Array
from aggrevated.kernels.linear_algebra import affine


@dataclass(frozen=True)
class RecurrentActor:
    """The policy on NumPy."""

    cell: NumpyCell
    weight: Array  # [hidden, A]
    bias: Array  # [A]
    sampler: Sampler

    def memory(self, count: int) -> Array:
        return np.zeros((count, self.cell.size), np.float32)

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        return self.sampler.noise(generators, horizon)

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        h, memory = self.cell.step(observation, memory)
        return affine(h, self.weight, self.bias), memory

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None = None) -> Array:
        return self.sampler.choose(parameters, noise, legal)
