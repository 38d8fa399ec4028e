"""One thread, whatever the environment says, in processes that loaded NumPy and torch before it, within it, or not."""

import os
import subprocess
import sys

import pytest

from aggrevated.core.errors import AggrevatedError
from aggrevated.core.hardware import THREAD_POOL_VARIABLES, reraise_memory_errors, single_thread

LOOK = """
import os, sys
from threadpoolctl import threadpool_info
from aggrevated.core.hardware import THREAD_POOL_VARIABLES, single_thread

def threads():
    pools = [pool["num_threads"] for pool in threadpool_info()]
    return pools + ([sys.modules["torch"].get_num_threads()] if "torch" in sys.modules else [])

def environment():
    return [os.environ.get(name) for name in THREAD_POOL_VARIABLES]

def pinned():
    return environment() == ["1"] * 3 and set(threads()) <= {1}

assert not {"numpy", "torch"} & set(sys.modules)
"""


def run(lines: str, **environment: str) -> None:
    """Run them after LOOK in a process whose environment asks for two threads, unless it is said otherwise."""
    inherited = {name: value for name, value in os.environ.items() if name not in THREAD_POOL_VARIABLES}
    asked = inherited | {"OMP_NUM_THREADS": "2"} | environment
    done = subprocess.run([sys.executable, "-c", LOOK + lines], env=asked, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("library", ["numpy", "torch", "numpy, torch"])
def test_what_is_loaded_already_has_one_thread_for_the_time_and_then_its_own_again(library):
    run(f"""
import {library}
assert set(threads()) == {{2}}, threads()
with single_thread():
    assert threads() and pinned(), threads()
assert set(threads()) == {{2}} and environment() == ["2", None, None], threads()
""")


@pytest.mark.parametrize("library", ["numpy", "torch", "scipy.linalg", "numpy, torch"])
def test_what_is_loaded_within_has_one_thread(library):
    run(f"""
with single_thread():
    import {library}
    assert threads() and pinned(), threads()
assert environment() == ["2", None, None]
""")


def test_a_library_that_is_loaded_beside_another_has_one_thread_too():
    run("""
import numpy
with single_thread():
    import torch, scipy.linalg
    torch.ones(300, 300) @ torch.ones(300, 300)
    assert pinned(), threads()
""")


@pytest.mark.parametrize("loaded", ["before", "within"])
def test_threads_of_python_that_begin_within_compute_on_one_thread_each(loaded):
    """OpenMP's number is that of a thread; torch hands its own on to those that begin later."""
    run(f"""
from threading import Thread

def elsewhere():
    found = []
    thread = Thread(target=lambda: found.append(sys.modules["torch"].get_num_threads()))
    thread.start()
    thread.join()
    return found[0]

if {loaded == "before"}:
    import torch
    assert elsewhere() == 2
with single_thread():
    import torch
    assert elsewhere() == 1
if {loaded == "before"}:
    assert elsewhere() == 2
""")


@pytest.mark.parametrize("pool", THREAD_POOL_VARIABLES)
def test_whatever_the_environment_says(pool):
    run("with single_thread():\n    import torch\n    assert pinned(), threads()", **{pool: "2"})


def test_nested_and_after_an_error():
    run("""
import torch
try:
    with single_thread():
        with single_thread():
            assert pinned()
        assert pinned(), (threads(), environment())
        raise KeyError
except KeyError:
    pass
assert set(threads()) == {2} and environment() == ["2", None, None], threads()
""")


def test_it_is_usable_twice_and_leaves_the_environment_as_it_was(monkeypatch):
    monkeypatch.setenv(THREAD_POOL_VARIABLES[0], "7")
    monkeypatch.delenv(THREAD_POOL_VARIABLES[1], raising=False)
    for _ in range(2):
        with single_thread():
            assert [os.environ[name] for name in THREAD_POOL_VARIABLES] == ["1"] * 3
        assert os.environ[THREAD_POOL_VARIABLES[0]] == "7" and THREAD_POOL_VARIABLES[1] not in os.environ


@pytest.mark.parametrize("fault", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: 8 TB")])
def test_too_little_memory_is_a_sentence(fault: Exception) -> None:
    with pytest.raises(AggrevatedError, match="not enough memory for it; make it smaller"), reraise_memory_errors("it"):
        raise fault


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(RuntimeError, match="shapes"), reraise_memory_errors("the policy"):
        raise RuntimeError("shapes do not fit")
