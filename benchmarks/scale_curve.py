"""What more workers are worth: Hopper's iterations measured with 1, 2 and 4, and a model of 1,000 beside them."""

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from statistics import median

from aggrevated.algorithm import aggrevated
from aggrevated.config.building import set_up
from aggrevated.config.resolving import resolve
from aggrevated.engines import Engine, InProcess, blocks
from aggrevated.engines.processes import Processes
from aggrevated.engines.ray import Ray
from aggrevated.engines.sending import Kept, packed
from aggrevated.gathering import Place, lanes
from aggrevated.machine import THREADS, one_thread
from aggrevated.randomness import Purpose, seeds

K = 50
TICK = os.sysconf("SC_CLK_TCK")
SETTINGS = {"update": "natural", "queried_steps": 2, "validation_episodes": 40, "start": "random"}


@dataclass(frozen=True)
class Measured:
    """An iteration of Hopper, seconds but for what is said."""

    engine: str
    workers: int
    wall: float
    driver: float  # CPU of the driver
    work: float  # CPU of all workers
    busiest: float  # CPU of the busiest one
    rss: float  # MB of a worker, shared pages counted in full
    pss: float  # MB of a worker, shared pages counted by share


def learning(engine: Engine, k: int = K, **settings: object) -> Callable[[int], None]:
    """What does so many more iterations."""
    setup = set_up(resolve("hopper", trajectories=k, **SETTINGS | settings))
    world = setup.world.over(engine)
    iterations = aggrevated(
        setup.learner, world.simulator, world.expert, setup.oracle, setup.loss,
        k=k, alpha=setup.alpha, validate=world.validate, engine=engine,
    )  # fmt: skip
    return lambda count: [None for _ in islice(iterations, count)].clear()


def cpu_of(pid: int) -> float:
    """Seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def memory_of(pid: int) -> tuple[float, float]:
    """(RSS, PSS) in MB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    sizes = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines[1:]}
    return sizes["Rss"], sizes["Pss"]


def workers_of(engine: Engine) -> list[int]:
    """The processes that do its jobs."""
    if isinstance(engine, Processes):
        return [worker.process.pid for worker in engine._team]
    if isinstance(engine, Ray):  # by value, as a worker would import all that this file does
        ask = "lambda shared, each: (__import__('time').sleep(0.05), __import__('os').getpid())[1]"
        return sorted(set(engine.map(eval(ask, {}), None, list(range(4 * engine.workers)))))
    return []


def measure(name: str, engine: Engine, rounds: int) -> Measured:
    """The median round of one iteration each, after two that start everything."""
    go = learning(engine)
    go(2)
    pids, found = workers_of(engine), []
    for _ in range(rounds):
        before, driver, wall = [cpu_of(pid) for pid in pids], time.process_time(), time.perf_counter()
        go(2)
        wall, driver = (time.perf_counter() - wall) / 2, (time.process_time() - driver) / 2
        used = [(cpu_of(pid) - was) / 2 for pid, was in zip(pids, before, strict=True)]
        found.append((wall, driver, sum(used), max(used, default=0.0)))
    sizes = [memory_of(pid) for pid in pids] or [(0.0, 0.0)]
    middle = [median(column) for column in zip(*found, strict=True)]
    return Measured(name, engine.workers, *middle, max(s[0] for s in sizes), max(s[1] for s in sizes))


def driver_time(k: int, update: str, rounds: int) -> float:
    """CPU of the driver in an iteration of K trajectories, without all that workers do."""
    with Processes(1) as engine:
        go = learning(engine, k, update=update)
        go(2)
        found = []
        for _ in range(rounds):
            began = time.process_time()
            go(1)
            found.append(time.process_time() - began)
    return median(found)


def bytes_of(k: int) -> dict[str, int]:
    """What travels in an iteration: to every worker once, to every worker each time, and back from all."""
    setup = set_up(resolve("hopper", trajectories=k, **SETTINGS))
    place = Kept(Place(setup.world.simulator, setup.world.expert, setup.oracle))
    shared = place, setup.learner.policy.actor(), 0.0, 1, True
    parts = blocks(seeds(0, Purpose.ROLL_IN, 1, k), Processes(4))
    back = sum(len(packed((True, lanes(shared, part)))[0]) for part in parts)
    with_states = sum(len(packed((True, lanes((*shared[:4], False), part)))[0]) for part in parts)
    data, kept = packed((lanes, shared))
    return {
        "once": sum(map(len, kept.values())),
        "each": len(data),
        "back": back,
        "back with states": with_states,
    }


def curve(options: argparse.Namespace) -> None:
    os.environ[THREADS] = "1"
    with one_thread():
        rows = [measure("in process", InProcess(), options.rounds)]
        for workers in (1, 2, 4):
            with Processes(workers) as engine:
                rows.append(measure("processes", engine, options.rounds))
        for workers in (1, 2, 4):
            with Ray(workers) as engine:
                rows.append(measure("ray", engine, options.rounds))
        for row in rows:
            alone = next(r for r in rows if r.engine == row.engine and r.workers in (1, row.workers))
            critical = row.driver + row.busiest
            efficiency = rows[0].driver / (row.workers * critical) if row.busiest else 1.0
            print(
                f"{row.engine:10} {row.workers}  wall {1e3 * row.wall:5.0f} ms ({alone.wall / row.wall:.2f} x)  "
                f"driver {1e3 * row.driver:5.1f} ms  workers {1e3 * row.work:5.0f} ms, busiest "
                f"{1e3 * row.busiest:5.0f} ms  efficiency by CPU {efficiency:.2f}  "
                f"RSS {row.rss:4.0f} PSS {row.pss:4.0f} MB"
            )
        drivers = {
            update: {k: driver_time(k, update, options.rounds) for k in (10, 50, 200)}
            for update in ("natural", "regular", "exponentiated")
        }
        travels = bytes_of(K)
    for update, found in drivers.items():
        print(f"driver, {update}: " + ", ".join(f"K = {k}: {1e3 * t:.1f} ms" for k, t in found.items()))
    print("bytes:", travels)
    if options.json:
        record = {"rows": [asdict(row) for row in rows], "driver": drivers, "bytes": travels, "k": K}
        options.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
