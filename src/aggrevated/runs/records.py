"""What a run writes down, with types: a line of metrics.jsonl, and result.json. Both are flat in JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from aggrevated.errors import DataError
from aggrevated.files import Facts


@dataclass(frozen=True, kw_only=True)
class Record:
    """Fields that every run has, and `more` that only its world knows of."""

    more: Mapping[str, Any] = field(default_factory=dict)

    def facts(self) -> Facts:
        """For JSON."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "more"} | dict(self.more)

    @classmethod
    def read(cls, facts: Facts, source: object) -> Self:
        """What `facts` gave, or a `DataError` that names its source."""
        names = [f.name for f in fields(cls) if f.name != "more"]
        missing = [name for name in names if name not in facts]
        if missing:
            raise DataError(f"{source} lacks {', '.join(missing)}; restore it, or start a new run")
        more = {name: value for name, value in facts.items() if name not in names}
        return cls(**{name: facts[name] for name in names}, more=more)


@dataclass(frozen=True, kw_only=True)
class Metrics(Record):
    """What one iteration did."""

    iteration: int
    roll_in_return: float
    current_return: float
    best_return: float
    loss: float
    gradient_norm: float
    kl: float
    halvings: int
    sure_and_wrong: float | None
    left_to_learn: float | None
    usual_mistake: float | None
    died: str
    simulator_steps: int
    start_simulator_steps: int
    oracle_steps: int
    validation_steps: int
    oracle_queries: int
    diverged: int
    validation_diverged: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Result(Record):
    """Of a run so far; when it has ended, with the score of its chosen policy in `more`."""

    task: str
    method: str
    update: str
    seed: int
    iterations: int
    initial_return: float
    best_return: float
    simulator_steps: int
    start_simulator_steps: int
    oracle_steps: int
    validation_steps: int
    oracle_queries: int
    diverged: int
    validation_diverged: int
    seconds: float
    shortened_steps: int
    dead_iterations: int
    run: str
    weights_sha256: str
