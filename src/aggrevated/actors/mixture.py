"""Actor of a mixture of policies."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from aggrevated.actors import Actor
from aggrevated.actors.window import update_history
from aggrevated.core.arrays import Array


@dataclass(frozen=True)
class MixtureActor:
    """NumPy copy of a mixture of J policies; its memory is their memories, concatenated."""

    actors: tuple[Actor, ...]
    log_shares: Array  # [J]

    def memory(self, count: int) -> Array:
        return np.concatenate([actor.memory(count) for actor in self.actors], axis=1)

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        return self.actors[-1].noise(generators, horizon)

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        """Return log Σ_j w_j π_j [n, A], the log-probabilities of the mixture, and the memory."""
        memories = np.split(memory, len(self.actors), axis=1)
        steps = [actor.parameters(observation, part) for actor, part in zip(self.actors, memories, strict=True)]
        logits = np.stack([parameters for parameters, _ in steps])  # [J, n, A]
        logits -= log_sum(logits, axis=2)
        logits += self.log_shares[:, None, None]
        return log_sum(logits, axis=0)[0], np.concatenate([following for _, following in steps], axis=1)

    def remember(self, memory: Array, action: Array) -> Array:
        """Return the memory after an action, which all policies that observe actions see."""
        memories = np.split(memory, len(self.actors), axis=1)
        pairs = zip(self.actors, memories, strict=True)
        return np.concatenate([update_history(actor, part, action) for actor, part in pairs], axis=1)

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None = None) -> Array:
        return self.actors[-1].choose(parameters, noise, legal)


def log_sum(logits: Array, axis: int) -> Array:
    """Return log Σ exp along an axis, which stays with size 1."""
    maximum = logits.max(axis=axis, keepdims=True)
    total: Array = maximum + np.log(np.exp(logits - maximum).sum(axis=axis, keepdims=True))
    return total
