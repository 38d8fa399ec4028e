"""A worker: it waits for jobs, does them, and sends back what came out. No torch is needed for lanes."""

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
    """Do jobs until the other side is gone, with one thread for arithmetic and so many for simulators."""
    os.environ[THREADS_VARIABLE] = str(threads)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    threading.Thread(target=exit_with_parent, args=(connection.fileno(),), daemon=True).start()
    with single_thread():
        run_worker(connection)


def run_worker(connection: Connection) -> None:
    """One job after the other. A message is (what is to be kept, function and shared or None, the job)."""
    kept: dict[str, CachedObject[Any]] = {}
    common: list[Any] = []
    while True:
        try:
            message = connection.recv_bytes()
        except (EOFError, OSError):
            os._exit(0)  # there is nothing to tidy up, and nobody to wait for it
        connection.send_bytes(make_reply(lambda message=message: execute_job(message, kept, common)))  # type: ignore[misc]


def execute_job(message: bytes, kept: dict[str, CachedObject[Any]], common: list[Any]) -> Any:
    """What comes out of the job in a message; `kept` and `common`, function and shared, are for those to come."""
    parcels, newer, job = pickle.loads(message)
    for name, data in parcels.items():
        kept[name] = CachedObject(deserialize(data, kept.__getitem__))
    if newer is not None:
        common[:] = deserialize(newer, kept.__getitem__)
    function, shared = common
    return function(shared, deserialize(job, raise_no_cached_object))


def exit_with_parent(line: int) -> None:
    """End this process when the other side of the line is gone, even by kill -9, and even in the middle of a job."""
    poll = select.poll()
    poll.register(line, 0)
    while not any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll()):
        pass
    os._exit(1)


def make_reply(job: Callable[[], Any]) -> bytes:
    """(whether it went well, what came out), as it travels; of an error also where it happened."""
    try:
        return serialize((True, job()))[0]
    except AggrevatedError as error:
        return serialize((False, error))[0]
    except BaseException as error:
        error.add_note(f"in a worker:\n{traceback.format_exc()}")
        try:
            data = serialize((False, error))[0]
            deserialize(data, raise_no_cached_object)  # not every error that can be packed can be unpacked
            return data
        except Exception:
            return serialize((False, RuntimeError(f"{type(error).__name__}: {error}")))[0]


def raise_no_cached_object(name: str) -> CachedObject[Any]:
    """Jobs and answers hold nothing that is kept."""
    raise KeyError(name)
