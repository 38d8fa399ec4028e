"""Those that also see what was done: π_θ(·|o₁, a₁, …, o_t)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from aggrevated.actors import Actor
from aggrevated.actors.feed_forward import FeedForwardActor
from aggrevated.actors.recurrent import RecurrentActor
from aggrevated.actors.samplers import Sampler
from aggrevated.core.arrays import Array


@dataclass(frozen=True)
class ActionHistoryActor:
    """One that sees its previous action beside each observation; the memory's last A numbers are that action."""

    inner: "RecurrentActor | WindowActor"
    sampler: Sampler
    actions: int  # A

    def memory(self, count: int) -> Array:
        return np.concatenate([self.inner.memory(count), np.zeros((count, self.actions), np.float32)], axis=1)

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        return self.inner.noise(generators, horizon)

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        """As ever; of the memory that is given back, `remember` makes one that knows the action, too."""
        own = memory[:, : -self.actions]
        previous = memory[:, -self.actions :]
        parameters, after = self.inner.parameters(np.concatenate([observation, previous], axis=1), own)
        return parameters, np.concatenate([after, np.zeros_like(previous)], axis=1)

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None = None) -> Array:
        return self.inner.choose(parameters, noise, legal)

    def remember(self, memory: Array, action: Array) -> Array:
        """The memory [n, M] after these actions were taken, whoever chose them."""
        return np.concatenate([memory[:, : -self.actions], self.sampler.encode(action)], axis=1)


def update_history(actor: Actor, memory: Array, action: Array) -> Array:
    """The memory [n, M] of any actor after these actions were taken; as it is where they are not seen."""
    remember: Any = getattr(actor, "remember", None)
    after: Array = memory if remember is None else remember(memory, action)
    return after


def get_previous_actions(codes: Array) -> Array:
    """[K, T, A]: at each step the action before it, from those of all steps; zeros at the first."""
    shifted = np.zeros_like(codes)
    shifted[:, 1:] = codes[:, :-1]
    return shifted


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
