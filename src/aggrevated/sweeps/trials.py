"""A trial: some settings, and how good the runs with them were, one for each seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from aggrevated.storage import JsonDict


@dataclass(frozen=True)
class Trial:
    """What varies, as it is in this trial: without what has no effect there."""

    number: int
    settings: Mapping[str, Any]
    best_returns: tuple[float, ...] = ()  # on validation, one for each seed; nothing before it has ended
    test_returns: tuple[float, ...] = ()
    failed: str = field(default="")  # the sentence of the run that failed

    @classmethod
    def read(cls, facts: JsonDict) -> Trial:
        """What `facts` gave."""
        settings = {name: tuple(v) if isinstance(v, list) else v for name, v in facts["settings"].items()}
        best = tuple(facts["best_returns"])
        test = tuple(facts["test_returns"])
        return cls(facts["trial"], settings, best, test, facts["failed"])

    def to_dict(self) -> JsonDict:
        """For JSON."""
        means = {"validation": self.score, "spread": self.spread, "test": self.test}
        own = asdict(self)
        return {"trial": own.pop("number"), **own, **means}

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"trial-{self.number:03d}"

    @property
    def ended(self) -> bool:
        return bool(self.failed or self.best_returns)

    @property
    def score(self) -> float | None:
        """What trials are compared by: the mean over seeds of the best return on validation; None if it failed."""
        return float(np.mean(self.best_returns)) if self.best_returns else None

    @property
    def spread(self) -> float | None:
        """The standard deviation of that over seeds; None where there is but one."""
        return float(np.std(self.best_returns, ddof=1)) if len(self.best_returns) > 1 else None

    @property
    def test(self) -> float | None:
        """The mean over seeds of the return on what no policy was chosen by."""
        return float(np.mean(self.test_returns)) if self.test_returns else None


def sort_best_first(trials: Iterable[Trial]) -> list[Trial]:
    """Those that have a score; of equal ones the earlier first."""
    scored = [(-trial.score, trial.number, trial) for trial in trials if trial.score is not None]
    return [trial for _, _, trial in sorted(scored, key=lambda one: one[:2])]
