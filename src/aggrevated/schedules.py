"""Schedules are functions of the iteration: n = 1, 2, … ↦ α_n."""

from collections.abc import Callable
from typing import TypeAlias

Schedule: TypeAlias = Callable[[int], float]


def geometric(first: float, decay: float) -> Schedule:
    """first · decay^(n−1): α_n → 0 as the paper asks, as long as decay < 1."""
    return lambda n: first * decay ** (n - 1)


def linear(first: float, last: float, over: int) -> Schedule:
    """From `first` at n = 1 in a line to `last` after `over` iterations, and `last` from there on."""
    return lambda n: last + (first - last) * max(0.0, 1 - (n - 1) / over)


def at(value: float | Schedule, n: int) -> float:
    """The value for n of a schedule, or of a number, which is the same for all n."""
    return value(n) if callable(value) else value


NEVER = geometric(0.0, 1.0)  # α_n = 0, as in the paper's experiments
