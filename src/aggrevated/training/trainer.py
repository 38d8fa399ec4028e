"""Algorithm 1 in a folder. Stopped at any moment, it goes on and ends with the same bits."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from aggrevated import loggers, storage
from aggrevated.algorithm import Iteration, Learner, aggrevated
from aggrevated.config.resolver import resolve_config
from aggrevated.config.summary import describe_config
from aggrevated.core.errors import DataError
from aggrevated.core.hardware import single_thread
from aggrevated.core.signals import defer_signals
from aggrevated.engines import IN_PROCESS, Engine
from aggrevated.tasks import as_task
from aggrevated.training import checkpoint, limits
from aggrevated.training.evaluation import finish_run
from aggrevated.training.records import Metrics, Result
from aggrevated.training.run_folder import (
    BEST_POLICY_FILE,
    CONFIG,
    METRICS,
    RESULT,
    Run,
    choose_run_folder,
)
from aggrevated.training.session import (
    TrainingSession,
    WarningCallback,
    ignore_message,
    restore_or_start,
)


def print_to_stderr(sentence: str) -> None:
    """Say it on standard error."""
    print(sentence, file=sys.stderr)


def emit_warning(sentence: str) -> None:
    """Say it by Python's warnings."""
    warnings.warn(sentence, stacklevel=2)


def train(
    env: Any,
    method: str = "aggrevated",
    *,
    expert: Any = None,
    out: Path | str | None = None,
    progress: Callable[[Metrics], None] = ignore_message,
    say: Callable[[str], None] = print_to_stderr,
    warn: WarningCallback = emit_warning,
    engine: Engine = IN_PROCESS,
    log: str | Sequence[str] = (),
    **settings: Any,
) -> Run:
    """Learn a policy in a new run folder; `run.policy` is it.

    `env` is the name of a task, the id of an environment of Gymnasium, a function that makes one, a simulator, or a
    `Task`; `expert` a file, or anything that acts (`aggrevated.as_expert`). Settings have the names of the command
    line's options: `train("cartpole", update="regular", learning_rate=0.01)`. `say` is told what follows from them,
    `progress` of each iteration. `engine` does the work of the lanes, for example `Processes(8)`, and `log`
    names who else hears of the metrics, for example "tensorboard"; neither changes anything in the result.
    """
    loggers.find_writer_factories(log)  # what is not installed leaves no folder behind
    named = isinstance(expert, str | os.PathLike)
    settings |= {"expert": os.fspath(expert)} if named else {}
    config = resolve_config(as_task(env, None if named else expert), method, **settings)
    for line in describe_config(config):
        say(line)
    run = Run.create(Path(out) if out is not None else choose_run_folder(config), config)
    run_to_end(run, progress, warn, engine=engine, log=log, say=say)
    return run


def resume(
    folder: Path | str,
    env: Any = None,
    *,
    expert: Any = None,
    iterations: int | None = None,
    budget: int | None = None,
    queries: int | None = None,
    progress: Callable[[Metrics], None] = ignore_message,
    say: Callable[[str], None] = print_to_stderr,
    warn: WarningCallback = emit_warning,
    engine: Engine = IN_PROCESS,
    log: str | Sequence[str] = (),
    trust_code: bool = False,
    ignore_numerics: bool = False,
) -> Run:
    """Go on with a run from its last checkpoint, or with more to do; it ends with the same bits as if never stopped.

    `env` and `expert` are what `train` was given, where these were objects or functions that have no name to be found
    by; others than those are refused. `trust`: import the Python code that the folder names.
    """
    run = limits.extend_limits(
        Run.open(folder, trust_code=trust_code, env=env, expert=expert), iterations, budget, queries
    )
    run_to_end(run, progress, warn, ignore_numerics, engine, log, say)
    return run


def run_to_end(
    run: Run,
    progress: Callable[[Metrics], None] = ignore_message,
    warn: WarningCallback = ignore_message,
    ignore_numerics: bool = False,
    engine: Engine = IN_PROCESS,
    log: str | Sequence[str] = (),
    say: Callable[[str], None] = ignore_message,
) -> Result:
    """Run it, or the rest of it, to its end, and give its result; `progress` is told of each iteration.

    Where this machine does not compute as that which began it, the rest is refused, but for `anyway`. `engine` does the
    work of the lanes, and changes nothing. Asked to stop by a signal, it finishes the iteration and keeps it first.
    The logs that `log` names hear of every iteration, of those that were run before first. `say` is told what will
    take long.
    """
    loggers.find_writer_factories(log)
    with storage.exclusive_lock(run.folder), single_thread():
        if (ended := load_complete_result(run, warn)) is not None:
            return replace(ended, run_folder=str(run.folder))  # it may have been moved
        sitting = restore_or_start(run, warn, ignore_numerics)
        sitting.inputs = replace(sitting.inputs, problem=sitting.inputs.problem.with_engine(engine))
        if Run.open(run.folder, run.config.task).config != run.config:  # more was asked for
            storage.save_checksummed_json(run.folder / CONFIG, run.config.to_dict())
        with loggers.open_writers(log, run.folder, run.config.to_dict(), warn) as told:
            for line in run.metrics() if log else ():
                told.write(line.to_dict())
            with defer_signals() as stop:
                for metrics in iterate_training(sitting, warn, engine):
                    told.write(metrics.to_dict())
                    progress(metrics)
                    if stop.signal is not None:
                        sitting.save_checkpoint_if_new()
                        stop.reraise()
                if stop.signal is not None:
                    stop.reraise()
            sitting.validate_last_policy()
            if digest_best_policy(run) != storage.digest_tensors(sitting.inputs.learner.best.weights or {}):
                sitting.save_best_policy()  # it is of an older iteration, or missing, or damaged
            result = finish_run(sitting, say)
            told.close(result.to_dict())
        return result


def load_complete_result(run: Run, warn: WarningCallback) -> Result | None:
    """The result of a run that has ended and left all that belongs to it; None if there is something to be done.

    What does not belong together is a `DataError`.
    """
    result = run.result()
    if result is None or digest_best_policy(run, warn) is None:
        return None
    if storage.digest_tensors(run.load_best_policy_weights()[0]) != result.weights_sha256:
        raise DataError(f"{run.folder}/{RESULT} is not of the policy beside it; remove it, and resume makes it again")
    lines = run.metrics()
    return result if (lines[-1].iteration if lines else 0) == result.iterations else None


def digest_best_policy(run: Run, warn: WarningCallback = ignore_message) -> str | None:
    """Of the chosen policy's weights; None if it is missing or damaged, and to be made again from the checkpoints."""
    if not (run.folder / BEST_POLICY_FILE).is_file():
        return None
    try:
        return storage.digest_tensors(storage.load_checksummed(run.folder / BEST_POLICY_FILE)[0])
    except DataError as error:
        warn(f"{error}; it is made again from the last checkpoint")
        return None


def iterate_training(sitting: TrainingSession, warn: WarningCallback, engine: Engine = IN_PROCESS) -> Iterator[Metrics]:
    """The iterations that are missing, each written down, and a checkpoint every few of them."""
    run = sitting.run
    setup = sitting.inputs
    health = sitting.monitor
    tally = sitting.counters
    learner = setup.learner
    loop = run.config.loop
    began = time.perf_counter() - tally.seconds
    cpu_began = time.process_time() - tally.cpu_seconds
    iterations = aggrevated(
        learner, setup.problem.simulator, setup.problem.expert, setup.oracle, setup.loss,
        seed=loop.seed, k=loop.trajectories, alpha=setup.alpha,
        validate=setup.problem.validate, validate_every=loop.validate_every, engine=engine,
    )  # fmt: skip
    with storage.ChecksummedJournal(run.folder / METRICS, sitting.last_checksum) as journal:
        while not sitting.ended_by:
            before = limits.count_spent(learner)
            iteration = next(iterations)
            took = time.perf_counter() - began, time.process_time() - cpu_began
            metrics = make_metrics(iteration, learner, *took)
            metrics = replace(metrics, stalled_reason=health.observe(metrics))
            if learner.n % loop.validate_every == 0:
                metrics = replace(metrics, more=setup.problem.monitor(learner.policy))
            tally.add(metrics)
            sitting.cost = limits.count_since(learner, before)
            journal.append(metrics.to_dict())
            sitting.last_checksum = journal.checksum
            sitting.unsaved_metrics.append(metrics.to_dict())
            if sitting.is_checkpoint_due():
                journal.sync()
                sitting.save_checkpoint()
            for sentence in health.new_warnings():
                warn(f"{run.folder}, iteration {learner.n}: {sentence}")
            yield metrics
            limits.check_progress_towards_limit(run, sitting.cost)


def make_metrics(iteration: Iteration, learner: Learner, seconds: float, cpu_seconds: float) -> Metrics:
    """One line of metrics.jsonl."""
    returns = asdict(iteration)
    n = returns.pop("n")
    step = returns.pop("step")
    known = {**returns, **step, **checkpoint.learner_counts(learner)}
    return Metrics(
        iteration=n, **known, seconds=round(seconds, 3), cpu_seconds=round(cpu_seconds, 3), stalled_reason=""
    )
