"""Experts made of an actor and a critic, as the paper's TRPO experts are."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aggrevated.actors.networks import NumpyNetwork
from aggrevated.core.arrays import Array
from aggrevated.experts.squashing import unscale_action
from aggrevated.kernels.elementary_functions import tanh


@dataclass(frozen=True)
class ActorCriticExpert:
    """π*(s) is the mean of a Gaussian policy, clipped to the action space; V* its critic."""

    name: str
    actor: NumpyNetwork
    critic: NumpyNetwork  # from the expert's observation to the expected rewards: its sign is turned here, once
    discount: float
    low: Array  # [A]
    high: Array
    observe: Callable[[Array], Array]  # what the expert sees of a state
    squash: bool = False  # by a tanh into the bounds, instead of clipping

    def act(self, states: Array, t: int) -> Array:
        if self.squash:
            return unscale_action(tanh(self.actor(self.observe(states))), self.low, self.high)
        return np.clip(self.actor(self.observe(states)), self.low, self.high)

    def v(self, states: Array) -> Array:
        return -self.critic(self.observe(states))[:, 0]

    @property
    def networks(self) -> tuple[NumpyNetwork, ...]:
        return self.actor, self.critic
