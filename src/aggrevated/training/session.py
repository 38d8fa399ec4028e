"""A training session: a run while it is trained, its checkpoints, and how it is restored."""

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
MIN_CHECKPOINT_INTERVAL = 1.0  # seconds of work that are always worth a checkpoint
CHECKPOINT_COST_RATIO = 50  # and how many times what a checkpoint takes


def ignore_message(_: object) -> None:
    """Say nothing."""


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
            "numerics": compute_numerics_fingerprint(),
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
            "so_far": make_partial_result(self).to_dict(),
            "config": resume_invariant_settings(run.config),
            "numerics": compute_numerics_fingerprint(),
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


def restore_or_start(
    run: Run, setup: AlgorithmInputs, warn: WarningCallback, ignore_numerics: bool = False
) -> TrainingSession:
    """Return the session, with learner and oracle where the newest intact checkpoint left them."""
    storage.remove_temporary_files(run.folder)
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
        lines = kept.restore_lines(lines, run.folder / METRICS, warn)
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
    if elsewhere := describe_numerics_difference(then, compute_numerics_fingerprint()):
        sentence = f"{run.folder} was begun with {elsewhere}: it would not end with the bits that it would have there"
        if not ignore_numerics:
            raise DataError(f"{sentence}; go on there, or here with 'aggrevated resume {run.folder} --ignore-numerics'")
        warn(sentence)


def make_partial_result(sitting: TrainingSession) -> Result:
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
        **checkpoint.get_learner_counts(learner),
        **asdict(sitting.counters),
        run_folder=str(run.folder),
        weights_sha256=storage.digest_tensors(learner.best.weights or {}),
    )
