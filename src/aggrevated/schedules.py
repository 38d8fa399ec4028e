"""Schedules are functions of the iteration: n = 1, 2, … ↦ α_n."""

from collections.abc import Callable
from typing import TypeAlias

Schedule: TypeAlias = Callable[[int], float]


def geometric(first: float, decay: float) -> Schedule:
    """first · decay^(n−1): α_n → 0 as the paper asks, as long as decay < 1."""
    return lambda n: first * decay ** (n - 1)


NEVER = geometric(0.0, 1.0)  # α_n = 0, as in the paper's experiments
