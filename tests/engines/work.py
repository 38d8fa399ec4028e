"""Jobs for engines, in a module that workers can import."""

import os
import time
from pathlib import Path

import numpy as np

from aggrevated.core.errors import DataError


def add(shared: int, each: int) -> int:
    return shared + each


def sleep_and_return(shared: float, each: int) -> tuple[int, int]:
    """Sleep, and return the job and the id of the worker process."""
    time.sleep(shared)
    return each, os.getpid()


def fail_on_three(shared: None, each: int) -> int:
    if each == 3:
        raise DataError("the third is bad; mend it")
    return each


def raise_unpicklable_error(shared: None, each: int) -> int:
    class UnknownError(Exception):
        def __init__(self, one, two):
            super().__init__(one)

    raise UnknownError("odd", 2)


def die_once(shared: str, each: int) -> int:
    """Kill the first worker that runs job 2."""
    mark = Path(shared)
    if each == 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), 9)
    return each


def die_always(shared: None, each: int) -> int:
    os._exit(7)


def list_modules(shared: None, each: int) -> list[str]:
    import sys

    return sorted(sys.modules)


class Costly:
    """An object that counts how often it is unpickled."""

    arrivals = 0

    def __init__(self, numbers):
        self.numbers = numbers

    def __reduce__(self):
        return rebuild_costly, (self.numbers,)


def rebuild_costly(numbers):
    Costly.arrivals += 1
    return Costly(numbers)


def sum_shared(shared, each: int) -> tuple[float, int, int]:
    cached, factor = shared
    return float(cached.value.numbers.sum() * factor + each), Costly.arrivals, os.getpid()


def count_threads(shared: None, each: int) -> list[int]:
    from threadpoolctl import threadpool_info

    np.ones((4, 4)) @ np.ones((4, 4))
    return [int(os.environ["AGGREVATED_THREADS"]), *(pool["num_threads"] for pool in threadpool_info())]


class TwoPartsError(Exception):
    """An error that can be pickled but not unpickled."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def raise_two_parts_error(shared: None, each: int) -> int:
    raise TwoPartsError("this", "that")


class Brittle:
    """An object that cannot be unpickled."""

    def __setstate__(self, state):
        raise RuntimeError("there is no display here")


def ignore(shared, each: int) -> int:
    return each
