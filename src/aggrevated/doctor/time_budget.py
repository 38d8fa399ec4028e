"""Time budgets: the largest amount of work that fits into the available seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

R = TypeVar("R")
MAX_WALL_TO_CPU_RATIO = 4.0  # wall-clock seconds that count as one second of work, if others use the machine
FIRST_COUNT = 2
GROWTH_FACTOR = 4
MIN_COUNT = 8  # fewer give no estimate
MIN_COUNT_OVERTIME = 4.0  # times the available seconds that MIN_COUNT may take


class CpuTimer:
    """Seconds of work since the timer was made, mostly without the time that other processes take."""

    def __init__(self) -> None:
        self.cpu_start = time.process_time()
        self.wall_start = time.monotonic()

    def measure_seconds(self) -> float:
        wall_seconds = time.monotonic() - self.wall_start
        return max(time.process_time() - self.cpu_start, wall_seconds / MAX_WALL_TO_CPU_RATIO)


def run_largest_affordable(work: Callable[[int], R], most: int, seconds: float) -> R:
    """Return `work(n)` for the largest n that the available seconds allow, judged by the pace of smaller n.

    Args:
        work: The work, by its amount n.
        most: The largest n.
        seconds: Available seconds.
    """
    n = min(FIRST_COUNT, most)
    remaining = seconds
    while True:
        timer = CpuTimer()
        result = work(n)
        elapsed = timer.measure_seconds()
        remaining -= elapsed
        affordable = int(n * remaining / max(elapsed, 1e-6))
        if n < MIN_COUNT and MIN_COUNT * elapsed / n < MIN_COUNT_OVERTIME * seconds:
            affordable = max(affordable, MIN_COUNT)
        if n >= most or affordable < 2 * n:
            return result
        n = min(most, affordable, GROWTH_FACTOR * n)
