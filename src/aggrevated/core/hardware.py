"""What this machine gives a run: cores, and threads."""

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aggrevated.core.errors import AggrevatedError, UsageError

THREADS_VARIABLE = "AGGREVATED_THREADS"  # an environment variable: at most so many threads step a simulator
THREAD_POOL_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
)  # what numerical libraries read when loaded


def count_cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def choose_thread_count() -> int:
    """One for each core, unless the environment says otherwise."""
    given = os.environ.get(THREADS_VARIABLE, "")
    if not given:
        return count_cores()
    if not given.isdecimal() or int(given) < 1:
        raise UsageError(f"{THREADS_VARIABLE} is {given!r}, but must be a whole number of at least 1")
    return int(given)


def describe_machine() -> dict[str, str | int]:
    """What the time that something took hangs on, and nothing that names it."""
    return {
        "processor": get_processor_name(),
        "cores": count_cores(),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def get_processor_name() -> str:
    """Its model, where the system tells; else what kind it is."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    except OSError:
        models = []
    return next(iter(models), platform.machine())


@contextmanager
def reraise_memory_errors(what: str) -> Iterator[None]:
    """Turn what NumPy and torch say where there is no memory left into one sentence with a remedy."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "allocate memory" not in str(error):
            raise
        raise AggrevatedError(f"not enough memory for {what}; make it smaller, or use another machine") from error


@contextmanager
def single_thread() -> Iterator[None]:
    """Pin every numerical library to one thread, whatever the environment says: bits hang on the number of threads.

    Those loaded already get their own number back afterwards; one that is loaded in here keeps to one thread.
    """
    from threadpoolctl import threadpool_limits

    torch = sys.modules.get("torch")
    environment = {name: os.environ.get(name) for name in THREAD_POOL_VARIABLES}
    threads = torch.get_num_threads() if torch else 0  # asked before the limits, which it would see
    os.environ.update(dict.fromkeys(THREAD_POOL_VARIABLES, "1"))
    try:
        with threadpool_limits(1):
            if torch:
                torch.set_num_threads(1)  # which it hands on to threads that begin later
            yield
    finally:
        if torch:
            torch.set_num_threads(threads)
        for name, value in environment.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
