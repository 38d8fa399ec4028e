"""Training in a run folder: a run that is stopped at any moment and resumed ends with the same bits."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from aggrevated.algorithm import Iteration, Learner, aggrevated
from aggrevated.config import Config
from aggrevated.config.builder import AlgorithmInputs, build_algorithm_inputs
from aggrevated.config.resolver import resolve_config
from aggrevated.config.summary import describe_config
from aggrevated.core.errors import DataError, UsageError
from aggrevated.core.hardware import single_thread
from aggrevated.core.signals import defer_signals
from aggrevated.engines import IN_PROCESS, Engine
from aggrevated.loggers import WriterCollection, find_writer_factories, open_writers
from aggrevated.storage import (
    ChecksummedJournal,
    digest_tensors,
    exclusive_lock,
    load_checksummed,
    save_checksummed_json,
)
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

ProgressCallback = Callable[[Metrics], None]
MessageCallback = Callable[[str], None]


def print_to_stderr(sentence: str) -> None:
    """Print the sentence to standard error."""
    print(sentence, file=sys.stderr)


def emit_warning(sentence: str) -> None:
    """Issue a Python warning."""
    warnings.warn(sentence, stacklevel=2)


class Trainer:
    """Trains the policy of a config in its run folder.

    Args:
        config: The config to train, from `resolve_config` or from `Run.open(folder).config`.

    Example:
        >>> from aggrevated import Run, Trainer, resolve_config
        >>> config = resolve_config("cartpole", iterations=1, trajectories=2, validation_episodes=2, test_episodes=2)
        >>> trainer = Trainer(config)
        >>> trainer.build()
        >>> run = Run.create("runs/example", config)
        >>> trainer.fit(run).iterations
        1
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self._inputs: AlgorithmInputs | None = None

    def build(self) -> None:
        """Build simulator, expert, policy, oracle, loss and update.

        `fit` calls it if needed. Call it before you create a run folder, so that a config that cannot be built
        leaves no folder behind.

        Raises:
            AggrevatedError: A component cannot be built, for example because the file of the expert is missing.
        """
        with single_thread():
            self._inputs = build_algorithm_inputs(self.config)

    def fit(
        self,
        run: Run,
        engine: Engine = IN_PROCESS,
        *,
        log: str | Sequence[str] = (),
        progress: ProgressCallback = ignore_message,
        warn: WarningCallback = ignore_message,
        say: MessageCallback = ignore_message,
        ignore_numerics: bool = False,
    ) -> Result:
        """Train until the run ends, from its newest checkpoint if there is one.

        A signal to stop ends the run after the current iteration, with a checkpoint.

        Args:
            run: The run. If its limits were extended, its config.json is written again.
            engine: Runs the simulations; the result does not depend on it.
            log: Names of loggers, for example "tensorboard".
            progress: Called with the metrics of every iteration.
            warn: Called with every warning, a sentence.
            say: Called with every message for the user, a sentence.
            ignore_numerics: Resume even if this machine computes other bits than the one that started the run.

        Returns:
            The result; if the run has ended already, the result in its folder.

        Raises:
            UsageError: The run has another config, or another process trains it.
            DataError: A file of the run is damaged, or this machine computes other bits.
        """
        if run.config != self.config:
            raise UsageError(f"{run.folder} has another config than this trainer; use Trainer(run.config)")
        if log:
            find_writer_factories(log)
        with exclusive_lock(run.folder), single_thread(), ExitStack() as stack:
            if (result := load_complete_result(run, warn)) is not None:
                return replace(result, run_folder=str(run.folder))  # the folder may have been moved
            session = restore_or_start(run, self._take_inputs(engine), warn, ignore_numerics)
            if run.saved_config != run.config.to_dict():
                save_checksummed_json(run.folder / CONFIG, run.config.to_dict())
            writers = stack.enter_context(open_run_writers(log, run, warn)) if log else None
            with defer_signals() as stop:
                for metrics in self._iterate(session, engine, warn):
                    if writers is not None:
                        writers.write(metrics.to_dict())
                    progress(metrics)
                    if stop.signal is not None:
                        session.save_checkpoint_if_new()
                        stop.reraise()
                if stop.signal is not None:
                    stop.reraise()
            session.validate_last_policy()
            if digest_best_policy(run) != digest_tensors(session.inputs.learner.best.weights or {}):
                session.save_best_policy()  # the file is missing, damaged or of an older iteration
            result = finish_run(session, say)
            if writers is not None:
                writers.close(result.to_dict())
            return result

    def _take_inputs(self, engine: Engine) -> AlgorithmInputs:
        """Return the inputs of the algorithm for one run, since training changes them."""
        if self._inputs is None:
            self.build()
        inputs = self._inputs
        assert inputs is not None
        self._inputs = None
        return inputs if engine is IN_PROCESS else replace(inputs, problem=inputs.problem.with_engine(engine))

    def _iterate(self, session: TrainingSession, engine: Engine, warn: WarningCallback) -> Iterator[Metrics]:
        """Run the missing iterations, save checkpoints, and yield the metrics of each iteration once written."""
        run = session.run
        inputs = session.inputs
        learner = inputs.learner
        loop = run.config.loop
        started = time.perf_counter() - session.counters.seconds
        cpu_started = time.process_time() - session.counters.cpu_seconds
        iterations = aggrevated(
            learner, inputs.problem.simulator, inputs.problem.expert, inputs.oracle, inputs.loss,
            seed=loop.seed, k=loop.trajectories, alpha=inputs.alpha,
            validate=inputs.problem.validate, validate_every=loop.validate_every, engine=engine,
        )  # fmt: skip
        with ChecksummedJournal(run.folder / METRICS, session.last_checksum) as journal:
            while not session.ended_by:
                counts_before = limits.count_used(learner)
                iteration = next(iterations)
                seconds = time.perf_counter() - started
                metrics = make_metrics(iteration, learner, seconds, time.process_time() - cpu_started)
                metrics = replace(metrics, stalled_reason=session.monitor.observe(metrics))
                if learner.n % loop.validate_every == 0:
                    metrics = replace(metrics, more=inputs.problem.monitor(learner.policy))
                session.counters.add(metrics)
                session.cost = limits.count_since(learner, counts_before)
                journal.append(metrics.to_dict())
                session.last_checksum = journal.checksum
                session.unsaved_metrics.append(metrics.to_dict())
                if session.is_checkpoint_due():
                    journal.sync()
                    session.save_checkpoint()
                for sentence in session.monitor.pop_new_warnings():
                    warn(f"{run.folder}, iteration {learner.n}: {sentence}")
                yield metrics
                limits.check_progress_towards_limit(run, session.cost)


def train(
    env: Any,
    method: str = "aggrevated",
    *,
    expert: Any = None,
    out: Path | str | None = None,
    progress: ProgressCallback = ignore_message,
    say: MessageCallback = print_to_stderr,
    warn: WarningCallback = emit_warning,
    engine: Engine = IN_PROCESS,
    log: str | Sequence[str] = (),
    **settings: Any,
) -> Run:
    """Train a policy in a new run folder; `run.policy` is the best policy.

    Args:
        env: The name of a task, the id of a Gymnasium environment, a function that makes an environment, a simulator
            or a `Task`.
        method: The name of a method, for example "aggrevated", "dagger" or "loki".
        expert: The file of an expert, or an object that `aggrevated.as_expert` accepts.
        out: The run folder; by default a new folder in runs/.
        progress: Called with the metrics of every iteration.
        say: Called with every message for the user, a sentence; by default it is printed to standard error.
        warn: Called with every warning, a sentence; by default it is issued as a Python warning.
        engine: Runs the simulations, for example `ProcessEngine(8)`; the result does not depend on it.
        log: Names of loggers, for example "tensorboard".
        **settings: Components and their settings, by the names of the command line's options.

    Returns:
        The run.

    Raises:
        UsageError: A setting is unknown, conflicts with another or has no effect, or the folder exists.
        DataError: The expert or other data cannot be read.

    Example:
        >>> import aggrevated
        >>> run = aggrevated.train(
        ...     "cartpole", update="regular", iterations=1, trajectories=2, validation_episodes=2, test_episodes=2
        ... )
        >>> action, _ = run.policy.predict([0.0, 0.0, 0.1, 0.0], deterministic=True)
        >>> int(action) in (0, 1)
        True
    """
    find_writer_factories(log)
    has_file = isinstance(expert, str | os.PathLike)
    if has_file:
        settings["expert"] = os.fspath(expert)
    config = resolve_config(as_task(env, None if has_file else expert), method, **settings)
    for line in describe_config(config):
        say(line)
    trainer = Trainer(config)
    trainer.build()
    run = Run.create(out if out is not None else choose_run_folder(config), config)
    trainer.fit(run, engine, log=log, progress=progress, warn=warn, say=say)
    return run


def resume(
    folder: Path | str,
    env: Any = None,
    *,
    expert: Any = None,
    iterations: int | None = None,
    budget: int | None = None,
    queries: int | None = None,
    progress: ProgressCallback = ignore_message,
    say: MessageCallback = print_to_stderr,
    warn: WarningCallback = emit_warning,
    engine: Engine = IN_PROCESS,
    log: str | Sequence[str] = (),
    trust_code: bool = False,
    ignore_numerics: bool = False,
) -> Run:
    """Resume a run from its newest checkpoint; it ends with the same bits as if it had not been stopped.

    Args:
        folder: The run folder.
        env: The environment that was passed to `train`, if it was an object rather than a name.
        expert: The expert that was passed to `train`, if it was an object rather than a name.
        iterations: New limit on the iterations of the whole run; it cannot be lowered.
        budget: New limit on the simulator steps of the whole run.
        queries: New limit on the oracle queries of the whole run.
        progress: Called with the metrics of every iteration.
        say: Called with every message for the user, a sentence.
        warn: Called with every warning, a sentence.
        engine: Runs the simulations; the result does not depend on it.
        log: Names of loggers, for example "tensorboard".
        trust_code: Allow the import of Python code that the folder names.
        ignore_numerics: Resume even if this machine computes other bits than the one that started the run.

    Returns:
        The run.

    Raises:
        UsageError: A new limit is below what the run has done.
        DataError: The folder is not a run, a file is damaged, environment or expert are not those of the run, or this
            machine computes other bits.
    """
    run = Run.open(folder, trust_code=trust_code, env=env, expert=expert)
    run = limits.extend_limits(run, iterations, budget, queries)
    trainer = Trainer(run.config)
    trainer.fit(run, engine, log=log, progress=progress, warn=warn, say=say, ignore_numerics=ignore_numerics)
    return run


@contextmanager
def open_run_writers(log: str | Sequence[str], run: Run, warn: WarningCallback) -> Iterator[WriterCollection]:
    """Open the writers of a run, and write the metrics that the run already has."""
    with open_writers(log, run.folder, run.config.to_dict(), warn) as writers:
        for metrics in run.metrics():
            writers.write(metrics.to_dict())
        yield writers


def load_complete_result(run: Run, warn: WarningCallback) -> Result | None:
    """Return the result of a run that has ended and whose files are complete; None otherwise.

    Raises:
        DataError: The result and the best policy do not belong together.
    """
    result = run.result()
    if result is None or digest_best_policy(run, warn) is None:
        return None
    if digest_tensors(run.load_best_policy_weights()[0]) != result.weights_sha256:
        raise DataError(f"{run.folder}/{RESULT} does not match {BEST_POLICY_FILE}; remove {RESULT} and resume the run")
    metrics = run.metrics()
    return result if (metrics[-1].iteration if metrics else 0) == result.iterations else None


def digest_best_policy(run: Run, warn: WarningCallback = ignore_message) -> str | None:
    """Return the digest of the best policy's weights; None if the file is missing or damaged."""
    if not (run.folder / BEST_POLICY_FILE).is_file():
        return None
    try:
        return digest_tensors(load_checksummed(run.folder / BEST_POLICY_FILE)[0])
    except DataError as error:
        warn(f"{error}; it is restored from the last checkpoint")
        return None


def make_metrics(iteration: Iteration, learner: Learner, seconds: float, cpu_seconds: float) -> Metrics:
    """Return one line of metrics.jsonl."""
    returns = asdict(iteration)
    n = returns.pop("n")
    step = returns.pop("step")
    fields = {**returns, **step, **checkpoint.get_learner_counts(learner)}
    return Metrics(
        iteration=n, **fields, seconds=round(seconds, 3), cpu_seconds=round(cpu_seconds, 3), stalled_reason=""
    )
