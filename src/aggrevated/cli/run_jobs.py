"""Train one run, or many in parallel, by an engine, with progress on standard error."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from aggrevated.cli.console import Progress, print_note
from aggrevated.cli.options import format_trust_option
from aggrevated.config import Config
from aggrevated.config.loop import LoopSettings
from aggrevated.core.errors import AggrevatedError, DataError
from aggrevated.engines import Engine
from aggrevated.tasks import is_code_trusted
from aggrevated.training.limits import compute_fraction_done
from aggrevated.training.records import Metrics, Result
from aggrevated.training.run_folder import METRICS, RESULT, Run
from aggrevated.training.trainer import Trainer

FailureCallback = Callable[[Run, AggrevatedError], None]


def run_all(
    runs: Sequence[Run],
    engine: Engine,
    ignore_numerics: bool = False,
    failed: FailureCallback | None = None,
    log: Sequence[str] = (),
    trainer: Trainer | None = None,
) -> list[Result]:
    """Return the results of all runs, in order.

    Args:
        runs: If it is one run, the engine does the trajectories; if there are several, each is one job of the engine.
        engine: Where the work is done.
        ignore_numerics: Resume even where this machine computes other bits.
        failed: Called with each run that fails, and its error; the others go on. Without it, the first error ends all.
        log: Names of loggers.
        trainer: That of the only run, if it is built already.
    """
    if len(runs) > 1:
        return run_in_parallel(runs, engine, ignore_numerics, failed, log)
    try:
        with show_progress(runs[0]) as progress:
            trainer = trainer or Trainer(runs[0].config)
            result = trainer.fit(
                runs[0],
                engine,
                log=log,
                progress=progress,
                warn=print_note,
                say=print_note,
                ignore_numerics=ignore_numerics,
            )
            return [result]
    except AggrevatedError as error:
        if failed is None:
            raise
        failed(runs[0], error)
        return []


@contextmanager
def show_progress(run: Run) -> Iterator[Callable[[Metrics], None]]:
    """Show a line or a bar on standard error while a run is trained; give what is called with each iteration."""
    loop = run.config.loop
    problem = run.config.problem
    if run.config.start.notice and not count_metrics_lines(run.folder):
        print_note(run.config.start.notice)
    title = f"{run.config.task.name}, {run.label}"
    with Progress(f"{title}, % of its limit" if loop.limits else title, compute_progress_total(run)) as progress:

        def show(metrics: Metrics) -> None:
            current = f"{metrics.current_return:.{problem.digits}f}"
            best = f"{metrics.best_return:.{problem.digits}f}"
            interval = "" if loop.validate_every == 1 else f" (measured every {loop.validate_every})"
            at = f"iteration {metrics.iteration}, " if loop.limits else ""
            progress.report(
                compute_progress(run, metrics),
                f"{at}validation {problem.metric_name} {current}, best {best}{interval}, {metrics.seconds:.1f} s",
            )

        yield show


@contextmanager
def print_resume_hint_on_interrupt(arguments: object, config: Config | None = None) -> Iterator[None]:
    """Print the command that resumes what is interrupted in here."""
    try:
        yield
    except KeyboardInterrupt:
        trust = "" if config is None else format_trust_option(config)
        print_note(f"the work done so far is saved; resume with: aggrevated resume {arguments}{trust}")
        raise


def run_in_parallel(
    runs: Sequence[Run],
    engine: Engine,
    ignore_numerics: bool,
    failed: FailureCallback | None = None,
    log: Sequence[str] = (),
) -> list[Result]:
    """Return the results of many runs, each a job. If its worker is lost, another resumes it from its checkpoint."""
    directory = Path.cwd()
    results = list[Result]()
    jobs = [
        RunJob(
            run.folder, run.config.loop, directory, ignore_numerics, failed is not None, is_run_trusted(run), (*log,)
        )
        for run in runs
    ]
    has_limits = any(run.config.loop.limits for run in runs)
    cache = dict[Path, tuple[int, int]]()
    with Progress("% of each run" if has_limits else "iterations", sum(map(compute_progress_total, runs))) as progress:

        def show(ended: int) -> None:
            done = sum(read_progress(run, cache) for run in runs)
            progress.report(done, f"{ended} of {len(runs)} runs ended", last=ended == len(runs))

        outcomes = engine.map(run_job, None, jobs, show)
    for run, (outcome, warnings) in zip(runs, outcomes, strict=True):
        for sentence in warnings:
            print_note(sentence)
        if failed is not None and isinstance(outcome, AggrevatedError):
            failed(run, outcome)
            continue
        if run.result() is None or not isinstance(outcome, Result):
            raise DataError(
                f"{run.folder} ended on a node, but its files are not here: pass an --out that all nodes share"
            )
        results.append(outcome)
    return results


@dataclass(frozen=True)
class RunJob:
    """A whole run as a job. The worker opens it by its folder, since not every task can be pickled."""

    folder: Path
    loop: LoopSettings  # its limits may be higher than those in the folder
    directory: Path
    ignore_numerics: bool
    returns_errors: bool = False  # an error is its outcome and does not end the other jobs
    trust_code: bool = False  # whether the code that the run names may be imported
    log: tuple[str, ...] = ()


def is_run_trusted(run: Run) -> bool:
    """Return whether the code that the run names may be imported."""
    return is_code_trusted(run.config.task.name, run.config.problem)


def run_job(_: None, job: RunJob) -> tuple[Result | AggrevatedError, list[str]]:
    """Return (the result of a run, or the error that ended it; its warnings)."""
    if job.directory.is_dir():
        os.chdir(job.directory)
    run = Run.open(job.folder, trust_code=job.trust_code)
    warnings = list[str]()
    run = replace(run, config=replace(run.config, loop=job.loop))
    try:
        result = Trainer(run.config).fit(run, log=job.log, warn=warnings.append, ignore_numerics=job.ignore_numerics)
        return result, warnings
    except AggrevatedError as error:
        if not job.returns_errors:
            raise
        return error, warnings


def compute_progress_total(run: Run) -> int:
    """Return the number of iterations of a run, or 100 percent if it has limits."""
    return 100 if run.config.loop.limits else run.config.loop.iterations


def compute_progress(run: Run, line: Metrics) -> int:
    """Return how far the run is after an iteration, in the unit of `compute_progress_total`."""
    loop = run.config.loop
    return int(100 * compute_fraction_done(loop, line)) if loop.limits else line.iteration


def read_progress(run: Run, cache: dict[Path, tuple[int, int]]) -> int:
    """Return how far a run is by its folder. `cache` holds (file size, progress) by folder."""
    if not run.config.loop.limits:
        return count_metrics_lines(run.folder)
    ended = (run.folder / RESULT).is_file()
    path = run.folder / METRICS
    size = -1 if ended else path.stat().st_size if path.is_file() else 0
    if cache.get(run.folder, (0, 0))[0] != size:
        lines = run.metrics() if path.is_file() else []
        cache[run.folder] = size, 100 if run.result() is not None else compute_progress(run, lines[-1]) if lines else 0
    return cache.get(run.folder, (0, 0))[1]


def count_metrics_lines(folder: Path) -> int:
    """Return the number of lines of metrics.jsonl."""
    try:
        return (folder / "metrics.jsonl").read_bytes().count(b"\n")
    except OSError:
        return 0
