"""Main loop of a worker process: receive jobs, run them, and send replies. Roll-ins need no torch."""

from __future__ import annotations

import os
import pickle
import select
import signal
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from aggrevated.core.errors import AggrevatedError
from aggrevated.core.hardware import THREADS_VARIABLE, single_thread
from aggrevated.engines.serialization import CachedObject, deserialize, serialize


def serve_jobs(connection: Connection, threads: int) -> None:
    """Run jobs until the parent is gone, with one thread for numerics and `threads` for simulators."""
    os.environ[THREADS_VARIABLE] = str(threads)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    threading.Thread(target=exit_with_parent, args=(connection.fileno(),), daemon=True).start()
    with single_thread():
        run_worker(connection)


def run_worker(connection: Connection) -> None:
    """Run jobs one by one. A message is (cached objects, (function, shared argument) or None, job)."""
    cached: dict[str, CachedObject[Any]] = {}
    common: list[Any] = []
    while True:
        try:
            message = connection.recv_bytes()
        except (EOFError, OSError):
            os._exit(0)  # there is nothing to clean up
        connection.send_bytes(make_reply(lambda message=message: execute_job(message, cached, common)))  # type: ignore[misc]


def execute_job(message: bytes, cached: dict[str, CachedObject[Any]], common: list[Any]) -> Any:
    """Return the result of the job in a message; update `cached` and `common` (function, shared argument)."""
    parcels, new_common, job = pickle.loads(message)
    for name, data in parcels.items():
        cached[name] = CachedObject(deserialize(data, cached.__getitem__))
    if new_common is not None:
        common[:] = deserialize(new_common, cached.__getitem__)
    function, shared = common
    return function(shared, deserialize(job, raise_no_cached_object))


def exit_with_parent(descriptor: int) -> None:
    """End this process, even during a job, when the other end of the connection is closed."""
    poll = select.poll()
    poll.register(descriptor, 0)
    while not any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll()):
        pass
    os._exit(1)


def make_reply(job: Callable[[], Any]) -> bytes:
    """Run a job and return the serialized (success, result or error); errors carry the worker's traceback."""
    try:
        return serialize((True, job()))[0]
    except AggrevatedError as error:
        return serialize((False, error))[0]
    except BaseException as error:
        error.add_note(f"in a worker:\n{traceback.format_exc()}")
        try:
            data = serialize((False, error))[0]
            deserialize(data, raise_no_cached_object)  # some errors can be pickled, but not unpickled
            return data
        except Exception:
            return serialize((False, RuntimeError(f"{type(error).__name__}: {error}")))[0]


def raise_no_cached_object(name: str) -> CachedObject[Any]:
    """Raise a `KeyError`: jobs and replies contain no cached objects."""
    raise KeyError(name)
