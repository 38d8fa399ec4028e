"""Algorithm 1 in a folder. Stopped at any moment, it goes on and ends with the same bits."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from aggrevated import loggers, storage
from aggrevated.algorithm import Iteration, Learner, aggrevated
from aggrevated.config.builder import AlgorithmInputs, build_algorithm_inputs
from aggrevated.config.resolver import resolve_config
from aggrevated.config.summary import describe_config
from aggrevated.core.errors import DataError
from aggrevated.core.hardware import single_thread
from aggrevated.core.signals import defer_signals
from aggrevated.engines import IN_PROCESS, Engine
from aggrevated.experts.behavior_clone import BehaviorClone
from aggrevated.kernels.numerics import describe_numerics_difference, numerics_fingerprint
from aggrevated.problems import Problem
from aggrevated.tasks import as_task
from aggrevated.training import checkpoint, limits
from aggrevated.training.diagnostics import TrainingMonitor, UpdateWithDiagnostics
from aggrevated.training.records import Metrics, Result
from aggrevated.training.run_folder import (
    BEST_POLICY_FILE,
    CHECKPOINTS,
    CONFIG,
    METRICS,
    RESULT,
    Run,
    choose_run_folder,
    resume_invariant_settings,
    run_identity,
)

WarningCallback = Callable[[str], None]
MIN_CHECKPOINT_INTERVAL = 1.0  # seconds of work that are always worth a checkpoint
CHECKPOINT_COST_RATIO = 50  # and how many times what a checkpoint takes


def ignore_message(_: object) -> None:
    """Say nothing."""


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


@dataclass
class RunCounters:
    """What a run counts besides its learner."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    shortened_iterations: int = 0
    stalled_iterations: int = 0

    def add(self, line: Metrics) -> None:
        """One more iteration."""
        self.seconds = line.seconds
        self.cpu_seconds = line.cpu_seconds
        self.shortened_iterations += line.step_halvings > 0
        self.stalled_iterations += bool(line.stalled_reason)


@dataclass
class TrainingSession:
    """A run while it is run: its parts, and what there is to be kept of it."""

    run: Run
    inputs: AlgorithmInputs
    monitor: TrainingMonitor
    last_checksum: str  # of the last line of metrics.jsonl
    counters: RunCounters = field(default_factory=RunCounters)
    cost: dict[str, int] = field(default_factory=dict)  # of the last iteration, by the limits on it
    unsaved_metrics: list[storage.JsonDict] = field(default_factory=list)  # lines since the last checkpoint
    checkpointed_iteration: int = 0  # the iteration of the last checkpoint
    checkpointed_at: float = field(default_factory=time.perf_counter)
    checkpoint_seconds: float = 0.0

    @property
    def ended_by(self) -> str:
        """The setting that ends the run here, if one does."""
        learner = self.inputs.learner
        return limits.find_exhausted_limit(self.run.config.loop, learner.n, limits.count_spent(learner), self.cost)

    def is_checkpoint_due(self) -> bool:
        """Whether a checkpoint is: every few iterations, at the last, and where much work would be lost."""
        n = self.inputs.learner.n
        loop = self.run.config.loop
        since = time.perf_counter() - self.checkpointed_at
        much = since > max(MIN_CHECKPOINT_INTERVAL, CHECKPOINT_COST_RATIO * self.checkpoint_seconds)
        return n - self.checkpointed_iteration >= loop.checkpoint_every or bool(self.ended_by) or much

    def save_checkpoint_if_new(self) -> None:
        """The same, unless it is done."""
        if self.checkpointed_iteration != self.inputs.learner.n:
            self.save_checkpoint()

    def save_checkpoint(self) -> None:
        """Write a checkpoint, and the best policy so far as a file of its own."""
        run = self.run
        setup = self.inputs
        began = time.perf_counter()
        facts = {
            "counters": asdict(self.counters),
            "cost": self.cost,
            "config": run_identity(run.config, setup.problem),
            "expert_fingerprint": storage.digest_tensors(dict(setup.problem.expert_fingerprint)),
            "numerics": numerics_fingerprint(),
            "metrics": {"checksum": self.last_checksum, "lines": self.unsaved_metrics},
        }
        checkpoint.save_checkpoint(run.folder / CHECKPOINTS, setup.learner, setup.oracle, facts)
        self.save_best_policy()
        self.checkpointed_iteration = setup.learner.n
        self.unsaved_metrics = []
        self.checkpointed_at = time.perf_counter()
        self.checkpoint_seconds = self.checkpointed_at - began

    def save_best_policy(self) -> None:
        """Only the latter."""
        run = self.run
        best = self.inputs.learner.best
        known = {
            "so_far": partial_result(self).to_dict(),
            "config": resume_invariant_settings(run.config),
            "numerics": numerics_fingerprint(),
        }
        storage.save_checksummed(run.folder / BEST_POLICY_FILE, best.weights or {}, known)

    def validate_last_policy(self) -> None:
        """Let the last policy be a candidate, where a limit ended the run between two validations.

        No checkpoint knows of it: a run that is made longer is as if it had been that long from the start.
        """
        setup = self.inputs
        learner = self.inputs.learner
        if learner.n % self.run.config.loop.validate_every or learner.best.weights is None:
            learner.update_best(setup.problem.validate(learner.policy), learner.n)


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
                sitting.save_best_policy()  # by that line, or a stop came between a checkpoint and it, or it was damaged
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


def restore_or_start(run: Run, warn: WarningCallback, ignore_numerics: bool = False) -> TrainingSession:
    """The parts, with learner and oracle where the newest intact checkpoint left them."""
    storage.remove_temporary_files(run.folder)
    setup = build_algorithm_inputs(run.config)
    lines = [line.to_dict() for line in run.metrics()]
    learner = setup.learner
    loop = run.config.loop
    checkpoints = run.folder / CHECKPOINTS
    learner.update = UpdateWithDiagnostics(learner.update)
    own = run_identity(run.config, setup.problem)
    habits = storage.digest_tensors(dict(setup.problem.expert_fingerprint))
    kept = checkpoint.restore_checkpoint(checkpoints, learner, setup.oracle, own, habits, warn)
    tally = RunCounters(**kept.content["counters"]) if kept is not None else RunCounters()
    if kept is not None:
        check_same_numerics(run, kept.content["numerics"], warn, ignore_numerics)
        lines = kept.lines(lines, run.folder / METRICS, warn)
    else:
        if lines or any(checkpoints.glob("*")):
            warn(f"{run.folder} has no checkpoint that can be used; starting it over, to the same end")
        lines = []
        cpu_began = time.process_time()
        learner.start_simulator_steps, learner.oracle_queries = run.config.start.begin(
            learner.policy, setup.problem.simulator, setup.problem.expert, loop.seed, loop.trajectories
        )
        learner.simulator_steps = learner.start_simulator_steps
        tally.cpu_seconds = round(time.process_time() - cpu_began, 3)
    records = [Metrics.read(line, run.folder / METRICS) for line in lines]
    seal = storage.rewrite_journal(run.folder / METRICS, (record.to_dict() for record in records))
    cost = kept.content["cost"] if kept is not None else {}
    sitting = TrainingSession(
        run, setup, TrainingMonitor.replay(records), seal, tally, cost, checkpointed_iteration=learner.n
    )
    if kept is not None and seal != kept.content["metrics"]["checksum"]:  # lines are lost for good
        sitting.unsaved_metrics = kept.content["metrics"]["lines"]
        sitting.save_checkpoint()
    return sitting


def check_same_numerics(run: Run, then: storage.JsonDict, warn: WarningCallback, ignore_numerics: bool) -> None:
    """A `DataError` where this machine or its packages do not compute as those before; a warning with `anyway`."""
    if elsewhere := describe_numerics_difference(then, numerics_fingerprint()):
        sentence = f"{run.folder} was begun with {elsewhere}: it would not end with the bits that it would have there"
        if not ignore_numerics:
            raise DataError(f"{sentence}; go on there, or here with 'aggrevated resume {run.folder} --ignore-numerics'")
        warn(sentence)


def make_metrics(iteration: Iteration, learner: Learner, seconds: float, cpu_seconds: float) -> Metrics:
    """One line of metrics.jsonl."""
    returns = asdict(iteration)
    n = returns.pop("n")
    step = returns.pop("step")
    known = {**returns, **step, **checkpoint.learner_counts(learner)}
    return Metrics(
        iteration=n, **known, seconds=round(seconds, 3), cpu_seconds=round(cpu_seconds, 3), stalled_reason=""
    )


def partial_result(sitting: TrainingSession) -> Result:
    """What is known of a run before its policy is tested."""
    run = sitting.run
    learner = sitting.inputs.learner
    config = run.config
    return Result(
        task=config.task.name,
        method=config.method,
        update=config.update.name,
        seed=config.loop.seed,
        iterations=learner.n,
        budget=config.loop.budget,
        queries=config.loop.queries,
        ended_by=sitting.ended_by,
        initial_return=learner.best.initial_return,
        best_return=learner.best.best_return,
        **checkpoint.learner_counts(learner),
        **asdict(sitting.counters),
        run_folder=str(run.folder),
        weights_sha256=storage.digest_tensors(learner.best.weights or {}),
    )


def finish_run(sitting: TrainingSession, say: Callable[[str], None] = ignore_message) -> Result:
    """Test the chosen policy on what it was not chosen by, and write result.json."""
    run = sitting.run
    learner = sitting.inputs.learner
    learner.policy.load_state_dict(learner.best.weights or {})
    test: Any = sitting.inputs.problem.test
    test = test.with_training_cost(count_expert_queries(learner)) if hasattr(test, "with_training_cost") else test
    if hasattr(test, "notice") and (notice := test.notice()):
        say(notice)
    score = test(learner.policy)
    same = validate_expert(sitting.inputs.problem)
    note = describe_unimproved_start(sitting, same)
    result = replace(partial_result(sitting), more=score.to_dict() | ({"note": note} if note else {}))
    if note:
        say(note)
    plot_learning_curve(
        run, result, *((score.expert_return, "expert in the test") if same is None else (same, "expert"))
    )
    storage.save_checksummed_json(run.folder / RESULT, result.to_dict())
    return result


def count_expert_queries(learner: Learner) -> int:
    """How often π* was asked in training, about: by the start, in roll-outs, and as who knows better."""
    return learner.start_simulator_steps + learner.oracle_steps + learner.oracle_queries


def describe_unimproved_start(sitting: TrainingSession, expert: float | None) -> str:
    """That a supervised start, or a clone of demonstrations, is better on validation than what was learned, if so."""
    learner = sitting.inputs.learner
    config = sitting.run.config
    found = list[str]()
    best = learner.best
    if config.start.name != "random" and best.n == 0 < learner.n:
        found.append(
            f"no policy that was learned did better on validation than the first, of the {config.start.name} start, "
            f"with {best.initial_return:.4g}: that one was chosen"
        )
    if expert is not None and isinstance(sitting.inputs.problem.expert, BehaviorClone) and expert > best.best_return:
        found.append(
            f"the clone of the demonstrations does better on validation, {expert:.4g}, than the chosen policy, "
            f"{best.best_return:.4g}"
        )
    return "; ".join(found)


def validate_expert(world: Problem) -> float | None:
    """What π* gets on what the policies were chosen by; None where that would take long, or cannot be told."""
    validate: Any = world.validate
    try:
        return float(validate(world.expert)) if world.validates_expert else None
    except DataError:  # too many of few episodes diverged: no reason to lose a run that has ended
        return None


def plot_learning_curve(run: Run, result: Result, expert: float, whose: str) -> None:
    """curve.png and curve.svg: what every run leaves to look at."""
    from aggrevated.plots.learning_curves import plot_run_curve

    config = run.config
    lines = run.metrics()
    current = [result.initial_return, *(line.current_return for line in lines)]
    best = [result.initial_return, *(line.best_return for line in lines)]
    title = f"{config.task.title}: {run.label}, seed {config.loop.seed}"
    episodes = [n * config.loop.trajectories for n in (0, *(line.iteration for line in lines))]
    plot_run_curve(episodes, current, best, expert, title, run.folder / "curve", config.problem.metric_name, whose)
