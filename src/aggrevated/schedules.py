"""Schedules are functions of the iteration: n = 1, 2, … ↦ α_n (or η_n)."""

from collections.abc import Callable
from typing import TypeAlias

Schedule: TypeAlias = Callable[[int], float]


def constant(value: float) -> Schedule:
    """The same at every n."""
    return lambda n: value


def geometric(first: float, decay: float) -> Schedule:
    """first · decay^(n−1): α_n → 0 as the paper asks, as long as decay < 1."""
    return lambda n: first * decay ** (n - 1)
