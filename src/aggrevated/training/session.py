"""Training sessions: the state of a run while it is trained, saved in checkpoints and restored from them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from aggrevated import storage
from aggrevated.config.builder import AlgorithmInputs
from aggrevated.core.errors import DataError
from aggrevated.kernels.numerics import compute_numerics_fingerprint, describe_numerics_difference
from aggrevated.training import checkpoint, limits
from aggrevated.training.diagnostics import TrainingMonitor, UpdateWithDiagnostics
from aggrevated.training.records import Metrics, Result
from aggrevated.training.run_folder import (
    BEST_POLICY_FILE,
    CHECKPOINTS,
    METRICS,
    Run,
    resume_invariant_settings,
    run_identity,
)

WarningCallback = Callable[[str], None]
# A checkpoint is due after this many seconds, and this many times the seconds that the last checkpoint took.
MIN_CHECKPOINT_INTERVAL = 1.0
CHECKPOINT_COST_RATIO = 50


def ignore_message(_: object) -> None:
    """Ignore a message."""


@dataclass
class RunCounters:
    """Totals of a run besides those of its learner."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    shortened_iterations: int = 0
    stalled_iterations: int = 0

    def add(self, line: Metrics) -> None:
        """Add an iteration."""
        self.seconds = line.seconds
        self.cpu_seconds = line.cpu_seconds
        self.shortened_iterations += line.step_halvings > 0
        self.stalled_iterations += bool(line.stalled_reason)


@dataclass
class TrainingSession:
    """State of a run while it is trained.

    Args:
        run: The run.
        inputs: The inputs of the algorithm, among them the learner.
        monitor: Detects stalled learning.
        last_checksum: Checksum of the last line of metrics.jsonl.
        counters: Totals of the run.
        cost: The amounts that the last iteration used, by the names of the limits.
        unsaved_metrics: Lines of metrics.jsonl since the last checkpoint.
        checkpointed_iteration: Iteration of the last checkpoint.
        checkpointed_at: Time of the last checkpoint, in seconds of `time.perf_counter`.
        checkpoint_seconds: Seconds that the last checkpoint took.
    """

    run: Run
    inputs: AlgorithmInputs
    monitor: TrainingMonitor
    last_checksum: str
    counters: RunCounters = field(default_factory=RunCounters)
    cost: dict[str, int] = field(default_factory=dict)
    unsaved_metrics: list[storage.JsonDict] = field(default_factory=list)
    checkpointed_iteration: int = 0
    checkpointed_at: float = field(default_factory=time.perf_counter)
    checkpoint_seconds: float = 0.0

    @property
    def ended_by(self) -> str:
        """Name of the limit that ends the run now; "" if the run continues."""
        learner = self.inputs.learner
        return limits.find_exhausted_limit(self.run.config.loop, learner.n, limits.count_used(learner), self.cost)

    def is_checkpoint_due(self) -> bool:
        """Return whether to save a checkpoint: every few iterations, at the end, and after much work."""
        n = self.inputs.learner.n
        loop = self.run.config.loop
        elapsed = time.perf_counter() - self.checkpointed_at
        is_interval_over = elapsed > max(MIN_CHECKPOINT_INTERVAL, CHECKPOINT_COST_RATIO * self.checkpoint_seconds)
        return n - self.checkpointed_iteration >= loop.checkpoint_every or bool(self.ended_by) or is_interval_over

    def save_checkpoint_if_new(self) -> None:
        """Save a checkpoint unless this iteration is saved already."""
        if self.checkpointed_iteration != self.inputs.learner.n:
            self.save_checkpoint()

    def save_checkpoint(self) -> None:
        """Save a checkpoint, and policy.safetensors."""
        run = self.run
        inputs = self.inputs
        started_at = time.perf_counter()
        content = {
            "counters": asdict(self.counters),
            "cost": self.cost,
            "config": run_identity(run.config, inputs.problem),
            "expert_fingerprint": storage.digest_tensors(dict(inputs.problem.expert_fingerprint)),
            "numerics": compute_numerics_fingerprint(),
            "metrics": {"checksum": self.last_checksum, "lines": self.unsaved_metrics},
        }
        checkpoint.save_checkpoint(run.folder / CHECKPOINTS, inputs.learner, inputs.oracle, content)
        self.save_best_policy()
        self.checkpointed_iteration = inputs.learner.n
        self.unsaved_metrics = []
        self.checkpointed_at = time.perf_counter()
        self.checkpoint_seconds = self.checkpointed_at - started_at

    def save_best_policy(self) -> None:
        """Write policy.safetensors only."""
        run = self.run
        best = self.inputs.learner.best
        metadata = {
            "so_far": make_partial_result(self).to_dict(),
            "config": resume_invariant_settings(run.config),
            "numerics": compute_numerics_fingerprint(),
        }
        storage.save_checksummed(run.folder / BEST_POLICY_FILE, best.weights or {}, metadata)

    def validate_last_policy(self) -> None:
        """Validate the last policy if a limit ended the run between two validations.

        The result is not saved in a checkpoint: a run that is extended equals a run with that limit from the start.
        """
        inputs = self.inputs
        learner = self.inputs.learner
        if learner.n % self.run.config.loop.validate_every or learner.best.weights is None:
            learner.update_best(inputs.problem.validate(learner.policy), learner.n)


def restore_or_start(
    run: Run, inputs: AlgorithmInputs, warn: WarningCallback, ignore_numerics: bool = False
) -> TrainingSession:
    """Return the session of a run, with learner and oracle restored from the newest intact checkpoint."""
    storage.remove_temporary_files(run.folder)
    lines = [line.to_dict() for line in run.metrics()]
    learner = inputs.learner
    loop = run.config.loop
    checkpoints = run.folder / CHECKPOINTS
    learner.update = UpdateWithDiagnostics(learner.update)
    identity = run_identity(run.config, inputs.problem)
    expert_fingerprint = storage.digest_tensors(dict(inputs.problem.expert_fingerprint))
    restored = checkpoint.restore_checkpoint(checkpoints, learner, inputs.oracle, identity, expert_fingerprint, warn)
    counters = RunCounters(**restored.content["counters"]) if restored is not None else RunCounters()
    if restored is not None:
        check_same_numerics(run, restored.content["numerics"], warn, ignore_numerics)
        lines = restored.restore_lines(lines, run.folder / METRICS, warn)
    else:
        if lines or any(checkpoints.glob("*")):
            warn(f"{run.folder} has no usable checkpoint; restarting the run, which gives the same result")
        lines = []
        cpu_started_at = time.process_time()
        learner.start_simulator_steps, learner.oracle_queries = run.config.start.begin(
            learner.policy, inputs.problem.simulator, inputs.problem.expert, loop.seed, loop.trajectories
        )
        learner.simulator_steps = learner.start_simulator_steps
        counters.cpu_seconds = round(time.process_time() - cpu_started_at, 3)
    records = [Metrics.read(line, run.folder / METRICS) for line in lines]
    checksum = storage.rewrite_journal(run.folder / METRICS, (record.to_dict() for record in records))
    cost = restored.content["cost"] if restored is not None else {}
    session = TrainingSession(
        run, inputs, TrainingMonitor.replay(records), checksum, counters, cost, checkpointed_iteration=learner.n
    )
    if restored is not None and checksum != restored.content["metrics"]["checksum"]:  # some lines cannot be restored
        session.unsaved_metrics = restored.content["metrics"]["lines"]
        session.save_checkpoint()
    return session


def check_same_numerics(run: Run, saved: storage.JsonDict, warn: WarningCallback, ignore_numerics: bool) -> None:
    """Raise a `DataError`, or warn, if this machine or its packages do not compute the bits of the run's machine."""
    if difference := describe_numerics_difference(saved, compute_numerics_fingerprint()):
        sentence = f"{run.folder} was started with {difference}: its result here would have other bits"
        if not ignore_numerics:
            raise DataError(
                f"{sentence}; resume it there, or here with 'aggrevated resume {run.folder} --ignore-numerics'"
            )
        warn(sentence)


def make_partial_result(session: TrainingSession) -> Result:
    """Return the result of a run before its policy is tested."""
    run = session.run
    learner = session.inputs.learner
    config = run.config
    return Result(
        task=config.task.name,
        method=config.method,
        update=config.update.name,
        seed=config.loop.seed,
        iterations=learner.n,
        budget=config.loop.budget,
        queries=config.loop.queries,
        ended_by=session.ended_by,
        initial_return=learner.best.initial_return,
        best_return=learner.best.best_return,
        **checkpoint.get_learner_counts(learner),
        **asdict(session.counters),
        run_folder=str(run.folder),
        weights_sha256=storage.digest_tensors(learner.best.weights or {}),
    )
