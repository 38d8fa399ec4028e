"""Distributed work: one hash with every engine, killed workers, and the speed with more workers.

python benchmarks/scale.py hashes     # every engine, block, thread count and cache, four tasks: one hash each
python benchmarks/scale.py kills      # SIGKILLs of busy workers, of processes and of Ray, and of a node
python benchmarks/scale.py curve      # Hopper, K = 50: 1, 2, 4 workers; time, memory and bytes
"""

import argparse
import hashlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aggrevated.engines import Engine, InProcessEngine
from aggrevated.engines.processes import ProcessEngine
from aggrevated.engines.ray import CLUSTER, RayEngine
from aggrevated.training.trainer import train

RUNS = {
    "cartpole": {"iterations": 12},
    "acrobot-partial": {"policy": "lstm", "iterations": 6},
    "hopper": {"iterations": 4, "trajectories": 10, "test_episodes": 50},
    "algebra": {"generated_pages": 60, "iterations": 4, "fit_steps": 10},
}


def hash_of(task: str, engine: Engine) -> str:
    """Return the hash of the weights, the result and all metrics except the seconds."""
    with tempfile.TemporaryDirectory() as folder:
        run = train(task, out=Path(folder) / "run", engine=engine, warn=lambda _: None, **RUNS[task])
        lines = [line.to_dict() | {"seconds": 0, "cpu_seconds": 0} for line in run.metrics()]
        result = run.result().to_dict() | {"seconds": 0, "cpu_seconds": 0, "run_folder": ""}
    return hashlib.sha256(json.dumps([lines, result], sort_keys=True).encode()).hexdigest()[:16]


def in_another(task: str, **environment: str) -> str:
    """Return `hash_of` in process, in a fresh process with these environment variables."""
    command = [sys.executable, __file__, "one", task]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    return done.stdout.split()[-1]


@contextmanager
def cluster(nodes: int) -> Iterator[tuple[str, list[int]]]:
    """Yield the address of a Ray cluster of nodes on this machine, and the process of each node."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"127.0.0.1:{port}"
    environment = os.environ | {CLUSTER: "1", "RAY_DISABLE_DOCKER_CPU_WARNING": "1"}
    ray = str(Path(sys.executable).with_name("ray"))
    own = ["--node-ip-address=127.0.0.1", "--num-cpus=1", "--disable-usage-stats", "--block"]
    head = [ray, "start", "--head", f"--port={port}", "--include-dashboard=false", *own]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
    started = [subprocess.Popen(head, **quiet)]
    try:
        time.sleep(8)
        started += [subprocess.Popen([ray, "start", f"--address={address}", *own], **quiet) for _ in range(nodes - 1)]
        time.sleep(8)
        yield address, [node.pid for node in started]
    finally:
        for node in reversed(started):
            for pid in [*below(node.pid), node.pid]:
                end(pid)
            node.wait()


def below(pid: int) -> list[int]:
    """Return all descendants of a process, the nearest first."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []
    return children + [deeper for child in children for deeper in below(child)]


def end(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def hashes(options: argparse.Namespace) -> None:
    for task in options.tasks:
        found: dict[str, str] = {}

        def note(name: str, value: str, task: str = task, found: dict[str, str] = found) -> None:
            found[name] = value
            print(f"{task:16} {name:34} {value}", flush=True)

        with tempfile.TemporaryDirectory() as cache:
            note("in process, a fresh cache", in_another(task, AGGREVATED_CACHE=cache))
            note("in process, a used cache", in_another(task, AGGREVATED_CACHE=cache))
        for block in (1, 7, 50):
            note(f"blocks of {block}", hash_of(task, InProcessEngine(block)))
        for threads in "124":
            note(f"OMP_NUM_THREADS={threads}", in_another(task, OMP_NUM_THREADS=threads))
        for workers in (1, 2, 4):
            with ProcessEngine(workers) as engine:
                note(f"processes, {workers}", hash_of(task, engine))
        for workers in (1, 2, 4):
            with RayEngine(workers) as engine:
                note(f"ray, {workers} workers", hash_of(task, engine))
        with cluster(2) as (address, nodes), RayEngine(2, address) as engine:
            threading.Timer(4.0, lambda node=nodes[1]: [end(pid) for pid in [*below(node), node]]).start()
            note("ray, two nodes, one killed", hash_of(task, engine))
        print(f"{task:16} {len(set(found.values()))} hash{'es' * (len(set(found.values())) > 1)}\n", flush=True)


def kills(options: argparse.Namespace) -> None:
    """Kill one worker per run during its job, at a random moment."""
    for task in options.tasks:
        expected = hash_of(task, InProcessEngine())
        for name, make in {"processes": lambda: ProcessEngine(2), "ray": lambda: RayEngine(2)}.items():
            equal = 0
            began = time.monotonic()
            with make() as engine:
                hash_of(task, engine)  # start the workers
                pace = -time.monotonic()
                hash_of(task, engine)
                pace += time.monotonic()
                killed = 0
                while killed < options.kills:
                    stop = threading.Event()
                    count = list[int]()
                    killer = threading.Thread(target=kill_once, args=(name, random.uniform(0, 0.8 * pace), stop, count))
                    killer.start()
                    found = hash_of(task, engine)
                    stop.set()
                    killer.join()
                    killed += len(count)
                    equal += len(count) * (found == expected)
                pids = workers_of(name)
            time.sleep(2)
            left = [pid for pid in pids if Path(f"/proc/{pid}").exists()]
            spent = time.monotonic() - began
            print(
                f"{task}, {name}: {options.kills} kills, {equal} hashes equal to {expected}, {len(left)} orphans, "
                f"{spent:.0f} s",
                flush=True,
            )


def workers_of(name: str) -> list[int]:
    """Return the workers below this process."""
    found = below(os.getpid())
    if name == "ray":
        return [pid for pid in found if title(pid).startswith(b"ray::")]
    return [pid for pid in found if b"forkserver" in title(pid) and not below(pid)]


def kill_once(name: str, after: float, stop: threading.Event, count: list[int]) -> None:
    """Kill a worker that is at a job then or next, unless the run ends before."""
    time.sleep(after)
    candidates = workers_of(name)
    while not stop.is_set():
        busy = [pid for pid in candidates if name == "processes" or title(pid).startswith(b"ray::do")]
        if busy:
            count.append(random.choice(busy))
            return end(count[0])
        time.sleep(0.0002)
    return None


def title(pid: int) -> bytes:
    """Return the title of a process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["hashes", "kills", "curve", "one"])
    parser.add_argument("tasks", nargs="*", default=None)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.tasks = options.tasks or list(RUNS)
    if options.what == "one":
        print(hash_of(options.tasks[0], InProcessEngine()))
    elif options.what == "curve":
        import scale_curve

        scale_curve.curve(options)
    else:
        {"hashes": hashes, "kills": kills}[options.what](options)


if __name__ == "__main__":
    main()
