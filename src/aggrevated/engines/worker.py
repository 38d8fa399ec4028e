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

from aggrevated.engines.sending import Kept, packed, unpacked
from aggrevated.errors import AggrevatedError
from aggrevated.machine import THREADS, one_thread


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
    function: Callable[[Any, Any], Any]
    shared: Any = None
    while True:
        try:
            parcels, common, job = pickle.loads(connection.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)  # there is nothing to tidy up, and nobody to wait for it
        for name, data in parcels.items():
            kept[name] = Kept(unpacked(data, kept.__getitem__))
        if common is not None:
            function, shared = unpacked(common, kept.__getitem__)
        connection.send_bytes(answer(function, shared, job))


def end_with(line: int) -> None:
    """End this process when the other side of the line is gone, even by kill -9, and even in the middle of a job."""
    poll = select.poll()
    poll.register(line, 0)
    while not any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll()):
        pass
    os._exit(1)


def answer(function: Callable[[Any, Any], Any], shared: Any, job: bytes) -> bytes:
    """(whether it went well, what came out), as it travels; of an error also where it happened."""
    try:
        return packed((True, function(shared, unpacked(job, unknown))))[0]
    except AggrevatedError as error:
        return packed((False, error))[0]
    except BaseException as error:
        error.add_note(f"in a worker:\n{traceback.format_exc()}")
        try:
            return packed((False, error))[0]
        except Exception:
            return packed((False, RuntimeError(f"{type(error).__name__}: {error}")))[0]


def unknown(name: str) -> Kept[Any]:
    """Jobs and answers hold nothing that is kept."""
    raise KeyError(name)
