"""What every engine does, and what is lost with a worker."""

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


def test_results_come_in_order(engine):
    assert engine.map(work.plus, 100, list(range(9))) == list(range(100, 109))
    assert engine.map(work.plus, 5, []) == []


def test_functions_of_a_script_travel_too(engine):
    factor = 3
    assert engine.map(lambda shared, each: factor * shared * each, 2, [1, 2]) == [6, 12]


def test_an_error_of_a_job_is_raised_here_with_its_type_and_sentence(engine):
    with pytest.raises(DataError, match=r"^the third is bad; mend it$"):
        engine.map(work.fails, None, [1, 2, 3, 4])
    assert engine.map(work.plus, 1, [1]) == [2]  # and the engine is still of use


def test_an_error_that_cannot_travel_is_told_in_words(engine):
    with pytest.raises(Exception, match="odd"):
        engine.map(work.odd_error, None, [1, 2])


def test_an_error_that_cannot_be_unpacked_is_told_in_words(engine):
    with pytest.raises(Exception, match="this and that"):
        engine.map(work.two_parts, None, [1])


def test_what_breaks_where_it_arrives_is_an_error_and_no_lost_worker(engine):
    if isinstance(engine, InProcessEngine):
        pytest.skip("in process nothing travels")
    brittle = work.Brittle()
    brittle.something = 1  # else there is no state to set
    for shared in (brittle, CachedObject(brittle)):
        with pytest.raises(RuntimeError, match="there is no display here"):
            engine.map(work.ignore, shared, [1, 2])
    assert engine.map(work.plus, 1, [1]) == [2]


def test_what_is_kept_travels_once_to_each_worker(engine):
    kept = CachedObject(work.Costly(np.arange(4.0)))
    seen = []
    for factor in (1, 2, 3):
        found = engine.map(work.total, (kept, factor), [1, 2, 3, 4])
        assert [value for value, _, _ in found] == [6 * factor + each for each in (1, 2, 3, 4)]
        seen += [(pid, arrivals) for _, arrivals, pid in found]
    for pid in {pid for pid, _ in seen}:
        assert len({arrivals for who, arrivals in seen if who == pid}) == 1


def test_who_waits_is_told(engine):
    told = []
    engine.map(work.slowly, 0.01, list(range(4)), told.append)
    assert told == sorted(told) and told[-1] == 4


def test_the_job_of_a_worker_that_dies_is_done_again(engine, tmp_path):
    if isinstance(engine, InProcessEngine):
        pytest.skip("in process there is no other worker")
    assert engine.map(work.dies_once, str(tmp_path / "mark"), [1, 2, 3]) == [1, 2, 3]


def test_workers_use_one_thread_and_no_torch(engine):
    if isinstance(engine, InProcessEngine):
        pytest.skip("in process it is ours")
    assert "torch" not in engine.map(work.loaded, None, [1])[0]
    assert set(engine.map(work.threads, None, [1])[0]) == {1}


def test_what_is_kept_inside_of_what_is_kept_arrives():
    inner = CachedObject((1, 2))
    data, parcels = serialize((CachedObject({"inner": inner}), inner))
    found = {}
    for name, parcel in parcels.items():
        found[name] = CachedObject(deserialize(parcel, found.__getitem__))
    outer, other = deserialize(data, found.__getitem__)
    assert outer.value["inner"] is other and other.value == (1, 2)


def test_what_cannot_travel_is_refused_in_a_sentence():
    with pytest.raises(UsageError, match=r"^this cannot be sent to a worker .*: make simulator and expert picklable"):
        serialize(threading.Lock())


def test_blocks_hold_every_lane_once():
    lanes = np.arange(23)
    for engine in (
        IN_PROCESS,
        InProcessEngine(1),
        InProcessEngine(7),
        InProcessEngine(50),
        ProcessEngine(2),
        ProcessEngine(8, 4),
    ):
        np.testing.assert_array_equal(np.concatenate(split_into_blocks(lanes, engine)), lanes)
    assert [len(block) for block in split_into_blocks(lanes, InProcessEngine(7))] == [7, 7, 7, 2]
    assert len(split_into_blocks(lanes, IN_PROCESS)) == 1
    assert [len(block) for block in split_into_blocks(lanes[:0], ProcessEngine(2))] == [0]


@pytest.mark.parametrize("kills", [6])
def test_killed_workers_are_replaced_and_nothing_is_lost(kills):
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
            assert [each for each, _ in engine.map(work.slowly, 0.03, list(range(12)))] == list(range(12))
        thread.join()
        pids = [worker.process.pid for worker in engine._team]
    assert pids and not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_a_job_that_kills_every_worker_is_given_up(monkeypatch):
    monkeypatch.setattr("aggrevated.engines.processes.WORKER_START_TIMEOUT", 3)
    with (
        ProcessEngine(1) as engine,
        pytest.raises(AggrevatedError, match=r"^3 workers were lost over one job, .* exit code 7"),
    ):
        engine.map(work.dies_always, None, [1])


ORPHANS = """
import os, sys, time
sys.path.insert(0, {folder!r})
import work
from aggrevated.engines.processes import Processes

engine = Processes(2)
engine.map(work.slowly, 0.0, [1, 2])
print(*[worker.process.pid for worker in engine._team], flush=True)
engine.map(work.slowly, 60.0, [1, 2])
"""


def test_no_worker_outlives_a_parent_that_is_killed():
    folder = str(Path(work.__file__).parent)
    command = [sys.executable, "-c", ORPHANS.format(folder=folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        pids = parent.stdout.readline().split()
        assert len(pids) == 2
        parent.kill()
    until = time.monotonic() + 20
    while any(alive(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.1)
    assert not [pid for pid in pids if alive(pid)]


def alive(pid: str) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False
