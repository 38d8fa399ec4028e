"""Workers as processes of this machine. One that is killed is replaced, and its job done again."""

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
WORKER_START_TIMEOUT = 100  # workers that are lost over one job before it is given up
SHUTDOWN_TIMEOUT = 4.0  # seconds that workers have to keep what they have, when all is stopped
SECONDS = 0.5  # between two words to whoever waits
FORKSERVER_MODULES = ["aggrevated.engines.forkserver_preload"]  # what workers share the memory of


@dataclass
class Worker:
    """A process, the line to it, and what it has."""

    process: BaseProcess
    line: Connection
    kept: set[str] = field(default_factory=set)
    common: int = -1  # the number of the map whose function it has
    job: int | None = None

    def send(self, common: int, data: bytes, kept: Mapping[str, bytes], item: bytes) -> None:
        """Give it a job, with what it does not have yet."""
        new = {name: parcel for name, parcel in kept.items() if name not in self.kept}
        self.line.send_bytes(pickle.dumps((new, data if self.common != common else None, item)))
        self.kept |= set(new)
        self.common = common

    def stop(self) -> None:
        """Kill it, if it is still there."""
        self.process.join(timeout=0.1)  # one that is ending by itself has an exit code of its own
        self.process.kill()
        self.process.join()
        self.line.close()


class ProcessEngine:
    """An engine of `workers` processes, which begin with its first map and end when it is closed."""

    def __init__(self, workers: int | None = None, block: int | None = None) -> None:
        self.workers = workers or count_cores()
        self.block = block
        self._team: list[Worker] = []
        self._maps = 0

    def map(
        self, function: Callable[[S, E], R], shared: S, each: Sequence[E], waiting: ProgressCallback | None = None
    ) -> list[R]:
        data, kept = serialize((function, shared))
        items = [serialize(item)[0] for item in each]
        results = cast(list[R], [None] * len(each))
        todo = deque(range(len(items)))
        lost = [0] * len(items)
        ended = 0
        self._maps += 1

        def send_job(worker: Worker, job: int) -> None:
            worker.send(self._maps, data, kept, items[job])

        try:
            while ended < len(items):
                self._dispatch_jobs(todo, send_job, lost)
                for worker in self._wait_for_replies():
                    came = read_reply(worker)
                    assert worker.job is not None
                    if came is None:
                        self._replace(worker, todo, lost)
                        continue
                    well, result = came
                    if not well:
                        raise result
                    results[worker.job] = result
                    worker.job = None
                    ended = ended + 1
                if waiting is not None:
                    waiting(ended)
        except BaseException as error:
            self._close(gently=isinstance(error, KeyboardInterrupt))  # what is under way belongs to nobody
            raise
        return results

    def _dispatch_jobs(self, todo: deque[int], give: Callable[[Worker, int], None], lost: list[int]) -> None:
        """Give jobs to workers that have none; there are as many workers as there is work for."""
        idle = deque(worker for worker in self._team if worker.job is None)
        while todo and (idle or len(self._team) < self.workers):
            worker = idle.popleft() if idle else self._start()
            job = todo.popleft()
            worker.job = job
            try:
                give(worker, job)
            except (BrokenPipeError, ConnectionResetError):  # it was killed while it waited
                self._replace(worker, todo, lost)

    def _wait_for_replies(self) -> list[Worker]:
        """The workers with a job that have answered, or that are gone."""
        busy = {worker.line: worker for worker in self._team if worker.job is not None}
        return [busy[cast(Connection, line)] for line in wait(list(busy), timeout=SECONDS)]

    def _replace(self, worker: Worker, todo: deque[int], lost: list[int]) -> None:
        job = worker.job
        assert job is not None
        lost[job] += 1
        worker.stop()
        self._team.remove(worker)
        if lost[job] >= WORKER_START_TIMEOUT:
            raise AggrevatedError(
                f"{WORKER_START_TIMEOUT} workers were lost over one job, the last with exit code "
                f"{worker.process.exitcode}; "
                "see that there is memory enough, or take fewer --workers"
            )
        todo.appendleft(job)

    def _start(self) -> Worker:
        context: Any = get_context("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
        if hasattr(context, "set_forkserver_preload"):
            context.set_forkserver_preload(FORKSERVER_MODULES)
        here, there = context.Pipe()
        share = max(1, choose_thread_count() // self.workers)
        process = context.Process(target=serve_jobs, args=(there, share), daemon=True, name="aggrevated-worker")
        with without_main_module():
            process.start()
        there.close()
        worker = Worker(process, here)
        self._team.append(worker)
        return worker

    def close(self) -> None:
        self._close()

    def _close(self, gently: bool = False) -> None:
        """End all workers; gently, they may keep first what they have: a whole run, for one, has checkpoints."""
        for worker in self._team:
            worker.process.terminate() if gently else worker.process.kill()
        until = time.monotonic() + SHUTDOWN_TIMEOUT
        for worker in self._team if gently else ():
            worker.process.join(max(0.0, until - time.monotonic()))
        for worker in self._team:
            worker.stop()
        self._team.clear()

    def __enter__(self) -> ProcessEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def without_main_module() -> Iterator[None]:
    """Let a process begin without importing the script that this one runs: what is in there travels by value.

    Else every worker would import what the script does, torch for one, and a script without a guard would run again.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def read_reply(worker: Worker) -> tuple[bool, Any] | None:
    """What came out of its job; None if it is gone."""
    try:
        found: tuple[bool, Any] = deserialize(worker.line.recv_bytes(), raise_no_cached_object)
    except (EOFError, OSError):
        return None
    return found
