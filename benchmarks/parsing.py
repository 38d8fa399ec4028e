"""Training of the parser: transitions per second, and the time of the parts of an iteration."""

import interleave

# isort: split
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from time import perf_counter
from typing import Any

import numpy as np

from aggrevated.algorithm import aggrevated
from aggrevated.config.builder import build_algorithm_inputs
from aggrevated.config.resolver import resolve_config

KINDS = ("contextual", "lstm", "reactive")
PARTS = ("policy", "simulator", "oracle", "update")
# pages in an iteration
FEW = 16
MANY = 128


@dataclass
class Clock:
    """Seconds by part; a nested part counts for itself only."""

    spent: Counter[str] = field(default_factory=Counter)
    stack: list[str] = field(default_factory=list)
    since: float = 0.0

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with its time added to a part."""

        def call(*given: Any, **named: Any) -> Any:
            self.turn(part)
            try:
                return function(*given, **named)
            finally:
                self.turn(None)

        return call

    def turn(self, part: str | None) -> None:
        """Begin a part, or end the current one."""
        now = perf_counter()
        if self.stack:
            self.spent[self.stack[-1]] += now - self.since
        self.stack.append(part) if part else self.stack.pop()
        self.since = now


@dataclass
class Proxy:
    """An object with timed methods."""

    inner: Any
    clock: Clock
    part: str

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.inner, name)
        return self.clock.timed(self.part, value) if callable(value) and name != "system" else value


class Training:
    """Iterations of Algorithm 1 on generated pages."""

    def __init__(self, kind: str, pages: int) -> None:
        setup = build_algorithm_inputs(resolve_config("algebra", "aggrevated", policy=kind, start="random"))
        self.clock = Clock()
        self.learner = setup.learner
        make = setup.learner.policy.actor
        self.learner.policy.actor = self.clock.timed("policy", lambda: Proxy(make(), self.clock, "policy"))
        self.learner.update = self.clock.timed("update", self.learner.update)
        simulator = Proxy(setup.problem.simulator, self.clock, "simulator")
        oracle = self.clock.timed("oracle", setup.oracle)
        self.loop = aggrevated(self.learner, simulator, None, oracle, setup.loss, k=pages, validate=lambda policy: 0.0)
        self.pages = pages
        self.total = 0.0
        self.shares = []

    def __call__(self) -> int:
        """Run one iteration; return the number of its transitions."""
        before = self.learner.simulator_steps
        began = perf_counter()
        self.clock.spent.clear()
        next(islice(self.loop, 1))
        self.total = perf_counter() - began
        self.shares.append({part: self.clock.spent[part] / self.total for part in PARTS})
        return self.learner.simulator_steps - before


def main() -> None:
    """Measure both batch sizes of every policy, interleaved."""
    options = interleave.arguments(__doc__ or "", rounds=9, seconds=1.0)
    rows = []
    targets = []
    for kind in KINDS:
        few = Training(kind, FEW)
        many = Training(kind, MANY)
        spent = interleave.interleave({"few": few, "many": many}, options.rounds, options.seconds)
        case = f"{kind}, {FEW} pages"
        rows.append(interleave.summary(case, "aggrevated", "transitions/s", [1 / s for s in spent["few"]]))
        rows += [
            interleave.summary(case, part, "share of the time", [share[part] for share in few.shares[1:]])
            for part in PARTS
        ]
        rows.append(
            interleave.summary(f"{kind}, {MANY} pages", "aggrevated", "transitions/s", [1 / s for s in spent["many"]])
        )
        outside = [1 - share["policy"] - share["update"] for share in few.shares[1:]]
        targets.append(interleave.at_most(case, "share outside policy and update", 0.15, outside))
        growth = interleave.ratios(spent["many"], spent["few"])
        exponent = [1 + float(np.log(ratio) / np.log(MANY / FEW)) for ratio in growth]
        targets.append(interleave.at_most(f"{kind}, {FEW} to {MANY} pages", "exponent of the time", 1.05, exponent))
    interleave.report("Training the parser", rows, targets, options)


if __name__ == "__main__":
    main()
