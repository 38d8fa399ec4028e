"""Engines run jobs in this process, in worker processes, or on a Ray cluster.

An engine maps a pure function over jobs and returns the results in order. The result of an episode does not
depend on the other episodes of its job. So engine, number of workers and block size change no bit of a
result, and they are not part of a run's config.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from aggrevated.core.arrays import Array

S = TypeVar("S")
E = TypeVar("E")
R = TypeVar("R")
ProgressCallback = Callable[[int], None]  # called regularly with the number of jobs that are done


class Engine(Protocol):
    """Executor of jobs; a `with` block around it ends its workers."""

    @property
    def workers(self) -> int:
        """Return the number of jobs that run at once."""
        ...

    @property
    def block(self) -> int | None:
        """Return the number of episodes per job, or None to choose it from the number of workers."""
        ...

    def map(
        self, function: Callable[[S, E], R], shared: S, each: Sequence[E], waiting: ProgressCallback | None = None
    ) -> list[R]:
        """Return [function(shared, item) for item in each], and repeat the job of a worker that is lost.

        Args:
            function: pure function of (shared, item); it must be picklable if there are other processes.
            shared: argument that all jobs have in common, sent once per worker.
            each: argument of each job.
            waiting: called regularly with the number of jobs that are done.

        Returns:
            The results in the order of `each`.
        """
        ...

    def close(self) -> None:
        """End all workers."""
        ...

    def __enter__(self) -> Engine: ...

    def __exit__(self, *_: object) -> None: ...


class InProcessEngine:
    """Engine that runs jobs in this process, one after the other.

    Args:
        block: number of episodes per job; None: all in one job.

    Example:
        >>> with InProcessEngine() as engine:
        ...     engine.map(pow, 2, [1, 2, 3])
        [2, 4, 8]
    """

    workers = 1

    def __init__(self, block: int | None = None) -> None:
        self.block = block

    def map(
        self, function: Callable[[S, E], R], shared: S, each: Sequence[E], waiting: ProgressCallback | None = None
    ) -> list[R]:
        """Return [function(shared, item) for item in each].

        Args:
            function: function of (shared, item).
            shared: argument that all jobs have in common.
            each: argument of each job.
            waiting: called after each job with the number of jobs that are done.

        Returns:
            The results in the order of `each`.
        """
        results = []
        for job in each:
            results.append(function(shared, job))
            if waiting is not None:
                waiting(len(results))
        return results

    def close(self) -> None:
        """Do nothing: there are no workers."""

    def __enter__(self) -> InProcessEngine:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: there are no workers."""


IN_PROCESS = InProcessEngine()


def split_into_blocks(items: Array, engine: Engine) -> list[Array]:
    """Return the items in blocks of the engine's size; by default one, or two per worker of several."""
    jobs = 1 if engine.workers == 1 else 2 * engine.workers
    size = engine.block or max(1, -(-len(items) // jobs))
    return [items[start : start + size] for start in range(0, len(items), size)] or [items]
