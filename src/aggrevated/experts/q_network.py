"""Experts made of a Q-network, as the paper's DQN experts are."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aggrevated.actors.networks import NumpyNetwork
from aggrevated.core.arrays import Array


@dataclass(frozen=True)
class QNetworkExpert:
    """π*(s) = argmin_a Q*(s, a). The network was trained on rewards; its sign is turned here, once."""

    name: str
    network: NumpyNetwork  # from the expert's observation to the expected rewards of each action
    observe: Callable[[Array], Array]  # what the expert sees of a state
    discount: float = 1.0  # of Q*

    def q(self, states: Array) -> Array:
        """Q*(s, a) for every action, [n, A]."""
        return -self.network(self.observe(states))

    def act(self, states: Array, t: int) -> Array:
        actions: Array = np.argmin(self.q(states), axis=1)
        return actions

    @property
    def networks(self) -> tuple[NumpyNetwork, ...]:
        return (self.network,)
