"""Cores, threads and memory of this machine."""

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aggrevated.core.errors import AggrevatedError, UsageError

THREADS_VARIABLE = "AGGREVATED_THREADS"  # environment variable: number of threads that step a simulator
THREAD_POOL_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def choose_thread_count() -> int:
    """Return the number of threads in the environment variable, or one per core."""
    text = os.environ.get(THREADS_VARIABLE, "")
    if not text:
        return count_cores()
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"{THREADS_VARIABLE} is {text!r}, but must be a whole number of at least 1")
    return int(text)


def describe_machine() -> dict[str, str | int]:
    """Return what run times depend on: processor, cores, system and Python version."""
    return {
        "processor": get_processor_name(),
        "cores": count_cores(),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def get_processor_name() -> str:
    """Return the model of the processor if the system reports it, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    except OSError:
        models = []
    return next(iter(models), platform.machine())


@contextmanager
def reraise_memory_errors(purpose: str) -> Iterator[None]:
    """Reraise out-of-memory errors of NumPy and torch as an `AggrevatedError` with a remedy."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "allocate memory" not in str(error):
            raise
        raise AggrevatedError(f"not enough memory for {purpose}; make it smaller, or use another machine") from error


@contextmanager
def single_thread() -> Iterator[None]:
    """Limit all numerical libraries to one thread in a block, since results depend on the number of threads.

    Loaded libraries get their number of threads back afterwards; libraries first loaded in the block keep one
    thread.

    Yields:
        None.

    Example:
        >>> import torch
        >>> with single_thread():
        ...     torch.get_num_threads()
        1
    """
    from threadpoolctl import threadpool_limits

    torch = sys.modules.get("torch")
    variables = {name: os.environ.get(name) for name in THREAD_POOL_VARIABLES}
    threads = torch.get_num_threads() if torch else 0  # read before threadpoolctl changes it
    os.environ.update(dict.fromkeys(THREAD_POOL_VARIABLES, "1"))
    try:
        with threadpool_limits(1):
            if torch:
                torch.set_num_threads(1)  # also for threads that start later
            yield
    finally:
        if torch:
            torch.set_num_threads(threads)
        for name, value in variables.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
