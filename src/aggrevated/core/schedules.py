"""Schedules: functions of the iteration n = 1, 2, …, such as n ↦ α_n."""

from collections.abc import Callable
from math import exp
from typing import TypeAlias

Schedule: TypeAlias = Callable[[int], float]


def geometric_schedule(first: float, decay: float) -> Schedule:
    """Return first · decay^(n−1), which converges to 0 as the paper requires if decay < 1.

    Args:
        first: value at n = 1.
        decay: factor per iteration.

    Returns:
        A function of n.

    Example:
        >>> geometric_schedule(1.0, 0.5)(3)
        0.25
    """
    return lambda n: first * decay ** (n - 1)


def constant_schedule(value: float) -> Schedule:
    """Return the constant schedule.

    Args:
        value: value for all n.

    Returns:
        A function of n.

    Example:
        >>> constant_schedule(0.3)(7)
        0.3
    """
    return lambda n: value


def linear_schedule(first: float, last: float, over: float) -> Schedule:
    """Return a linear schedule from `first` to `last`, which then stays at `last`.

    Args:
        first: value at n = 1.
        last: value from n = 1 + `over` on.
        over: number of iterations from `first` to `last`.

    Returns:
        A function of n.

    Example:
        >>> linear_schedule(1.0, 0.0, 4)(3)
        0.5
    """
    return lambda n: last + (first - last) * max(0.0, 1 - (n - 1) / over)


def exponential_schedule(first: float, scale: float) -> Schedule:
    """Return first · e^(−(n−1)/scale), the exponential decay of scheduled sampling (Bengio et al. 2015).

    Args:
        first: value at n = 1.
        scale: number of iterations in which the value falls to 1/e of itself.

    Returns:
        A function of n.

    Example:
        >>> round(exponential_schedule(1.0, 2.0)(3), 3)
        0.368
    """
    return lambda n: first * exp(-(n - 1) / scale)


def inverse_sigmoid_schedule(first: float, k: float) -> Schedule:
    """Return first · k / (k + e^((n−1)/k)), the inverse sigmoid decay of Bengio et al. (2015).

    Args:
        first: supremum of the values; the value is half of it after k ln k iterations.
        k: scale, in iterations.

    Returns:
        A function of n.

    Example:
        >>> inverse_sigmoid_schedule(1.0, 1.0)(1)
        0.5
    """
    return lambda n: first * k / (k + exp(min((n - 1) / k, 700.0)))  # e^710 overflows


def lower_bounded(minimum: float, schedule: Schedule) -> Schedule:
    """Return the schedule with a lower bound."""
    return lambda n: max(minimum, schedule(n))


def evaluate_schedule(value: float | Schedule, n: int) -> float:
    """Return the value at n of a schedule or a constant."""
    return value(n) if callable(value) else value


ZERO_SCHEDULE = constant_schedule(0.0)  # α_n = 0, as in the paper's experiments
