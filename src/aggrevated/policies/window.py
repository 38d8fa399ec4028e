"""The poor man's memory: a feed-forward policy on the last few observations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Space
from numpy.random import Generator
from torch import Tensor
from torch.distributions import Distribution

from aggrevated.arrays import Array
from aggrevated.policies import USUAL_WIDTHS, HiddenSettings, Policy, initial_generator, size_of
from aggrevated.policies.feed_forward import FeedForwardActor, FeedForwardPolicy
from aggrevated.policies.heads import Head


class WindowPolicy(Policy):
    """π_θ(a|o_{t−w+1} … o_t): a feed-forward policy that sees the last w observations, zeros before the first."""

    def __init__(
        self,
        observation_size: int,
        head: Head,
        hidden: Sequence[int] = USUAL_WIDTHS,
        generator: torch.Generator | None = None,
        width: int = 4,
    ) -> None:
        super().__init__()
        self.size, self.width = observation_size, width
        self.inner = FeedForwardPolicy(width * observation_size, head, hidden, generator)

    def distribution(self, observations: Tensor, mask: Tensor, legal: Tensor | None = None) -> Distribution:
        padded = torch.nn.functional.pad(observations, (0, 0, self.width - 1, 0))  # [K, T + w − 1, O]
        windows = padded.unfold(1, self.width, 1).mT.flatten(2)  # [K, T, w·O], the oldest first
        return self.inner.distribution(windows, mask, legal)

    @property
    def head(self) -> Head:  # type: ignore[override]
        """That of the policy inside: its parameters are not to be there twice."""
        return self.inner.head

    def actor(self) -> "WindowActor":
        return WindowActor(self.inner.actor(), self.size * (self.width - 1), self.size)


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


@dataclass(frozen=True)
class WindowSettings(HiddenSettings):
    """It sees the last four observations."""

    name = "window"

    def build(self, observations: Space[Any], head: Head, seed: int) -> WindowPolicy:
        return WindowPolicy(size_of(observations), head, self.hidden, initial_generator(seed))
