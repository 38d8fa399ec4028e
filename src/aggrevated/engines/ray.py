"""Workers on a Ray cluster, or on a Ray of this machine that nobody else can reach."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar, cast

from aggrevated.core.hardware import cores
from aggrevated.engines import Waiting
from aggrevated.engines.serialization import Kept, packed, unpacked
from aggrevated.errors import AggrevatedError, UsageError

S = TypeVar("S")
E = TypeVar("E")
R = TypeVar("R")
SECONDS = 0.5  # between two words to whoever waits
REMEMBERED = 8  # things that are kept by a worker, at most
LOOPBACK = "127.0.0.1"
CLUSTER = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # an environment variable of Ray's
_kept: dict[str, Kept[Any]] = {}  # in a worker: by name, the latest last


class Ray:
    """An engine of tasks without state, which Ray does again wherever a worker or a node is lost.

    Without an address Ray is started here, listens on the loopback address only, and is stopped in the end.
    """

    def __init__(self, workers: int | None = None, address: str | None = None, block: int | None = None) -> None:
        with confined() if not address else nullcontext():
            self._ray = ray = start(workers, address)
        self.block = block
        self.workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._task = ray.remote(num_cpus=1, max_retries=-1)(do)
        self._at_once = workers or 2 * self.workers  # a worker that is done finds another job waiting
        self._sent: dict[str, Any] = {}

    def map(
        self, function: Callable[[S, E], R], shared: S, each: Sequence[E], waiting: Waiting | None = None
    ) -> list[R]:
        ray = self._ray
        data, kept = packed((function, shared))
        for name, parcel in kept.items():
            if name not in self._sent:
                self._sent[name] = ray.put(parcel)
        common, refs = ray.put((tuple(sys.path), data)), {name: self._sent[name] for name in kept}
        items, results, ended = [packed(item)[0] for item in each], cast(list[R], [None] * len(each)), 0
        todo, pending = iter(range(len(items))), cast(dict[Any, int], {})
        # After an error, what is under way ends by itself: to cancel it may crash Ray's driver.
        while ended < len(items):
            while len(pending) < self._at_once and (job := next(todo, None)) is not None:
                pending[self._task.remote(common, refs, items[job])] = job
            done, _ = ray.wait(list(pending), num_returns=1, timeout=SECONDS)
            for ref in done:
                results[pending.pop(ref)], ended = outcome(ray, ref), ended + 1
            if waiting is not None:
                waiting(ended)
        return results

    def close(self) -> None:
        self._sent.clear()
        self._ray.shutdown()

    def __enter__(self) -> Ray:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def confined() -> Iterator[None]:
    """Let a Ray that is started in here listen on the loopback address only; to say so to `ray.init` is not enough."""
    before = os.environ.get(CLUSTER)
    os.environ[CLUSTER] = "0"
    import_ray()
    from ray._private import ray_constants

    enabled, ray_constants.ENABLE_RAY_CLUSTER = ray_constants.ENABLE_RAY_CLUSTER, False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = enabled
        os.environ.pop(CLUSTER)
        if before is not None:
            os.environ[CLUSTER] = before


def start(workers: int | None, address: str | None) -> Any:
    """Ray, connected to the cluster at the address or to a new one here."""
    ray = import_ray()
    if ray.is_initialized():
        raise UsageError("Ray is in use in this process already; call ray.shutdown() first")
    if address:
        require_somebody_at(address)
    try:
        if address:
            ray.init(address=address, log_to_driver=False, logging_level="error")
        else:
            here = {"address": "local", "_node_ip_address": LOOPBACK, "include_dashboard": False}
            ray.init(num_cpus=workers or cores(), log_to_driver=False, logging_level="error", **here)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise AggrevatedError(f"Ray cannot be reached at {address or 'this machine'}: {error}") from error
    silence()
    return ray


def require_somebody_at(address: str) -> None:
    """An error in a sentence if nobody listens there: Ray itself would wait for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        raise UsageError(f"--address is {address}, but must be HOST:PORT, as 'ray start --head' says it")
    try:
        socket.create_connection((host, int(port)), timeout=5.0).close()
    except (OSError, OverflowError) as error:
        raise AggrevatedError(
            f"Ray cannot be reached at {address} ({error}); start it with 'ray start --head --port={port}'"
        ) from error


def silence() -> None:
    """Let Ray not tell of every lost worker on standard output, where results go: their jobs are done again."""
    from ray._private import worker

    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *_, **__: None


def outcome(ray: Any, ref: Any) -> Any:
    """What came out of a task, or the error that it raised."""
    from aggrevated.engines.worker import unknown

    try:
        well, result = unpacked(ray.get(ref), unknown)
    except ray.exceptions.RayError as error:
        raise AggrevatedError(f"Ray gave a job up: {str(error).splitlines()[0]}") from error
    if not well:
        raise result
    return result


def do(common: tuple[tuple[str, ...], bytes], refs: dict[str, Any], item: bytes) -> bytes:
    """A job, in one of Ray's workers."""
    from aggrevated.core.hardware import THREADS, one_thread
    from aggrevated.engines.worker import answered, unknown

    paths, data = common
    sys.path.extend(path for path in paths if path not in sys.path)  # modules are found where they are found here
    os.environ[THREADS] = "1"
    with one_thread():

        def job() -> Any:
            function, shared = unpacked(data, lambda name: remembered(name, refs))
            return function(shared, unpacked(item, unknown))

        return answered(job)


def remembered(name: str, refs: dict[str, Any]) -> Kept[Any]:
    """What is kept by that name: fetched once, and remembered as long as it is among the latest."""
    if name not in _kept:
        found = Kept(unpacked(import_ray().get(refs[name]), lambda inner: remembered(inner, refs)))
        while len(_kept) >= REMEMBERED:
            _kept.pop(next(iter(_kept)))
        _kept[name] = found
    return _kept[name]


def import_ray() -> Any:
    """The package, or one sentence that says how to get it."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else it warns of accelerators, on standard error
    try:
        import ray
    except ImportError as error:
        raise UsageError("this engine needs Ray: pip install 'aggrevated[ray]'") from error
    return ray
