"""Line 9 of Algorithm 1: the best hypothesis on validation, the first policy included."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from torch import Tensor

from aggrevated.collection import WorkerContext, collect_returns
from aggrevated.compatibility import check_compatible
from aggrevated.core.arrays import Array
from aggrevated.engines import IN_PROCESS, Engine
from aggrevated.engines.serialization import CachedObject
from aggrevated.experts import Expert
from aggrevated.policies import Policy
from aggrevated.simulators import Simulator


@dataclass
class BestPolicy:
    """The best policy so far: a copy of its weights, never a reference, and the return that it was chosen for."""

    best_return: float = -np.inf
    n: int = 0
    initial_return: float = -np.inf  # the return of π_1
    latest_return: float = -np.inf  # the return of the last that was validated
    weights: dict[str, Tensor] | None = None

    def update_best(self, policy: Policy, returned: float, n: int) -> None:
        """Keep this policy if it did better than all before it."""
        if self.weights is None:
            self.initial_return = returned
        self.latest_return = returned
        if returned > self.best_return:
            self.best_return = returned
            self.n = n
            self.weights = {name: tensor.detach().clone() for name, tensor in policy.state_dict().items()}


@dataclass(frozen=True)
class ValidationScore:
    """The result of validating a policy.

    Attributes:
        value: What the best policy is selected by: the larger, the better. For control, the mean return.
        steps: Simulator steps that the validation took.
        diverged: Episodes that diverged and are not part of the value.
    """

    value: float
    steps: int = 0
    diverged: int = 0


Validator = Callable[[Policy], ValidationScore | float]


def as_validation_score(score: ValidationScore | float) -> ValidationScore:
    """Return the score; a plain number is one that took no simulator steps."""
    return score if isinstance(score, ValidationScore) else ValidationScore(float(score))


@dataclass(frozen=True)
class EpisodeEvaluator:
    """−μ(π), estimated on one episode of the simulator per seed, by an engine."""

    simulator: Simulator
    seeds: Array
    engine: Engine = IN_PROCESS

    def with_engine(self, engine: Engine) -> Self:
        """The same by another engine."""
        return replace(self, engine=engine)

    def __call__(self, policy: Policy | Expert) -> ValidationScore:
        returns, steps = evaluate_returns(policy, self._context, self.seeds, engine=self.engine)
        return ValidationScore(float(returns.mean()), steps, len(self.seeds) - len(returns))

    @cached_property
    def _context(self) -> CachedObject[WorkerContext]:
        return CachedObject(WorkerContext(self.simulator))


def evaluate_returns(
    policy: Policy | Expert,
    simulator: Simulator | CachedObject[WorkerContext],
    seeds: Array,
    deterministic: bool = False,
    engine: Engine = IN_PROCESS,
) -> tuple[Array, int]:
    """(the return of each episode [K], all simulator steps) of a policy as it is, or of an expert.

    Episodes that diverged have no return: they are as many as returns are missing, and at most a tenth.
    """
    place = simulator if isinstance(simulator, CachedObject) else CachedObject(WorkerContext(simulator))
    if isinstance(policy, Policy):
        return collect_returns(engine, place, policy.actor(), seeds, deterministic)
    return collect_returns(engine, CachedObject(replace(place.value, expert=policy)), None, seeds, deterministic)


def evaluate_mean_return(
    policy: Policy | Expert,
    simulator: Simulator,
    seeds: Array,
    deterministic: bool = False,
    engine: Engine = IN_PROCESS,
) -> float:
    """−μ(π), estimated on one episode per seed."""
    if isinstance(policy, Policy):
        check_compatible(policy, simulator)
    return float(evaluate_returns(policy, simulator, seeds, deterministic, engine)[0].mean())
