"""How much can be done in the time that there is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

R = TypeVar("R")
PILOT, GROWTH = 2, 4
LEAST, PATIENCE = 8, 4.0  # fewer tell nothing: for as many, it may take so many times as long


def sized(work: Callable[[int], R], most: int, seconds: float) -> R:
    """What `work(n)` gives for as many, at most `most`, as the seconds allow by the pace of smaller tries."""
    n, left = min(PILOT, most), seconds
    while True:
        began = time.perf_counter()
        found = work(n)
        took = time.perf_counter() - began
        left -= took
        fits = int(n * left / max(took, 1e-6))
        if n < LEAST and LEAST * took / n < PATIENCE * seconds:
            fits = max(fits, LEAST)
        if n >= most or fits < 2 * n:
            return found
        n = min(most, fits, GROWTH * n)
