"""Typed records of a run: a line of metrics.jsonl, result.json and an evaluation. All are flat in JSON."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Self, get_args, get_type_hints

from aggrevated.core.errors import DataError
from aggrevated.core.settings import TYPE_DESCRIPTIONS, has_exact_type
from aggrevated.storage import JsonDict


@dataclass(frozen=True, kw_only=True)
class JsonRecord:
    """Fields that every run has, and `more`: what only its problem measures."""

    more: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> JsonDict:
        """Return the record for JSON, with the items of `more` after the fields."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "more"} | dict(self.more)

    @classmethod
    def read(cls, values: JsonDict, source: object) -> Self:
        """Return the record of a dictionary that `to_dict` returned.

        Args:
            values: The dictionary.
            source: Its file, which errors name.

        Raises:
            DataError: A field is missing or has another type.
        """
        if not isinstance(values, dict):
            raise DataError(f"{source} holds {values!r}, not a JSON object; restore it, or start a new run")
        record_fields = [f for f in fields(cls) if f.name != "more"]
        # A field that was added in a later version has a default.
        names = [f.name for f in record_fields if f.name in values or f.default is MISSING]
        types = get_type_hints(cls)
        missing = [name for name in names if name not in values]
        if missing:
            raise DataError(f"{source} lacks {', '.join(missing)}; restore it, or start a new run")
        for name in names:
            if not has_type(values[name], types[name]):
                problem = f"{name} as {truncate_repr(values[name])}, which must be {describe_type(types[name])}"
                raise DataError(f"{source} holds {problem}; restore it, or start a new run")
        more = {name: value for name, value in values.items() if name not in names}
        return cls(**{name: values[name] for name in names}, more=more)


def has_type(value: object, kind: Any) -> bool:
    """Return whether a value read from JSON is of a field's type, or of one of its types."""
    return any(value is None if one is type(None) else has_exact_type(value, one) for one in get_args(kind) or (kind,))


def describe_type(kind: Any) -> str:
    """Return a field's type in words."""
    return " or ".join("null" if one is type(None) else TYPE_DESCRIPTIONS[one] for one in get_args(kind) or (kind,))


def truncate_repr(value: object) -> str:
    """Return the first 40 characters of a value's repr."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


@dataclass(frozen=True, kw_only=True)
class Metrics(JsonRecord):
    """Metrics of one iteration: a line of metrics.jsonl. Counts and seconds are totals of the run so far.

    Attributes:
        more: What only this problem measures, by name.
        iteration: n, from 1.
        roll_in_return: Mean return of the K roll-ins, by the roll-in policy.
        current_return: Validation return of the latest policy that was validated.
        best_return: Validation return of the best policy so far.
        loss: ℓ_n(π_n) before the update, in the unit in which the update measures costs.
        gradient_norm: Norm of the gradient of the loss.
        kl: KL(π_n ‖ π_{n+1}), mean over the visited states, in nats.
        step_halvings: Times that the step was halved before it was taken.
        confident_error_rate: Fraction of visited states at which the policy is confident of a costly action; None
            where it is not known.
        mean_advantage: Mean A* of the policy's actions: their cost above the best action, per step; None likewise.
        advantage_rms: Root mean square of A*; None likewise.
        stalled_reason: Why learning has stalled; "" if it has not.
        simulator_steps: Simulator steps of start, roll-ins and oracle.
        start_simulator_steps: Simulator steps before iteration 1, part of `simulator_steps`.
        oracle_steps: Simulator steps of the oracle, part of `simulator_steps`.
        validation_steps: Simulator steps of validation, not part of `simulator_steps`.
        oracle_queries: States at which the oracle was evaluated.
        diverged_trajectories: Simulations of roll-ins and oracle that diverged and were left out.
        diverged_validation_episodes: Episodes of validation that diverged and were left out.
        seconds: Wall-clock time.
        cpu_seconds: CPU time of this process, including the start but not an engine's workers.
    """

    iteration: int
    roll_in_return: float
    current_return: float
    best_return: float
    loss: float
    gradient_norm: float
    kl: float
    step_halvings: int
    confident_error_rate: float | None
    mean_advantage: float | None
    advantage_rms: float | None
    stalled_reason: str
    simulator_steps: int
    start_simulator_steps: int
    oracle_steps: int
    validation_steps: int
    oracle_queries: int
    diverged_trajectories: int
    diverged_validation_episodes: int
    seconds: float
    cpu_seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Result(JsonRecord):
    """Result of a run so far: result.json once the run has ended.

    Attributes:
        more: Score of the best policy on the test, once the run has ended.
        task: Name of the task.
        method: Name of the method.
        update: Name of the update.
        seed: Seed of the run.
        iterations: Iterations done.
        budget: Limit on simulator steps; 0: no limit.
        queries: Limit on oracle queries; 0: no limit.
        ended_by: The limit that ended the run: iterations, budget or queries; "" if the run has not ended.
        initial_return: Validation return of the first policy.
        best_return: Validation return of the best policy.
        simulator_steps: Simulator steps of start, roll-ins and oracle.
        start_simulator_steps: Simulator steps before iteration 1, part of `simulator_steps`.
        oracle_steps: Simulator steps of the oracle, part of `simulator_steps`.
        validation_steps: Simulator steps of validation, not part of `simulator_steps`.
        oracle_queries: States at which the oracle was evaluated.
        diverged_trajectories: Simulations of roll-ins and oracle that diverged and were left out.
        diverged_validation_episodes: Episodes of validation that diverged and were left out.
        seconds: Wall-clock time.
        cpu_seconds: CPU time of this process, including the start but not an engine's workers.
        shortened_iterations: Iterations whose step was halved.
        stalled_iterations: Iterations in which learning had stalled.
        run_folder: The run folder.
        weights_sha256: Digest of the best policy's weights.
    """

    task: str
    method: str
    update: str
    seed: int
    iterations: int
    budget: int
    queries: int
    ended_by: str
    initial_return: float
    best_return: float
    simulator_steps: int
    start_simulator_steps: int
    oracle_steps: int
    validation_steps: int
    oracle_queries: int
    diverged_trajectories: int
    diverged_validation_episodes: int
    seconds: float
    cpu_seconds: float = 0.0
    shortened_iterations: int
    stalled_iterations: int
    run_folder: str
    weights_sha256: str


@dataclass(frozen=True, kw_only=True)
class Evaluation(JsonRecord):
    """Score of a run's best policy, measured again.

    Attributes:
        more: What was measured, and the score.
        task: Name of the run's task.
        method: Name of the run's method.
        update: Name of the run's update.
        seed: Seed of the run.
        run: The run folder.
        weights_sha256: Digest of the best policy's weights.
    """

    task: str
    method: str
    update: str
    seed: int
    run: str
    weights_sha256: str
