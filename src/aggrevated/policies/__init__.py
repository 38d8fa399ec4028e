"""Policies are `nn.Module`s with two faces: `distribution` for whole sequences in torch, and `actor` for single steps.

The actor is a NumPy copy of the weights as they are now: a roll-in of a small network is several times faster on it
than through torch, and a copy cannot change behind the back of whoever holds it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.random import Generator
from torch import Tensor, nn
from torch.distributions import Distribution

from aggrevated.arrays import Array


class Actor(Protocol):
    """π_θ(·|o₁ … o_t) one step at a time, for n episodes at once. Never changes after it is made."""

    def memory(self, count: int) -> Array:
        """[count, M]: what the policy remembers before the first observation (M = 0 for a feed-forward policy)."""
        ...

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        """[K, H, A]: all that is random in the actions of K trajectories, each drawn from its own generator."""
        ...

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        """The parameters [n, A] of the action distribution, and the memory [n, M] after this step."""
        ...

    def choose(self, parameters: Array, noise: Array | float) -> Array:
        """[n] or [n, A] actions: drawn from the distribution with `noise` [n, A], its mode with noise 0."""
        ...


class Policy(nn.Module, ABC):
    """π_θ. Parameters, state_dict and the rest are torch's own."""

    @abstractmethod
    def distribution(self, observations: Tensor, mask: Tensor) -> Distribution:
        """The action distributions of whole trajectories, from observations [K, T, ...]."""

    @abstractmethod
    def actor(self) -> Actor:
        """A NumPy copy of the policy as it is now."""

    def forward(self, observations: Tensor, mask: Tensor) -> Distribution:
        """`distribution`, under the name that torch expects."""
        return self.distribution(observations, mask)

    def predict(
        self,
        observation: Array,
        state: Array | None = None,
        episode_start: Array | None = None,
        deterministic: bool = False,
    ) -> tuple[Array, Array]:
        """(action, next state), as Stable-Baselines3's policies do; one observation or a batch of them."""
        actor, single = self.actor(), np.ndim(observation) == 1
        batch = np.atleast_2d(np.asarray(observation, np.float32))
        memory = actor.memory(len(batch)) if state is None else state.copy()
        if episode_start is not None:
            fresh = np.broadcast_to(episode_start, len(batch)).astype(bool)
            memory[fresh] = actor.memory(int(fresh.sum()))
        parameters, memory = actor.parameters(batch, memory)
        noise = 0.0 if deterministic else actor.noise([np.random.default_rng()], len(batch))[0]
        action = actor.choose(parameters, noise)
        return (action[0] if single else action), memory
