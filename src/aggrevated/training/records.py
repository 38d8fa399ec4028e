"""What a run writes down, with types: a line of metrics.jsonl, and result.json. Both are flat in JSON."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Self, get_args, get_type_hints

from aggrevated.core.errors import DataError
from aggrevated.core.settings import TYPE_DESCRIPTIONS, has_exact_type
from aggrevated.storage import JsonDict


@dataclass(frozen=True, kw_only=True)
class JsonRecord:
    """Fields that every run has, and `more` that only its world knows of."""

    more: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> JsonDict:
        """For JSON."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "more"} | dict(self.more)

    @classmethod
    def read(cls, facts: JsonDict, source: object) -> Self:
        """What `facts` gave, or a `DataError` that names its source."""
        if not isinstance(facts, dict):
            raise DataError(f"{source} holds {facts!r}, and no facts by name; restore it, or start a new run")
        own = [f for f in fields(cls) if f.name != "more"]
        names = [f.name for f in own if f.name in facts or f.default is MISSING]  # what came later has a default
        kinds = get_type_hints(cls)
        missing = [name for name in names if name not in facts]
        if missing:
            raise DataError(f"{source} lacks {', '.join(missing)}; restore it, or start a new run")
        for name in names:
            if not has_type(facts[name], kinds[name]):
                words = f"{name} as {truncate_repr(facts[name])}, which must be {describe_type(kinds[name])}"
                raise DataError(f"{source} holds {words}; restore it, or start a new run")
        more = {name: value for name, value in facts.items() if name not in names}
        return cls(**{name: facts[name] for name in names}, more=more)


def has_type(value: object, kind: Any) -> bool:
    """Whether a value that was read is of the type, or of one of the types, that a field says."""
    return any(value is None if one is type(None) else has_exact_type(value, one) for one in get_args(kind) or (kind,))


def describe_type(kind: Any) -> str:
    """The type in words."""
    return " or ".join("null" if one is type(None) else TYPE_DESCRIPTIONS[one] for one in get_args(kind) or (kind,))


def truncate_repr(value: object) -> str:
    """A value as it was read, as much of it as fits into a sentence."""
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:40]}…"


@dataclass(frozen=True, kw_only=True)
class Metrics(JsonRecord):
    """What one iteration did."""

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
    cpu_seconds: float = 0.0  # of this process, with the start's; not of an engine's workers


@dataclass(frozen=True, kw_only=True)
class Result(JsonRecord):
    """Of a run so far; when it has ended, with the score of its chosen policy in `more`."""

    task: str
    method: str
    update: str
    seed: int
    iterations: int
    budget: int  # as asked for, like `queries`; 0: no limit
    queries: int
    ended_by: str  # the setting that ended it: iterations, budget or queries; nothing if it has not ended
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
    cpu_seconds: float = 0.0  # of this process, with the start's; not of an engine's workers
    shortened_iterations: int
    stalled_iterations: int
    run_folder: str
    weights_sha256: str


@dataclass(frozen=True, kw_only=True)
class Evaluation(JsonRecord):
    """Of the chosen policy of a run, tried again: whose it is, and in `more` what it was tried on and its score."""

    task: str
    method: str
    update: str
    seed: int  # of the run
    run: str
    weights_sha256: str
