"""Mixtures of policies."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from aggrevated.actors import Actor
from aggrevated.actors.window import update_history
from aggrevated.core.arrays import Array


@dataclass(frozen=True)
class MixtureActor:
    """The policy on NumPy; it remembers what each of its J policies does, one beside the other."""

    actors: tuple[Actor, ...]
    log_shares: Array  # [J]

    def memory(self, count: int) -> Array:
        return np.concatenate([actor.memory(count) for actor in self.actors], axis=1)

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        return self.actors[-1].noise(generators, horizon)

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        """(log Σ_j w_j π_j, memory): an action drawn from it is that of a policy drawn by its share."""
        own = np.split(memory, len(self.actors), axis=1)
        steps = [actor.parameters(observation, part) for actor, part in zip(self.actors, own, strict=True)]
        logits = np.stack([parameters for parameters, _ in steps])  # [J, n, A]
        logits -= log_sum(logits, axis=2)
        logits += self.log_shares[:, None, None]
        return log_sum(logits, axis=0)[0], np.concatenate([after for _, after in steps], axis=1)

    def remember(self, memory: Array, action: Array) -> Array:
        """Whichever of them chose it, all see the action, if they see any."""
        own = np.split(memory, len(self.actors), axis=1)
        return np.concatenate([update_history(*each, action) for each in zip(self.actors, own, strict=True)], axis=1)

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None = None) -> Array:
        return self.actors[-1].choose(parameters, noise, legal)


def log_sum(logits: Array, axis: int) -> Array:
    """log Σ exp along an axis, which stays."""
    most = logits.max(axis=axis, keepdims=True)
    total: Array = most + np.log(np.exp(logits - most).sum(axis=axis, keepdims=True))
    return total
