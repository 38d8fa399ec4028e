"""How much can be done in the time that there is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

R = TypeVar("R")
BESIDE = 4.0  # others on the machine take at most so much of it
PILOT = 2
GROWTH = 4
# fewer tell nothing: for as many, it may take so many times as long
LEAST = 8
PATIENCE = 4.0


class CpuTimer:
    """Seconds of work since it was made: what others on the machine take is not counted, as far as one can know."""

    def __init__(self) -> None:
        self.worked = time.process_time()
        self.began = time.monotonic()

    def measure_seconds(self) -> float:
        return max(time.process_time() - self.worked, (time.monotonic() - self.began) / BESIDE)


def run_largest_affordable(work: Callable[[int], R], most: int, seconds: float) -> R:
    """What `work(n)` gives for as many, at most `most`, as the seconds allow by the pace of smaller tries."""
    n = min(PILOT, most)
    left = seconds
    while True:
        watch = CpuTimer()
        found = work(n)
        took = watch.measure_seconds()
        left -= took
        fits = int(n * left / max(took, 1e-6))
        if n < LEAST and LEAST * took / n < PATIENCE * seconds:
            fits = max(fits, LEAST)
        if n >= most or fits < 2 * n:
            return found
        n = min(most, fits, GROWTH * n)
