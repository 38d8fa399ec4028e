"""A network or a function that tells what every action is worth, as an expert that knows Q*."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.user_code import check_numeric_array, to_array
from aggrevated.simulators import Simulator
from aggrevated.simulators.checked import observe_and_check


@dataclass(frozen=True)
class QFunction:
    """Says of an `nn.Module`, or of a function of observations [n, O], that it gives Q of every action, [n, A].

    With `rewards` it is rewards-to-go, of which more is better, as a DQN's are; else costs-to-go. `discount` is its γ.
    """

    given: Callable[[Any], Any]
    rewards: bool = True
    discount: float = 1.0


@dataclass(frozen=True)
class QFunctionExpert:
    """π*(s) = argmin_a Q*(s, a), of a function of observations."""

    name: str
    outputs: Callable[[Array], Any]  # from float32 observations [n, O] to [n, A]
    simulator: Simulator
    actions: int
    rewards: bool
    discount: float

    def q(self, states: Array) -> Array:
        """Q*(s, a) for every action, [n, A]."""
        part = f"the expert {self.name}"
        mend = "mend its outputs"
        given = to_array(part, "outputs", self.outputs(observe_and_check(self.simulator, states)), mend)
        values = check_numeric_array(part, "outputs", given, (len(states), self.actions), mend)
        return -values if self.rewards else values

    def act(self, states: Array, t: int) -> Array:
        actions: Array = np.argmin(self.q(states), axis=1)
        return actions
