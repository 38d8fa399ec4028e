"""Running one run here, or many side by side in processes, with progress on standard error."""

import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path

from aggrevated.cli.output import note
from aggrevated.cli.progress import Progress
from aggrevated.runs.run import Run, execute
from aggrevated.runs.storage import Facts


def run_all(runs: Sequence[Run], workers: int | None = None) -> list[Facts]:
    """The results of all runs, in order; each run is its own folder, so the number of workers changes no bit."""
    if len(runs) == 1:
        return [run_here(runs[0])]
    with (
        Progress("runs", sum(run.config.iterations for run in runs)) as progress,
        ProcessPoolExecutor(workers or os.cpu_count(), get_context("spawn"), end_with_parent, (os.getpid(),)) as pool,
    ):
        futures = [pool.submit(run_quietly, run.folder) for run in runs]
        pending = set(futures)
        while pending:
            done, pending = wait(pending, timeout=0.5)
            for future in done:
                future.result()  # an error of a run ends the command
            progress.at(
                sum(iterations_done(run.folder) for run in runs), f"{len(runs) - len(pending)}/{len(runs)} runs"
            )
        return [future.result() for future in futures]


def run_here(run: Run) -> Facts:
    """One run in this process, with a line or a bar for its iterations."""
    with Progress(f"{run.config.task}, {run.label}", run.config.iterations) as progress:

        def show(line: Facts) -> None:
            text = f"return {line['current_return']:.1f}, best {line['best_return']:.1f}, {line['seconds']:.1f} s"
            progress.at(line["iteration"], text)

        return execute(run, show, note)


def run_quietly(folder: Path) -> Facts:
    """One run in a worker process."""
    return execute(Run.open(folder), lambda line: None, note)


def iterations_done(folder: Path) -> int:
    """How far a run is, by its metrics."""
    try:
        return (folder / "metrics.jsonl").read_bytes().count(b"\n")
    except OSError:
        return 0


def end_with_parent(parent: int) -> None:
    """Make a worker end when the command that started it is gone, even by kill -9."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
