"""Engine of Ray tasks, on a Ray cluster or on a local Ray that only this machine can reach."""

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
POLL_SECONDS = 0.5  # between two calls of `waiting`
MAX_CACHED_OBJECTS = 8  # per worker
LOOPBACK = "127.0.0.1"
CLUSTER = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # environment variable of Ray
_cache: dict[str, CachedObject[Any]] = {}  # in a worker: by name, the newest last


class RayEngine:
    """Engine of stateless Ray tasks, which Ray repeats if a worker or a node is lost.

    Without an address, Ray is started on this machine, listens on the loopback address only, and stops with
    `close`.

    Args:
        workers: number of jobs at once; None: one per CPU of the cluster.
        address: HOST:PORT of the head of a Ray cluster, or None.
        block: number of episodes per job; None: half of each worker's share.

    Raises:
        UsageError: Ray is not installed or already in use, or `address` is not HOST:PORT.
        AggrevatedError: Ray cannot be reached.
    """

    def __init__(self, workers: int | None = None, address: str | None = None, block: int | None = None) -> None:
        with isolate_local_ray() if not address else nullcontext():
            self._ray = ray = start_ray(workers, address)
        self.block = block
        self.workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._task = ray.remote(num_cpus=1, max_retries=-1)(run_remote_job)
        self._max_pending = workers or 2 * self.workers  # so that the next job of a worker is waiting
        self._sent: dict[str, Any] = {}

    def map(
        self, function: Callable[[S, E], R], shared: S, each: Sequence[E], waiting: ProgressCallback | None = None
    ) -> list[R]:
        """Return [function(shared, item) for item in each], computed on the cluster.

        Args:
            function: picklable pure function of (shared, item).
            shared: argument that all jobs have in common.
            each: argument of each job.
            waiting: called at least twice a second with the number of jobs that are done.

        Returns:
            The results in the order of `each`.

        Raises:
            UsageError: an argument cannot be pickled.
            AggrevatedError: Ray failed to run a job.
        """
        ray = self._ray
        data, cached = serialize((function, shared))
        for name, parcel in cached.items():
            if name not in self._sent:
                self._sent[name] = ray.put(parcel)
        common = ray.put((tuple(sys.path), data))
        refs = {name: self._sent[name] for name in cached}
        items = [serialize(item)[0] for item in each]
        results = cast(list[R], [None] * len(each))
        n_done = 0
        todo = iter(range(len(items)))
        pending = cast(dict[Any, int], {})
        # After an error, running tasks are not cancelled: that may crash Ray's driver.
        while n_done < len(items):
            while len(pending) < self._max_pending and (job := next(todo, None)) is not None:
                pending[self._task.remote(common, refs, items[job])] = job
            done, _ = ray.wait(list(pending), num_returns=1, timeout=POLL_SECONDS)
            for ref in done:
                results[pending.pop(ref)] = wait_for_result(ray, ref)
                n_done = n_done + 1
            if waiting is not None:
                waiting(n_done)
        return results

    def close(self) -> None:
        """Disconnect from Ray, and stop it if this engine started it."""
        self._sent.clear()
        self._ray.shutdown()

    def __enter__(self) -> RayEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def isolate_local_ray() -> Iterator[None]:
    """Make a Ray that starts in this block listen on the loopback address only; `ray.init` alone cannot."""
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
    """Return Ray, connected to the cluster at the address or to a new one on this machine."""
    ray = import_ray()
    if ray.is_initialized():
        raise UsageError("Ray is already in use in this process; call ray.shutdown() first")
    if address:
        check_reachable(address)
    try:
        if address:
            ray.init(address=address, log_to_driver=False, logging_level="error")
        else:
            options = {"address": "local", "_node_ip_address": LOOPBACK, "include_dashboard": False}
            ray.init(num_cpus=workers or count_cores(), log_to_driver=False, logging_level="error", **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = address or "this machine"
        raise AggrevatedError(f"Ray cannot be reached at {where} ({error}); use another --engine") from error
    silence_ray_logs()
    return ray


def check_reachable(address: str) -> None:
    """Raise if no server listens at the address, for which Ray itself would wait for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        raise UsageError(f"--ray-address is {address}, but must be HOST:PORT, as 'ray start --head' prints")
    try:
        socket.create_connection((host, int(port)), timeout=5.0).close()
    except (OSError, OverflowError) as error:
        raise AggrevatedError(
            f"Ray cannot be reached at {address} ({error}); start it with 'ray start --head --port={port}'"
        ) from error


def silence_ray_logs() -> None:
    """Keep Ray's messages about lost workers out of standard output; their jobs are repeated."""
    from ray._private import worker

    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *_, **__: None


def wait_for_result(ray: Any, ref: Any) -> Any:
    """Return the result of a task, or raise its error."""
    from aggrevated.engines.worker import raise_no_cached_object

    try:
        succeeded, result = deserialize(ray.get(ref), raise_no_cached_object)
    except ray.exceptions.RayError as error:
        raise AggrevatedError(
            f"Ray failed to run a job ({str(error).splitlines()[0]}); check the cluster, or use another --engine"
        ) from error
    if not succeeded:
        raise result
    return result


def run_remote_job(common: tuple[tuple[str, ...], bytes], refs: dict[str, Any], item: bytes) -> bytes:
    """Run a job in a Ray worker and return its serialized reply."""
    from aggrevated.core.hardware import THREADS_VARIABLE, single_thread
    from aggrevated.engines.worker import make_reply, raise_no_cached_object

    paths, data = common
    sys.path.extend(path for path in paths if path not in sys.path)  # the driver's modules
    os.environ[THREADS_VARIABLE] = "1"
    with single_thread():

        def run_job() -> Any:
            function, shared = deserialize(data, lambda name: fetch_cached_object(name, refs))
            return function(shared, deserialize(item, raise_no_cached_object))

        return make_reply(run_job)


def fetch_cached_object(name: str, refs: dict[str, Any]) -> CachedObject[Any]:
    """Return a cached object; fetch it unless it is among the newest MAX_CACHED_OBJECTS."""
    if name not in _cache:
        value = deserialize(import_ray().get(refs[name]), lambda inner: fetch_cached_object(inner, refs))
        while len(_cache) >= MAX_CACHED_OBJECTS:
            _cache.pop(next(iter(_cache)))
        _cache[name] = CachedObject(value)
    return _cache[name]


def import_ray() -> Any:
    """Return the module ray, or raise with the command that installs it."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else Ray warns of accelerators
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            "Ray is not installed: run pip install 'aggrevated[ray]', or choose another --engine"
        ) from error
    return ray
