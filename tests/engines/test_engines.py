"""Engines: results, errors, progress, and recovery from lost workers."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import work

from aggrevated.core.errors import AggrevatedError, DataError, UsageError
from aggrevated.engines import IN_PROCESS, InProcessEngine, split_into_blocks
from aggrevated.engines.processes import ProcessEngine
from aggrevated.engines.serialization import CachedObject, deserialize, serialize


def test_engine_map_returns_results_in_order(engine):
    assert engine.map(work.add, 100, list(range(9))) == list(range(100, 109))
    assert engine.map(work.add, 5, []) == []


def test_engine_map_runs_local_functions(engine):
    factor = 3
    assert engine.map(lambda shared, each: factor * shared * each, 2, [1, 2]) == [6, 12]


def test_engine_map_raises_the_error_of_a_job_with_its_type_and_message(engine):
    with pytest.raises(DataError, match=r"^the third is bad; mend it$"):
        engine.map(work.fail_on_three, None, [1, 2, 3, 4])
    assert engine.map(work.add, 1, [1]) == [2]  # the engine still works


def test_engine_map_describes_an_error_that_cannot_be_pickled(engine):
    with pytest.raises(Exception, match="odd"):
        engine.map(work.raise_unpicklable_error, None, [1, 2])


def test_engine_map_describes_an_error_that_cannot_be_unpickled(engine):
    with pytest.raises(Exception, match="this and that"):
        engine.map(work.raise_two_parts_error, None, [1])


def test_engine_map_raises_an_unpickling_error_without_losing_a_worker(engine):
    if isinstance(engine, InProcessEngine):
        pytest.skip("jobs in process are not pickled")
    brittle = work.Brittle()
    brittle.something = 1  # without an attribute there is no state to set
    for shared in (brittle, CachedObject(brittle)):
        with pytest.raises(RuntimeError, match="there is no display here"):
            engine.map(work.ignore, shared, [1, 2])
    assert engine.map(work.add, 1, [1]) == [2]


def test_cached_object_is_sent_once_to_each_worker(engine):
    cached = CachedObject(work.Costly(np.arange(4.0)))
    arrivals_by_worker = []
    for factor in (1, 2, 3):
        found = engine.map(work.sum_shared, (cached, factor), [1, 2, 3, 4])
        assert [value for value, _, _ in found] == [6 * factor + each for each in (1, 2, 3, 4)]
        arrivals_by_worker += [(pid, arrivals) for _, arrivals, pid in found]
    for pid in {pid for pid, _ in arrivals_by_worker}:
        assert len({arrivals for worker, arrivals in arrivals_by_worker if worker == pid}) == 1


def test_engine_map_reports_progress(engine):
    progress = []
    engine.map(work.sleep_and_return, 0.01, list(range(4)), progress.append)
    assert progress == sorted(progress) and progress[-1] == 4


def test_engine_map_repeats_the_job_of_a_dead_worker(engine, tmp_path):
    if isinstance(engine, InProcessEngine):
        pytest.skip("in process there is no other worker")
    assert engine.map(work.die_once, str(tmp_path / "mark"), [1, 2, 3]) == [1, 2, 3]


def test_engine_workers_use_one_thread_and_no_torch(engine):
    if isinstance(engine, InProcessEngine):
        pytest.skip("in process the tests set the threads")
    assert "torch" not in engine.map(work.list_modules, None, [1])[0]
    assert set(engine.map(work.count_threads, None, [1])[0]) == {1}


def test_serialize_supports_nested_cached_objects():
    inner = CachedObject((1, 2))
    data, parcels = serialize((CachedObject({"inner": inner}), inner))
    found = {}
    for name, parcel in parcels.items():
        found[name] = CachedObject(deserialize(parcel, found.__getitem__))
    outer, other = deserialize(data, found.__getitem__)
    assert outer.value["inner"] is other and other.value == (1, 2)


def test_serialize_refuses_unpicklable_objects_in_one_sentence():
    with pytest.raises(UsageError, match=r"^a job cannot be sent to a worker .*; make simulator and expert picklable"):
        serialize(threading.Lock())


def test_split_into_blocks_holds_every_trajectory_once():
    indices = np.arange(23)
    for engine in (
        IN_PROCESS,
        InProcessEngine(1),
        InProcessEngine(7),
        InProcessEngine(50),
        ProcessEngine(2),
        ProcessEngine(8, 4),
    ):
        np.testing.assert_array_equal(np.concatenate(split_into_blocks(indices, engine)), indices)
    assert [len(block) for block in split_into_blocks(indices, InProcessEngine(7))] == [7, 7, 7, 2]
    assert len(split_into_blocks(indices, IN_PROCESS)) == 1
    assert [len(block) for block in split_into_blocks(indices[:0], ProcessEngine(2))] == [0]


@pytest.mark.parametrize("kills", [6])
def test_process_engine_replaces_killed_workers_and_loses_nothing(kills):
    with ProcessEngine(2) as engine:
        stop = threading.Event()

        def killer() -> None:
            for _ in range(kills):
                time.sleep(0.1)
                busy = [worker for worker in engine._team if worker.job is not None]
                if busy:
                    os.kill(busy[0].process.pid, signal.SIGKILL)
            stop.set()

        thread = threading.Thread(target=killer)
        thread.start()
        while not stop.is_set():
            assert [each for each, _ in engine.map(work.sleep_and_return, 0.03, list(range(12)))] == list(range(12))
        thread.join()
        pids = [worker.process.pid for worker in engine._team]
    assert pids and not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_process_engine_gives_up_a_job_that_kills_every_worker(monkeypatch):
    monkeypatch.setattr("aggrevated.engines.processes.MAX_LOST_WORKERS", 3)
    with (
        ProcessEngine(1) as engine,
        pytest.raises(AggrevatedError, match=r"^3 workers were lost over one job, .* exit code 7"),
    ):
        engine.map(work.die_always, None, [1])


ORPHANS = """
import os, sys, time
sys.path.insert(0, {folder!r})
import work
from aggrevated.engines.processes import ProcessEngine

engine = ProcessEngine(2)
engine.map(work.sleep_and_return, 0.0, [1, 2])
print(*[worker.process.pid for worker in engine._team], flush=True)
engine.map(work.sleep_and_return, 60.0, [1, 2])
"""


def test_process_engine_workers_end_when_their_parent_is_killed():
    folder = str(Path(work.__file__).parent)
    command = [sys.executable, "-c", ORPHANS.format(folder=folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        pids = parent.stdout.readline().split()
        assert len(pids) == 2
        parent.kill()
    deadline = time.monotonic() + 20
    while any(is_alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [pid for pid in pids if is_alive(pid)]


def is_alive(pid: str) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False
