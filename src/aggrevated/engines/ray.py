"""Workers on a Ray cluster, or on a Ray of this machine that nobody else can reach."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar, cast

from aggrevated.core.errors import AggrevatedError, UsageError
from aggrevated.core.hardware import count_cores
from aggrevated.engines import ProgressCallback
from aggrevated.engines.serialization import CachedObject, deserialize, serialize

S = TypeVar("S")
E = TypeVar("E")
R = TypeVar("R")
SECONDS = 0.5  # between two words to whoever waits
MAX_CACHED_OBJECTS = 8  # things that are kept by a worker, at most
LOOPBACK = "127.0.0.1"
CLUSTER = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # an environment variable of Ray's
_kept: dict[str, CachedObject[Any]] = {}  # in a worker: by name, the latest last


class RayEngine:
    """An engine of tasks without state, which Ray does again wherever a worker or a node is lost.

    Without an address Ray is started here, listens on the loopback address only, and is stopped in the end.
    """

    def __init__(self, workers: int | None = None, address: str | None = None, block: int | None = None) -> None:
        with isolate_local_ray() if not address else nullcontext():
            self._ray = ray = start_ray(workers, address)
        self.block = block
        self.workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._task = ray.remote(num_cpus=1, max_retries=-1)(run_remote_job)
        self._at_once = workers or 2 * self.workers  # a worker that is done finds another job waiting
        self._sent: dict[str, Any] = {}

    def map(
        self, function: Callable[[S, E], R], shared: S, each: Sequence[E], waiting: ProgressCallback | None = None
    ) -> list[R]:
        ray = self._ray
        data, kept = serialize((function, shared))
        for name, parcel in kept.items():
            if name not in self._sent:
                self._sent[name] = ray.put(parcel)
        common = ray.put((tuple(sys.path), data))
        refs = {name: self._sent[name] for name in kept}
        items = [serialize(item)[0] for item in each]
        results = cast(list[R], [None] * len(each))
        ended = 0
        todo = iter(range(len(items)))
        pending = cast(dict[Any, int], {})
        # After an error, what is under way ends by itself: to cancel it may crash Ray's driver.
        while ended < len(items):
            while len(pending) < self._at_once and (job := next(todo, None)) is not None:
                pending[self._task.remote(common, refs, items[job])] = job
            done, _ = ray.wait(list(pending), num_returns=1, timeout=SECONDS)
            for ref in done:
                results[pending.pop(ref)] = wait_for_result(ray, ref)
                ended = ended + 1
            if waiting is not None:
                waiting(ended)
        return results

    def close(self) -> None:
        self._sent.clear()
        self._ray.shutdown()

    def __enter__(self) -> RayEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def isolate_local_ray() -> Iterator[None]:
    """Let a Ray that is started in here listen on the loopback address only; to say so to `ray.init` is not enough."""
    before = os.environ.get(CLUSTER)
    os.environ[CLUSTER] = "0"
    import_ray()
    from ray._private import ray_constants

    enabled = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = enabled
        os.environ.pop(CLUSTER)
        if before is not None:
            os.environ[CLUSTER] = before


def start_ray(workers: int | None, address: str | None) -> Any:
    """Ray, connected to the cluster at the address or to a new one here."""
    ray = import_ray()
    if ray.is_initialized():
        raise UsageError("Ray is in use in this process already; call ray.shutdown() first")
    if address:
        check_reachable(address)
    try:
        if address:
            ray.init(address=address, log_to_driver=False, logging_level="error")
        else:
            here = {"address": "local", "_node_ip_address": LOOPBACK, "include_dashboard": False}
            ray.init(num_cpus=workers or count_cores(), log_to_driver=False, logging_level="error", **here)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise AggrevatedError(f"Ray cannot be reached at {address or 'this machine'}: {error}") from error
    silence_ray_logs()
    return ray


def check_reachable(address: str) -> None:
    """An error in a sentence if nobody listens there: Ray itself would wait for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        raise UsageError(f"--ray-address is {address}, but must be HOST:PORT, as 'ray start --head' says it")
    try:
        socket.create_connection((host, int(port)), timeout=5.0).close()
    except (OSError, OverflowError) as error:
        raise AggrevatedError(
            f"Ray cannot be reached at {address} ({error}); start it with 'ray start --head --port={port}'"
        ) from error


def silence_ray_logs() -> None:
    """Let Ray not tell of every lost worker on standard output, where results go: their jobs are done again."""
    from ray._private import worker

    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *_, **__: None


def wait_for_result(ray: Any, ref: Any) -> Any:
    """What came out of a task, or the error that it raised."""
    from aggrevated.engines.worker import raise_no_cached_object

    try:
        well, result = deserialize(ray.get(ref), raise_no_cached_object)
    except ray.exceptions.RayError as error:
        raise AggrevatedError(f"Ray gave a job up: {str(error).splitlines()[0]}") from error
    if not well:
        raise result
    return result


def run_remote_job(common: tuple[tuple[str, ...], bytes], refs: dict[str, Any], item: bytes) -> bytes:
    """A job, in one of Ray's workers."""
    from aggrevated.core.hardware import THREADS_VARIABLE, single_thread
    from aggrevated.engines.worker import make_reply, raise_no_cached_object

    paths, data = common
    sys.path.extend(path for path in paths if path not in sys.path)  # modules are found where they are found here
    os.environ[THREADS_VARIABLE] = "1"
    with single_thread():

        def run_job() -> Any:
            function, shared = deserialize(data, lambda name: fetch_cached_object(name, refs))
            return function(shared, deserialize(item, raise_no_cached_object))

        return make_reply(run_job)


def fetch_cached_object(name: str, refs: dict[str, Any]) -> CachedObject[Any]:
    """What is kept by that name: fetched once, and remembered as long as it is among the latest."""
    if name not in _kept:
        found = CachedObject(deserialize(import_ray().get(refs[name]), lambda inner: fetch_cached_object(inner, refs)))
        while len(_kept) >= MAX_CACHED_OBJECTS:
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
