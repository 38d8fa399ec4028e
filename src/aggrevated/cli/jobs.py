"""Running one run here, or many side by side in processes, with progress on standard error."""

import os
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import active_children, get_context
from pathlib import Path

from aggrevated.cli.output import note
from aggrevated.cli.progress import Progress
from aggrevated.errors import AggrevatedError
from aggrevated.machine import THREADS, cores, threads_to_use
from aggrevated.runs.records import Metrics, Result
from aggrevated.runs.run import Run, execute, silent


def run_all(runs: Sequence[Run], workers: int | None = None, anyway: bool = False) -> list[Result]:
    """The results of all runs, in order; each run is its own folder, so the number of workers changes no bit."""
    if len(runs) == 1:
        return [run_here(runs[0], anyway)]
    workers = min(workers or cores(), len(runs))
    share = max(1, threads_to_use() // workers)
    pool = ProcessPoolExecutor(workers, get_context("spawn"), begin_worker, (os.getpid(), share))
    try:
        with Progress("iterations", sum(run.config.loop.iterations for run in runs)) as progress:
            futures = [pool.submit(run_quietly, run.folder, run.config.loop.iterations, anyway) for run in runs]
            pending = set(futures)
            while pending:
                done, pending = wait(pending, timeout=0.5)
                for future in done:
                    future.result()  # an error of a run ends the command
                ended = f"{len(runs) - len(pending)} of {len(runs)} runs ended"
                progress.at(sum(iterations_done(run.folder) for run in runs), ended, last=not pending)
        return [future.result() for future in futures]
    except BrokenProcessPool as error:
        remedy = "go on with 'aggrevated resume', or with the same 'aggrevated reproduce'"
        raise AggrevatedError(f"a worker process was killed; {remedy}") from error
    finally:
        for child in active_children():
            child.terminate()
        pool.shutdown(wait=False, cancel_futures=True)


def run_here(run: Run, anyway: bool = False) -> Result:
    """One run in this process, with a line or a bar for its iterations."""
    loop, world = run.config.loop, run.config.world
    if run.config.start.notice and not iterations_done(run.folder):
        note(run.config.start.notice)
    with Progress(f"{run.config.task.name}, {run.label}", loop.iterations) as progress:

        def show(line: Metrics) -> None:
            current, best = (f"{value:.{world.digits}f}" for value in (line.current_return, line.best_return))
            when = "" if loop.validate_every == 1 else f" (measured every {loop.validate_every})"
            progress.at(line.iteration, f"{world.measured} {current}, best {best}{when}, {line.seconds:.1f} s")

        try:
            return execute(run, show, note, anyway)
        except KeyboardInterrupt:
            note(f"go on with: aggrevated resume {run.folder}")
            raise


def run_quietly(folder: Path, iterations: int, anyway: bool = False) -> Result:
    """One run in a worker process, which finds the task by its name: not every task can be sent."""
    run = Run.open(folder)
    return execute(replace(run, config=run.config.replaced(iterations=iterations)), silent, note, anyway)


def iterations_done(folder: Path) -> int:
    """How far a run is, by its metrics."""
    try:
        return (folder / "metrics.jsonl").read_bytes().count(b"\n")
    except OSError:
        return 0


def begin_worker(parent: int, threads: int) -> None:
    """Make a worker leave Ctrl-C to the command that started it, and end when that is gone, even by kill -9.

    Its simulators use so many threads, its share of the cores.
    """
    os.environ[THREADS] = str(threads)
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
