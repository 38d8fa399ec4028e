"""`single_thread` limits libraries loaded before it, inside it or never, for any environment variables."""

import os
import subprocess
import sys

import pytest

from aggrevated.core.errors import AggrevatedError
from aggrevated.core.hardware import THREAD_POOL_VARIABLES, reraise_memory_errors, single_thread

PREAMBLE = """
import os, sys
from threadpoolctl import threadpool_info
from aggrevated.core.hardware import THREAD_POOL_VARIABLES, single_thread

def threads():
    pools = [pool["num_threads"] for pool in threadpool_info()]
    return pools + ([sys.modules["torch"].get_num_threads()] if "torch" in sys.modules else [])

def environment():
    return [os.environ.get(name) for name in THREAD_POOL_VARIABLES]

def has_one_thread():
    return environment() == ["1"] * 3 and set(threads()) <= {1}

assert not {"numpy", "torch"} & set(sys.modules)
"""


def run_in_process(lines: str, **environment: str) -> None:
    """Run lines after PREAMBLE in a process whose environment sets two threads, unless `environment` overrides it."""
    inherited = {name: value for name, value in os.environ.items() if name not in THREAD_POOL_VARIABLES}
    variables = inherited | {"OMP_NUM_THREADS": "2"} | environment
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + lines], env=variables, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("library", ["numpy", "torch", "numpy, torch"])
def test_single_thread_restores_thread_counts_of_loaded_libraries(library):
    run_in_process(f"""
import {library}
assert set(threads()) == {{2}}, threads()
with single_thread():
    assert threads() and has_one_thread(), threads()
assert set(threads()) == {{2}} and environment() == ["2", None, None], threads()
""")


@pytest.mark.parametrize("library", ["numpy", "torch", "scipy.linalg", "numpy, torch"])
def test_single_thread_applies_to_libraries_imported_inside(library):
    run_in_process(f"""
with single_thread():
    import {library}
    assert threads() and has_one_thread(), threads()
assert environment() == ["2", None, None]
""")


def test_single_thread_applies_to_libraries_imported_after_a_loaded_one():
    run_in_process("""
import numpy
with single_thread():
    import torch, scipy.linalg
    torch.ones(300, 300) @ torch.ones(300, 300)
    assert has_one_thread(), threads()
""")


@pytest.mark.parametrize("loaded", ["before", "within"])
def test_single_thread_applies_to_python_threads_started_inside(loaded):
    """OpenMP counts threads per Python thread; torch passes its number to threads that start later."""
    run_in_process(f"""
from threading import Thread

def threads_of_new_thread():
    found = []
    thread = Thread(target=lambda: found.append(sys.modules["torch"].get_num_threads()))
    thread.start()
    thread.join()
    return found[0]

if {loaded == "before"}:
    import torch
    assert threads_of_new_thread() == 2
with single_thread():
    import torch
    assert threads_of_new_thread() == 1
if {loaded == "before"}:
    assert threads_of_new_thread() == 2
""")


@pytest.mark.parametrize("pool", THREAD_POOL_VARIABLES)
def test_single_thread_overrides_environment_variables(pool):
    run_in_process("with single_thread():\n    import torch\n    assert has_one_thread(), threads()", **{pool: "2"})


def test_single_thread_can_be_nested_and_restores_after_an_error():
    run_in_process("""
import torch
try:
    with single_thread():
        with single_thread():
            assert has_one_thread()
        assert has_one_thread(), (threads(), environment())
        raise KeyError
except KeyError:
    pass
assert set(threads()) == {2} and environment() == ["2", None, None], threads()
""")


def test_single_thread_can_be_used_twice_and_restores_the_environment(monkeypatch):
    monkeypatch.setenv(THREAD_POOL_VARIABLES[0], "7")
    monkeypatch.delenv(THREAD_POOL_VARIABLES[1], raising=False)
    for _ in range(2):
        with single_thread():
            assert [os.environ[name] for name in THREAD_POOL_VARIABLES] == ["1"] * 3
        assert os.environ[THREAD_POOL_VARIABLES[0]] == "7" and THREAD_POOL_VARIABLES[1] not in os.environ


@pytest.mark.parametrize("fault", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: 8 TB")])
def test_reraise_memory_errors_turns_allocation_failures_into_one_sentence(fault: Exception) -> None:
    with pytest.raises(AggrevatedError, match="not enough memory for it; make it smaller"), reraise_memory_errors("it"):
        raise fault


def test_reraise_memory_errors_leaves_other_errors_alone() -> None:
    with pytest.raises(RuntimeError, match="shapes"), reraise_memory_errors("the policy"):
        raise RuntimeError("shapes do not fit")
