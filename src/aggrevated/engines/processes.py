"""Engine of worker processes on this machine; a worker that is killed is replaced and its job repeated."""

from __future__ import annotations

import pickle
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any, TypeVar, cast

from aggrevated.core.errors import AggrevatedError
from aggrevated.core.hardware import choose_thread_count, count_cores
from aggrevated.engines import ProgressCallback
from aggrevated.engines.serialization import deserialize, serialize
from aggrevated.engines.worker import raise_no_cached_object, serve_jobs

S = TypeVar("S")
E = TypeVar("E")
R = TypeVar("R")
MAX_LOST_WORKERS = 100  # lost over one job before the run fails
SHUTDOWN_TIMEOUT = 4.0  # seconds that workers have to save their state after an interrupt
POLL_SECONDS = 0.5  # between two calls of `waiting`
FORKSERVER_MODULES = ["aggrevated.engines.forkserver_preload"]  # modules whose memory workers share


@dataclass
class Worker:
    """A worker process, the connection to it, and the data that it already has."""

    process: BaseProcess
    connection: Connection
    cached: set[str] = field(default_factory=set)  # names of cached objects that it has
    map_number: int = -1  # of the map whose function it has
    job: int | None = None

    def send(self, map_number: int, data: bytes, cached: Mapping[str, bytes], item: bytes) -> None:
        """Send a job, with the data that the worker does not have yet."""
        new = {name: parcel for name, parcel in cached.items() if name not in self.cached}
        self.connection.send_bytes(pickle.dumps((new, data if self.map_number != map_number else None, item)))
        self.cached |= set(new)
        self.map_number = map_number

    def stop(self) -> None:
        """Kill the process unless it has ended."""
        self.process.join(timeout=0.1)  # a process that is exiting keeps its exit code
        self.process.kill()
        self.process.join()
        self.connection.close()


class ProcessEngine:
    """Engine of worker processes, which start with the first map and end when the engine is closed.

    Args:
        workers: number of processes; None: one per core.
        block: number of episodes per job; None: half of each worker's share.
    """

    def __init__(self, workers: int | None = None, block: int | None = None) -> None:
        self.workers = workers or count_cores()
        self.block = block
        self._team: list[Worker] = []
        self._maps = 0

    def map(
        self, function: Callable[[S, E], R], shared: S, each: Sequence[E], waiting: ProgressCallback | None = None
    ) -> list[R]:
        """Return [function(shared, item) for item in each], computed by the workers.

        Args:
            function: picklable pure function of (shared, item).
            shared: argument that all jobs have in common, sent once per worker.
            each: argument of each job.
            waiting: called at least twice a second with the number of jobs that are done.

        Returns:
            The results in the order of `each`.

        Raises:
            UsageError: an argument cannot be pickled.
            AggrevatedError: too many workers were lost over one job.
        """
        data, cached = serialize((function, shared))
        items = [serialize(item)[0] for item in each]
        results = cast(list[R], [None] * len(each))
        todo = deque(range(len(items)))
        lost_workers = [0] * len(items)
        n_done = 0
        self._maps += 1

        def send_job(worker: Worker, job: int) -> None:
            worker.send(self._maps, data, cached, items[job])

        try:
            while n_done < len(items):
                self._dispatch_jobs(todo, send_job, lost_workers)
                for worker in self._wait_for_replies():
                    reply = read_reply(worker)
                    assert worker.job is not None
                    if reply is None:
                        self._replace(worker, todo, lost_workers)
                        continue
                    succeeded, result = reply
                    if not succeeded:
                        raise result
                    results[worker.job] = result
                    worker.job = None
                    n_done = n_done + 1
                if waiting is not None:
                    waiting(n_done)
        except BaseException as error:
            self._close(graceful=isinstance(error, KeyboardInterrupt))  # results of running jobs are not needed
            raise
        return results

    def _dispatch_jobs(self, todo: deque[int], send: Callable[[Worker, int], None], lost: list[int]) -> None:
        """Send jobs to idle workers; start workers as long as there are jobs for them."""
        idle = deque(worker for worker in self._team if worker.job is None)
        while todo and (idle or len(self._team) < self.workers):
            worker = idle.popleft() if idle else self._start()
            job = todo.popleft()
            worker.job = job
            try:
                send(worker, job)
            except (BrokenPipeError, ConnectionResetError):  # the worker was killed while idle
                self._replace(worker, todo, lost)

    def _wait_for_replies(self) -> list[Worker]:
        """Return the busy workers that have replied or died."""
        busy = {worker.connection: worker for worker in self._team if worker.job is not None}
        return [busy[cast(Connection, connection)] for connection in wait(list(busy), timeout=POLL_SECONDS)]

    def _replace(self, worker: Worker, todo: deque[int], lost: list[int]) -> None:
        job = worker.job
        assert job is not None
        lost[job] += 1
        worker.stop()
        self._team.remove(worker)
        if lost[job] >= MAX_LOST_WORKERS:
            raise AggrevatedError(
                f"{MAX_LOST_WORKERS} workers were lost over one job, the last with exit code "
                f"{worker.process.exitcode}; free memory, or use fewer --workers"
            )
        todo.appendleft(job)

    def _start(self) -> Worker:
        context: Any = get_context("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
        if hasattr(context, "set_forkserver_preload"):
            context.set_forkserver_preload(FORKSERVER_MODULES)
        connection, worker_connection = context.Pipe()
        threads = max(1, choose_thread_count() // self.workers)
        arguments = worker_connection, threads
        process = context.Process(target=serve_jobs, args=arguments, daemon=True, name="aggrevated-worker")
        with without_main_module():
            process.start()
        worker_connection.close()
        worker = Worker(process, connection)
        self._team.append(worker)
        return worker

    def close(self) -> None:
        """Kill all workers."""
        self._close()

    def _close(self, graceful: bool = False) -> None:
        """End all workers; if `graceful`, they have SHUTDOWN_TIMEOUT seconds to save checkpoints first."""
        for worker in self._team:
            worker.process.terminate() if graceful else worker.process.kill()
        deadline = time.monotonic() + SHUTDOWN_TIMEOUT
        for worker in self._team if graceful else ():
            worker.process.join(max(0.0, deadline - time.monotonic()))
        for worker in self._team:
            worker.stop()
        self._team.clear()

    def __enter__(self) -> ProcessEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def without_main_module() -> Iterator[None]:
    """Start processes without importing the main script of this process; its objects are pickled by value.

    Otherwise each worker would import the script's modules, and run a script without a `__main__` guard
    again.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def read_reply(worker: Worker) -> tuple[bool, Any] | None:
    """Return (success, result or error) of a worker's job, or None if the worker is gone."""
    try:
        reply: tuple[bool, Any] = deserialize(worker.connection.recv_bytes(), raise_no_cached_object)
    except (EOFError, OSError):
        return None
    return reply
