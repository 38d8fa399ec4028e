"""Actors that observe previous actions, π_θ(·|o₁, a₁, …, o_t), or a window of observations."""

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
    """An actor whose input is the observation and the previous action, the last A numbers of its memory."""

    inner: "RecurrentActor | WindowActor"
    sampler: Sampler
    actions: int  # A

    def memory(self, count: int) -> Array:
        return np.concatenate([self.inner.memory(count), np.zeros((count, self.actions), np.float32)], axis=1)

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        return self.inner.noise(generators, horizon)

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        """Return parameters and memory; the memory has no action until `remember` adds it."""
        inner_memory = memory[:, : -self.actions]
        previous = memory[:, -self.actions :]
        parameters, following = self.inner.parameters(np.concatenate([observation, previous], axis=1), inner_memory)
        return parameters, np.concatenate([following, np.zeros_like(previous)], axis=1)

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None = None) -> Array:
        return self.inner.choose(parameters, noise, legal)

    def remember(self, memory: Array, action: Array) -> Array:
        """Return the memory [n, M] after these actions, chosen by the learner or by the expert."""
        return np.concatenate([memory[:, : -self.actions], self.sampler.encode(action)], axis=1)


def update_history(actor: Actor, memory: Array, action: Array) -> Array:
    """Return the memory [n, M] of an actor after these actions; unchanged if it does not observe them."""
    remember: Any = getattr(actor, "remember", None)
    following: Array = memory if remember is None else remember(memory, action)
    return following


def get_previous_actions(codes: Array) -> Array:
    """Return the previous action of each step, zeros at the first, from encoded actions [K, T, A]."""
    shifted = np.zeros_like(codes)
    shifted[:, 1:] = codes[:, :-1]
    return shifted


@dataclass(frozen=True)
class WindowActor:
    """NumPy copy of a window policy; its memory is the last w − 1 observations, the oldest first."""

    inner: FeedForwardActor
    past: int  # size of the memory
    size: int  # size of an observation

    def memory(self, count: int) -> Array:
        return np.zeros((count, self.past), np.float32)

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        return self.inner.noise(generators, horizon)

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        window = np.concatenate([memory, observation], axis=1)
        return self.inner.network(window), window[:, self.size :]

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None = None) -> Array:
        return self.inner.choose(parameters, noise, legal)
