"""Random numbers that are drawn in blocks, because single draws would take more time than their use."""

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
    """Source of random decisions; equal generators give equal decisions."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator
        self.left: list[float] = []

    def sample_fraction(self) -> float:
        """Sample a number from [0, 1)."""
        if not self.left:
            self.left = self.generator.random(BLOCK).tolist()
        return self.left.pop()

    def sample_bool(self, probability: float) -> bool:
        """Sample True with that probability."""
        return self.sample_fraction() < probability

    def uniform(self, low: float, high: float) -> float:
        """Sample a number from [low, high)."""
        return low + (high - low) * self.sample_fraction()

    def sample_deviation(self) -> float:
        """Sample a bounded number of mean 0 and variance 1: a sum of three uniform numbers."""
        return 2.0 * (self.sample_fraction() + self.sample_fraction() + self.sample_fraction() - 1.5)

    def count(self, low: int, high: int) -> int:
        """Sample an integer from low … high, both included."""
        return low + int((high - low + 1) * self.sample_fraction())

    def pick(self, items: Sequence[T]) -> T:
        """Sample one of the items, all with equal probability."""
        return items[int(len(items) * self.sample_fraction())]

    def weigh(self, choice: WeightedChoice[T]) -> T:
        """Sample one of the items by its weight."""
        index = bisect_right(choice.until, self.sample_fraction())
        return choice.items[min(index, len(choice.items) - 1)]


@dataclass(frozen=True)
class WeightedChoice(Generic[T]):
    """Items to sample from, with weights."""

    items: tuple[T, ...]
    until: tuple[float, ...]  # cumulative shares of the weights

    @classmethod
    def of(cls, weights: dict[T, float]) -> WeightedChoice[T]:
        """Return a choice with these weights, which need not sum to 1."""
        total = sum(weights.values())
        return cls(tuple(weights), tuple(accumulate(weight / total for weight in weights.values())))
