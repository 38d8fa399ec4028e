"""Experts made of a network or function that returns Q-values of all actions."""

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
    """A network or function whose outputs are Q-values of all actions; pass it to `as_expert`.

    Args:
        given: an `nn.Module` or function from observations [n, O] to Q-values [n, A].
        rewards: True if the Q-values are rewards-to-go, as those of a DQN; False if they are costs-to-go.
        discount: discount γ of the Q-values.

    Example:
        >>> import numpy as np
        >>> from aggrevated import CartPole, QFunction, as_expert
        >>> push_right = QFunction(lambda observations: np.tile([0.0, 1.0], (len(observations), 1)))
        >>> expert = as_expert(push_right, CartPole(), "right")
        >>> expert.act(np.zeros((2, 4)), 0)
        array([1, 1])
    """

    given: Callable[[Any], Any]
    rewards: bool = True
    discount: float = 1.0


@dataclass(frozen=True)
class QFunctionExpert:
    """The expert π*(s) = argmin_a Q*(s, a) of a function of observations."""

    name: str
    outputs: Callable[[Array], Any]  # from float32 observations [n, O] to [n, A]
    simulator: Simulator
    actions: int
    rewards: bool
    discount: float

    def q(self, states: Array) -> Array:
        """Return Q*(s, a) [n, A] of every action."""
        part = f"the expert {self.name}"
        remedy = "fix its outputs"
        outputs = to_array(part, "outputs", self.outputs(observe_and_check(self.simulator, states)), remedy)
        values = check_numeric_array(part, "outputs", outputs, (len(states), self.actions), remedy)
        return -values if self.rewards else values

    def act(self, states: Array, t: int) -> Array:
        actions: Array = np.argmin(self.q(states), axis=1)
        return actions
