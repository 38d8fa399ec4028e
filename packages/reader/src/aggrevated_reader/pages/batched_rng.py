"""Single random numbers, drawn in blocks: one at a time they would cost more than what is decided with them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Generic, TypeVar

import numpy as np

T = TypeVar("T")
BLOCK = 256


class BatchedRng:
    """What a generator decides, decision by decision; the same generator decides the same."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator
        self.left: list[float] = []

    def sample_fraction(self) -> float:
        """A number in [0, 1)."""
        if not self.left:
            self.left = self.generator.random(BLOCK).tolist()
        return self.left.pop()

    def sample_bool(self, probability: float) -> bool:
        """True with that probability."""
        return self.sample_fraction() < probability

    def uniform(self, low: float, high: float) -> float:
        """A number in [low, high)."""
        return low + (high - low) * self.sample_fraction()

    def sample_deviation(self) -> float:
        """A number of mean 0 and variance 1 that is never far off: the sum of three uniform ones."""
        return 2.0 * (self.sample_fraction() + self.sample_fraction() + self.sample_fraction() - 1.5)

    def count(self, low: int, high: int) -> int:
        """A whole number in low … high."""
        return low + int((high - low + 1) * self.sample_fraction())

    def pick(self, things: Sequence[T]) -> T:
        """One of them, each as likely as the others."""
        return things[int(len(things) * self.sample_fraction())]

    def weigh(self, things: WeightedChoice[T]) -> T:
        """One of them, by its weight."""
        place = bisect_right(things.until, self.sample_fraction())
        return things.things[min(place, len(things.things) - 1)]


@dataclass(frozen=True)
class WeightedChoice(Generic[T]):
    """Things to choose from, with weights."""

    things: tuple[T, ...]
    until: tuple[float, ...]  # the weights of each and of those before it, as shares

    @classmethod
    def of(cls, weights: dict[T, float]) -> WeightedChoice[T]:
        """With these weights, which need not sum to 1."""
        total = sum(weights.values())
        return cls(tuple(weights), tuple(accumulate(weight / total for weight in weights.values())))
