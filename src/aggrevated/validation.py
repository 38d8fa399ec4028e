"""Line 9 of Algorithm 1: the best hypothesis on validation, the first policy included."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from torch import Tensor

from aggrevated.collection import Place, returns_over
from aggrevated.compatibility import agree
from aggrevated.core.arrays import Array
from aggrevated.engines import HERE, Engine
from aggrevated.engines.serialization import Kept
from aggrevated.experts import Expert
from aggrevated.policies import Policy
from aggrevated.simulators import Simulator


@dataclass
class Best:
    """The best policy so far: a copy of its weights, never a reference, and the return that it was chosen for."""

    returned: float = -np.inf
    n: int = 0
    first: float = -np.inf  # the return of π_1
    latest: float = -np.inf  # the return of the last that was validated
    weights: dict[str, Tensor] | None = None

    def challenge(self, policy: Policy, returned: float, n: int) -> None:
        """Keep this policy if it did better than all before it."""
        if self.weights is None:
            self.first = returned
        self.latest = returned
        if returned > self.returned:
            self.returned, self.n = returned, n
            self.weights = {name: tensor.detach().clone() for name, tensor in policy.state_dict().items()}


class Validated(float):
    """How good a policy is, with the simulator steps that it took to know, and the episodes that diverged."""

    steps: int
    diverged: int

    def __new__(cls, value: float, steps: int = 0, diverged: int = 0) -> Self:
        self = super().__new__(cls, value)
        self.steps, self.diverged = steps, diverged
        return self


@dataclass(frozen=True)
class OnEpisodes:
    """−μ(π), estimated on one episode of the simulator per seed, by an engine."""

    simulator: Simulator
    seeds: Array
    engine: Engine = HERE

    def over(self, engine: Engine) -> Self:
        """The same by another engine."""
        return replace(self, engine=engine)

    def __call__(self, policy: Policy | Expert) -> Validated:
        returns, steps = returns_of(policy, self._kept, self.seeds, engine=self.engine)
        return Validated(returns.mean(), steps, len(self.seeds) - len(returns))

    @cached_property
    def _kept(self) -> Kept[Place]:
        return Kept(Place(self.simulator))


def returns_of(
    policy: Policy | Expert,
    simulator: Simulator | Kept[Place],
    seeds: Array,
    deterministic: bool = False,
    engine: Engine = HERE,
) -> tuple[Array, int]:
    """(the return of each episode [K], all simulator steps) of a policy as it is, or of an expert.

    Episodes that diverged have no return: they are as many as returns are missing, and at most a tenth.
    """
    place = simulator if isinstance(simulator, Kept) else Kept(Place(simulator))
    if isinstance(policy, Policy):
        return returns_over(engine, place, policy.actor(), seeds, deterministic)
    return returns_over(engine, Kept(replace(place.value, expert=policy)), None, seeds, deterministic)


def mean_return(
    policy: Policy | Expert, simulator: Simulator, seeds: Array, deterministic: bool = False, engine: Engine = HERE
) -> float:
    """−μ(π), estimated on one episode per seed."""
    if isinstance(policy, Policy):
        agree(policy, simulator)
    return float(returns_of(policy, simulator, seeds, deterministic, engine)[0].mean())
