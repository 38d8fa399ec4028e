"""Whoever acts at random, and experts that act otherwise than they say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.random import Generator

from aggrevated.core.arrays import Array
from aggrevated.experts import Expert
from aggrevated.kernels.elementary_functions import gumbel

FAR = 1.0  # how far actions go where the space has no bounds


@dataclass(frozen=True)
class UniformActor:
    """Every legal action alike; of vectors every one within the bounds."""

    space: Discrete | Box

    def memory(self, count: int) -> Array:
        return np.zeros((count, 0), np.float32)

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        size = int(self.space.n) if isinstance(self.space, Discrete) else int(np.prod(self.space.shape))
        drawn = np.stack([generator.random((horizon, size), np.float32) for generator in generators])
        return gumbel(drawn) if isinstance(self.space, Discrete) else drawn

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        return np.zeros((len(observation), 1), np.float32), memory

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None = None) -> Array:
        drawn = np.asarray(noise)
        if isinstance(self.space, Discrete):
            chosen: Array = (drawn if legal is None else np.where(legal, drawn, -np.inf)).argmax(axis=1)
            return chosen
        low, high = action_bounds(self.space)
        vectors: Array = low + (high - low) * drawn
        return vectors


def action_bounds(space: Box) -> tuple[Array, Array]:
    """(low, high) [A], where there are none some that are usual."""
    low, high = np.asarray(space.low, float).ravel(), np.asarray(space.high, float).ravel()
    return np.where(np.isfinite(low), low, -FAR), np.where(np.isfinite(high), high, FAR)


@dataclass(frozen=True)
class PerturbedExpert:
    """An expert whose actions are changed before they are taken."""

    expert: Expert
    change: Callable[[Array], Array]

    @property
    def name(self) -> str:
        return self.expert.name

    def act(self, states: Array, t: int) -> Array:
        return self.change(np.asarray(self.expert.act(states, t)))
