"""Line 9 of Algorithm 1: selection of the best policy on validation, the initial policy included."""

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
    """The best policy so far: a copy of its weights, and its score on validation."""

    best_return: float = -np.inf
    n: int = 0  # iteration of the best policy
    initial_return: float = -np.inf  # score of π_1
    latest_return: float = -np.inf  # score of the policy validated last
    weights: dict[str, Tensor] | None = None

    def update_best(self, policy: Policy, score: float, n: int) -> None:
        """Copy the weights of the policy if its score is higher than all before."""
        if self.weights is None:
            self.initial_return = score
        self.latest_return = score
        if score > self.best_return:
            self.best_return = score
            self.n = n
            self.weights = {name: tensor.detach().clone() for name, tensor in policy.state_dict().items()}


@dataclass(frozen=True)
class ValidationScore:
    """The result of validating a policy.

    Attributes:
        value: The score by which the best policy is selected; higher is better. For control, the mean return.
        steps: Simulator steps of the validation.
        diverged: Number of episodes that diverged and are not part of the value.
    """

    value: float
    steps: int = 0
    diverged: int = 0

    def __float__(self) -> float:
        return self.value


Validator = Callable[[Policy], ValidationScore | float]


def as_validation_score(score: ValidationScore | float) -> ValidationScore:
    """Return the score; a plain number is one that took no simulator steps."""
    return score if isinstance(score, ValidationScore) else ValidationScore(float(score))


@dataclass(frozen=True)
class EpisodeEvaluator:
    """A validator that returns the mean return −μ(π), estimated on one episode per seed.

    Attributes:
        simulator: The simulator of the episodes.
        seeds: uint64 [K], one per episode.
        engine: Runs the episodes; the score does not depend on it.
    """

    simulator: Simulator
    seeds: Array
    engine: Engine = IN_PROCESS

    def with_engine(self, engine: Engine) -> Self:
        """Return this evaluator with another engine."""
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
    """Return the returns of a policy or an expert, one episode per seed, and their simulator steps.

    Args:
        policy: A policy, with its present weights, or an expert.
        simulator: The simulator of the episodes.
        seeds: uint64 [K], one per episode.
        deterministic: Whether the policy takes its most likely action, instead of sampling.
        engine: Runs the episodes; the returns do not depend on it.

    Returns:
        The returns, one per episode that did not diverge (at most K), and the number of simulator steps.

    Raises:
        DataError: More than a tenth of the episodes diverged.
    """
    context = simulator if isinstance(simulator, CachedObject) else CachedObject(WorkerContext(simulator))
    if isinstance(policy, Policy):
        return collect_returns(engine, context, policy.actor(), seeds, deterministic)
    return collect_returns(engine, CachedObject(replace(context.value, expert=policy)), None, seeds, deterministic)


def evaluate_mean_return(
    policy: Policy | Expert,
    simulator: Simulator,
    seeds: Array,
    deterministic: bool = False,
    engine: Engine = IN_PROCESS,
) -> float:
    """Return the mean return −μ(π) of a policy or an expert, estimated on one episode per seed.

    Args:
        policy: A policy, with its present weights, or an expert.
        simulator: The simulator of the episodes.
        seeds: uint64 [K], one per episode.
        deterministic: Whether the policy takes its most likely action, instead of sampling.
        engine: Runs the episodes; the result does not depend on it.

    Returns:
        The mean over the episodes that did not diverge.

    Raises:
        UsageError: The policy cannot act in the simulator.
        DataError: More than a tenth of the episodes diverged.

    Example:
        >>> from aggrevated import CartPole, CategoricalHead, FeedForwardPolicy
        >>> policy = FeedForwardPolicy(4, CategoricalHead(2))
        >>> evaluate_mean_return(policy, CartPole(), np.arange(5, dtype=np.uint64)) >= 1
        True
    """
    if isinstance(policy, Policy):
        check_compatible(policy, simulator)
    return float(evaluate_returns(policy, simulator, seeds, deterministic, engine)[0].mean())
