"""Where work is done: in this process, in processes beside it, or on a Ray cluster.

An engine maps a pure function over jobs and gives the results back in order. What is computed for a lane does not
depend on those beside it, so that neither the engine, nor the number of its workers, nor how lanes are put together in
blocks is part of a run's settings: none of them changes a bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from aggrevated.core.arrays import Array

S = TypeVar("S")
E = TypeVar("E")
R = TypeVar("R")
ProgressCallback = Callable[[int], None]  # is told now and then how many jobs have ended


class Engine(Protocol):
    """What does work. Used in a `with` block, it leaves no process behind."""

    @property
    def workers(self) -> int:
        """How many jobs it does at once."""
        ...

    @property
    def block(self) -> int | None:
        """How many lanes make a job; None: as many as suit it."""
        ...

    def map(
        self, function: Callable[[S, E], R], shared: S, each: Sequence[E], waiting: ProgressCallback | None = None
    ) -> list[R]:
        """[function(shared, e) for e in each]. The job of a worker that is lost is done again."""
        ...

    def close(self) -> None:
        """End all workers."""
        ...

    def __enter__(self) -> Engine: ...

    def __exit__(self, *_: object) -> None: ...


class InProcessEngine:
    """One job after the other, here."""

    workers = 1

    def __init__(self, block: int | None = None) -> None:
        self.block = block

    def map(
        self, function: Callable[[S, E], R], shared: S, each: Sequence[E], waiting: ProgressCallback | None = None
    ) -> list[R]:
        results = []
        for job in each:
            results.append(function(shared, job))
            if waiting is not None:
                waiting(len(results))
        return results

    def close(self) -> None:
        """There is nothing to end."""

    def __enter__(self) -> InProcessEngine:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left."""


IN_PROCESS = InProcessEngine()


def split_into_blocks(items: Array, engine: Engine) -> list[Array]:
    """The items in blocks as the engine has them, or two for each of several workers; one worker gets all at once."""
    jobs = 1 if engine.workers == 1 else 2 * engine.workers
    size = engine.block or max(1, -(-len(items) // jobs))
    return [items[start : start + size] for start in range(0, len(items), size)] or [items]
