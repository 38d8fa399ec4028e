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

from aggrevated.core.hardware import THREADS, one_thread
from aggrevated.engines.serialization import Kept, packed, unpacked
from aggrevated.errors import AggrevatedError


def serve(connection: Connection, threads: int) -> None:
    """Do jobs until the other side is gone, with one thread for arithmetic and so many for simulators."""
    os.environ[THREADS] = str(threads)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    threading.Thread(target=end_with, args=(connection.fileno(),), daemon=True).start()
    with one_thread():
        work(connection)


def work(connection: Connection) -> None:
    """One job after the other. A message is (what is to be kept, function and shared or None, the job)."""
    kept: dict[str, Kept[Any]] = {}
    common: list[Any] = []
    while True:
        try:
            message = connection.recv_bytes()
        except (EOFError, OSError):
            os._exit(0)  # there is nothing to tidy up, and nobody to wait for it
        connection.send_bytes(answered(lambda message=message: done(message, kept, common)))  # type: ignore[misc]


def done(message: bytes, kept: dict[str, Kept[Any]], common: list[Any]) -> Any:
    """What comes out of the job in a message; `kept` and `common`, function and shared, are for those to come."""
    parcels, newer, job = pickle.loads(message)
    for name, data in parcels.items():
        kept[name] = Kept(unpacked(data, kept.__getitem__))
    if newer is not None:
        common[:] = unpacked(newer, kept.__getitem__)
    function, shared = common
    return function(shared, unpacked(job, unknown))


def end_with(line: int) -> None:
    """End this process when the other side of the line is gone, even by kill -9, and even in the middle of a job."""
    poll = select.poll()
    poll.register(line, 0)
    while not any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll()):
        pass
    os._exit(1)


def answered(job: Callable[[], Any]) -> bytes:
    """(whether it went well, what came out), as it travels; of an error also where it happened."""
    try:
        return packed((True, job()))[0]
    except AggrevatedError as error:
        return packed((False, error))[0]
    except BaseException as error:
        error.add_note(f"in a worker:\n{traceback.format_exc()}")
        try:
            data = packed((False, error))[0]
            unpacked(data, unknown)  # not every error that can be packed can be unpacked
            return data
        except Exception:
            return packed((False, RuntimeError(f"{type(error).__name__}: {error}")))[0]


def unknown(name: str) -> Kept[Any]:
    """Jobs and answers hold nothing that is kept."""
    raise KeyError(name)
