"""Schedules are functions of the iteration: n = 1, 2, … ↦ α_n."""

from collections.abc import Callable
from math import exp
from typing import TypeAlias

Schedule: TypeAlias = Callable[[int], float]


def geometric_schedule(first: float, decay: float) -> Schedule:
    """first · decay^(n−1): α_n → 0 as the paper asks, as long as decay < 1."""
    return lambda n: first * decay ** (n - 1)


def constant_schedule(value: float) -> Schedule:
    """The same for every n."""
    return lambda n: value


def linear_schedule(first: float, last: float, over: float) -> Schedule:
    """From `first` at n = 1 in a line to `last` after `over` iterations, and `last` from there on."""
    return lambda n: last + (first - last) * max(0.0, 1 - (n - 1) / over)


def exponential_schedule(first: float, scale: float) -> Schedule:
    """first · k^(n−1) with k = e^(−1/scale): "exponential decay" of scheduled sampling (Bengio et al. 2015)."""
    return lambda n: first * exp(-(n - 1) / scale)


def inverse_sigmoid_schedule(first: float, k: float) -> Schedule:
    """first · k / (k + e^((n−1)/k)): high at first, half of it after k ln k iterations (Bengio et al. 2015)."""
    return lambda n: first * k / (k + exp(min((n - 1) / k, 700.0)))  # e^710 is no number any more


def lower_bounded(least: float, schedule: Schedule) -> Schedule:
    """The schedule, as long as it is above `least`."""
    return lambda n: max(least, schedule(n))


def evaluate_schedule(value: float | Schedule, n: int) -> float:
    """The value for n of a schedule, or of a number, which is the same for all n."""
    return value(n) if callable(value) else value


ZERO_SCHEDULE = constant_schedule(0.0)  # α_n = 0, as in the paper's experiments
