"""Speed with more workers: Hopper's iterations measured with 1, 2 and 4, and a model up to 1,000."""

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from statistics import median

import numpy as np
from matplotlib.figure import Figure

from aggrevated.algorithm import aggrevated
from aggrevated.collection import WorkerContext, collect_batch
from aggrevated.config.builder import build_algorithm_inputs
from aggrevated.config.resolver import resolve_config
from aggrevated.core.hardware import THREADS_VARIABLE, single_thread
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.engines import Engine, InProcessEngine, split_into_blocks
from aggrevated.engines.processes import ProcessEngine
from aggrevated.engines.ray import RayEngine
from aggrevated.engines.serialization import CachedObject, serialize

K = 50
TICK = os.sysconf("SC_CLK_TCK")
SETTINGS = {"update": "natural", "query_steps": 2, "validation_episodes": 40, "start": "random"}


@dataclass(frozen=True)
class Measured:
    """An iteration of Hopper, in seconds unless noted."""

    engine: str
    workers: int
    wall: float
    driver: float  # CPU of the driver
    work: float  # CPU of all workers
    busiest: float  # CPU of the busiest one
    rss: float  # MB of a worker, shared pages counted in full
    pss: float  # MB of a worker, shared pages counted by share


def learning(engine: Engine, k: int = K, **settings: object) -> Callable[[int], None]:
    """Return a function that runs a number of further iterations."""
    setup = build_algorithm_inputs(resolve_config("hopper", trajectories=k, **SETTINGS | settings))
    problem = setup.problem.with_engine(engine)
    iterations = aggrevated(
        setup.learner, problem.simulator, problem.expert, setup.oracle, setup.loss,
        k=k, alpha=setup.alpha, validate=problem.validate, engine=engine,
    )  # fmt: skip
    return lambda count: [None for _ in islice(iterations, count)].clear()


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def memory_of(pid: int) -> tuple[float, float]:
    """Return (RSS, PSS) in MB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    sizes = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines[1:]}
    return sizes["Rss"], sizes["Pss"]


def workers_of(engine: Engine) -> list[int]:
    """Return the worker processes of an engine."""
    if isinstance(engine, ProcessEngine):
        return [worker.process.pid for worker in engine._team]
    if isinstance(engine, RayEngine):  # by value, as a worker would import all that this file imports
        ask = "lambda shared, each: (__import__('time').sleep(0.05), __import__('os').getpid())[1]"
        return sorted(set(engine.map(eval(ask, {}), None, list(range(4 * engine.workers)))))
    return []


def measure(name: str, engine: Engine, rounds: int) -> Measured:
    """Return the median round of one iteration each, after two warm-up rounds."""
    go = learning(engine)
    go(2)
    pids = workers_of(engine)
    found = []
    for _ in range(rounds):
        before = [cpu_of(pid) for pid in pids]
        driver = time.process_time()
        wall = time.perf_counter()
        go(2)
        wall = (time.perf_counter() - wall) / 2
        driver = (time.process_time() - driver) / 2
        used = [(cpu_of(pid) - was) / 2 for pid, was in zip(pids, before, strict=True)]
        found.append((wall, driver, sum(used), max(used, default=0.0)))
    sizes = [memory_of(pid) for pid in pids] or [(0.0, 0.0)]
    middle = [median(column) for column in zip(*found, strict=True)]
    return Measured(name, engine.workers, *middle, max(s[0] for s in sizes), max(s[1] for s in sizes))


def driver_time(k: int, update: str, rounds: int) -> float:
    """Return the driver's CPU in an iteration of K trajectories, without the work of workers."""
    with ProcessEngine(1) as engine:
        go = learning(engine, k, update=update)
        go(2)
        found = []
        for _ in range(rounds):
            began = time.process_time()
            go(1)
            found.append(time.process_time() - began)
    return median(found)


def bytes_of(k: int) -> dict[str, int]:
    """Return the bytes of an iteration: to every worker once, to every worker each time, and back from all."""
    setup = build_algorithm_inputs(resolve_config("hopper", trajectories=k, **SETTINGS))
    place = CachedObject(WorkerContext(setup.problem.simulator, setup.problem.expert, setup.oracle))
    shared = place, setup.learner.policy.actor(), 0.0, 1, True
    parts = split_into_blocks(derive_seeds(0, SeedPurpose.ROLL_IN, 1, k), ProcessEngine(4))
    back = sum(len(serialize((True, collect_batch(shared, part)))[0]) for part in parts)
    with_states = sum(len(serialize((True, collect_batch((*shared[:4], False), part)))[0]) for part in parts)
    data, cached = serialize((collect_batch, shared))
    return {
        "once": sum(map(len, cached.values())),
        "each": len(data),
        "back": back,
        "back with states": with_states,
    }


def job_time(engine: Engine, jobs: int = 64) -> float:
    """Return the driver's CPU for an empty job."""
    nothing = eval("lambda shared, each: None", {})
    engine.map(nothing, None, list(range(jobs)))
    began = time.process_time()
    engine.map(nothing, None, list(range(jobs)))
    return (time.process_time() - began) / jobs


@dataclass(frozen=True)
class Model:
    """An iteration on W workers with k trajectories each: parallel work, and the driver's work."""

    lane: float  # seconds of work for a trajectory, its queries and its share of validation
    fixed: float  # of the driver in each iteration
    each: float  # of the driver for each trajectory: joining, scores, loss
    job: float  # of the driver for each job; four for each worker, two of roll-in and two of validation

    def seconds(self, workers: float, k: int) -> float:
        return k * self.lane + self.fixed + workers * (k * self.each + 4 * self.job)

    def efficiency(self, workers: float, k: int) -> float:
        return k * self.lane / self.seconds(workers, k)

    def ends(self, k: int, share: float = 0.8) -> float:
        """Return how many workers still have that efficiency."""
        spare = k * self.lane * (1 / share - 1) - self.fixed
        return max(0.0, spare / (k * self.each + 4 * self.job))


def models(record: dict) -> dict[str, Model]:
    """Return the models by engine and update, from the measurements."""
    work = next(row["work"] for row in record["rows"] if row["engine"] == "processes" and row["workers"] == 2)
    found = {}
    for engine, job in record["job"].items():
        for update, times in record["driver"].items():
            few = times["50"]
            many = times["200"]
            each = (many - few) / 150
            found[f"{engine}, {update}"] = Model(work / record["k"], max(0.0, few - 50 * each), each, job)
    return found


def derived(record: dict) -> dict:
    """Return the record with derived numbers: efficiency by CPU, and the models."""
    alone = next(row["driver"] for row in record["rows"] if row["engine"] == "in process")
    for row in record["rows"]:
        critical = row["workers"] * (row["driver"] + row["busiest"])
        row["efficiency"] = alone / critical if row["busiest"] else 1.0
    by_name = {
        name: asdict(model)
        | {"ends": {str(k): model.ends(k) for k in (1, 5, 50, 500)}}
        | {"of_1000": {"efficiency": model.efficiency(1000, 50), "seconds": model.seconds(1000, 50)}}
        for name, model in models(record).items()
    }
    return record | {"models": by_name}


def draw(record: dict, path: Path) -> None:
    """Plot the measured curve to 4 workers, and the model next to it."""
    figure = Figure(figsize=(9.6, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    alone = next(row["wall"] for row in record["rows"] if row["engine"] == "in process")
    for engine, colour in {"processes": "#0072B2", "ray": "#D55E00"}.items():
        rows = [row for row in record["rows"] if row["engine"] == engine]
        workers = [row["workers"] for row in rows]
        left.plot(workers, [alone / row["wall"] for row in rows], "o-", color=colour, label=f"{engine}, wall clock")
        by_cpu = [alone / (row["driver"] + row["busiest"]) for row in rows]
        left.plot(workers, by_cpu, "s:", color=colour, label=f"{engine}, by CPU of driver and busiest worker")
    left.plot([1, 4], [1, 4], color="#999999", linewidth=1, label="ideal")
    left.set(
        xlabel="workers, on two cores",
        ylabel="times as fast as in process",
        xticks=[1, 2, 4],
        title="Measured: Hopper, K = 50",
    )
    across = np.geomspace(1, 1000, 100)
    styles = {
        "processes, natural": ("#0072B2", "-"),
        "ray, natural": ("#D55E00", "-"),
        "ray, regular": ("#D55E00", "--"),
    }
    for name, (colour, style) in styles.items():
        model = models(record)[name]
        right.plot(
            across, [model.efficiency(w, 50) for w in across], style, color=colour, label=f"{name}, 50 lanes each"
        )
    right.axhline(0.8, color="#999999", linewidth=1)
    right.set(xscale="log", xlabel="workers", ylabel="efficiency", ylim=(0, 1.02), title="Model: one run, K = 50 W")
    for axes in (left, right):
        axes.legend(fontsize=7, frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def curve(options: argparse.Namespace) -> None:
    os.environ[THREADS_VARIABLE] = "1"
    with single_thread():
        rows = [measure("in process", InProcessEngine(), options.rounds)]
        job: dict[str, float] = {}
        for name, make in {"processes": ProcessEngine, "ray": RayEngine}.items():
            for workers in (1, 2, 4):
                with make(workers) as engine:
                    rows.append(measure(name, engine, options.rounds))
                    if workers == 2:
                        job[name] = job_time(engine)
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
    record = {"rows": [asdict(row) for row in rows], "driver": drivers, "bytes": travels, "job": job, "k": K}
    record = derived(json.loads(json.dumps(record)))
    for name, model in models(record).items():
        ends = ", ".join(f"{k} trajectories: {model.ends(k):.0f}" for k in (5, 50, 500))
        print(f"{name}: {model}; 80 % ends at workers with {ends}; at 1,000: {model.efficiency(1000, 50):.2f}")
    if options.json:
        options.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        draw(record, options.json.with_suffix(".png"))
