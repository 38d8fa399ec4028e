"""Running one run, or many side by side, by an engine, with progress on standard error."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aggrevated.cli.engines import EngineOptions
from aggrevated.cli.output import note
from aggrevated.cli.progress import Progress
from aggrevated.engines import Engine
from aggrevated.errors import DataError
from aggrevated.runs.records import Metrics, Result
from aggrevated.runs.run import Run, execute, silent

HERE = EngineOptions()


def run_all(runs: Sequence[Run], where: EngineOptions = HERE, anyway: bool = False) -> list[Result]:
    """The results of all runs, in order. One run has its lanes done by the engine, of several each is a job."""
    with where.build(len(runs)) as engine:
        return [run_one(runs[0], engine, anyway)] if len(runs) == 1 else side_by_side(runs, engine, anyway)


def run_one(run: Run, engine: Engine, anyway: bool = False) -> Result:
    """One run from this process, with a line or a bar for its iterations."""
    loop, world = run.config.loop, run.config.world
    if run.config.start.notice and not iterations_done(run.folder):
        note(run.config.start.notice)
    with Progress(f"{run.config.task.name}, {run.label}", loop.iterations) as progress:

        def show(line: Metrics) -> None:
            current, best = (f"{value:.{world.digits}f}" for value in (line.current_return, line.best_return))
            when = "" if loop.validate_every == 1 else f" (measured every {loop.validate_every})"
            progress.at(line.iteration, f"{world.measured} {current}, best {best}{when}, {line.seconds:.1f} s")

        try:
            return execute(run, show, note, anyway, engine)
        except KeyboardInterrupt:
            note(f"go on with: aggrevated resume {run.folder}")
            raise


def side_by_side(runs: Sequence[Run], engine: Engine, anyway: bool) -> list[Result]:
    """Many runs, each of them a job. One whose worker is lost goes on, in another, from its last checkpoint."""
    jobs = [Job(run.folder, run.config.loop.iterations, Path.cwd(), anyway) for run in runs]
    with Progress("iterations", sum(run.config.loop.iterations for run in runs)) as progress:

        def show(ended: int) -> None:
            done = sum(iterations_done(run.folder) for run in runs)
            progress.at(done, f"{ended} of {len(runs)} runs ended", last=ended == len(runs))

        outcomes = engine.map(run_quietly, None, jobs, show)
    for run, (_, warnings) in zip(runs, outcomes, strict=True):
        for sentence in warnings:
            note(sentence)
        if run.result() is None:
            raise DataError(
                f"{run.folder} was done, but is not to be seen from here: give an --out that all nodes share"
            )
    return [result for result, _ in outcomes]


@dataclass(frozen=True)
class Job:
    """A whole run, which a worker finds by its folder and task by its name: not every task can be sent."""

    folder: Path
    iterations: int
    directory: Path
    anyway: bool


def run_quietly(_: None, job: Job) -> tuple[Result, list[str]]:
    """(the result of a run, what there was to warn of)."""
    if job.directory.is_dir():
        os.chdir(job.directory)
    run, warnings = Run.open(job.folder), list[str]()
    run = replace(run, config=run.config.replaced(iterations=job.iterations))
    return execute(run, silent, warnings.append, job.anyway), warnings


def iterations_done(folder: Path) -> int:
    """How far a run is, by its metrics."""
    try:
        return (folder / "metrics.jsonl").read_bytes().count(b"\n")
    except OSError:
        return 0
