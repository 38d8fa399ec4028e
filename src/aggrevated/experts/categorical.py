"""Experts made of an actor that chooses among finitely many, and a critic: PPO, A2C and TRPO with discrete actions."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aggrevated.actors.networks import NumpyNetwork
from aggrevated.core.arrays import Array


@dataclass(frozen=True)
class CategoricalExpert:
    """π*(s) is the most likely action; where it is several choices at once, the most likely of each."""

    name: str
    actor: NumpyNetwork  # to a logit for each choice
    critic: NumpyNetwork  # to the expected rewards: its sign is turned here, once
    choices: tuple[int, ...]  # how many there are of each
    discount: float
    observe: Callable[[Array], Array]  # what the expert sees of a state

    def act(self, states: Array, t: int) -> Array:
        logits = np.split(self.actor(self.observe(states)), np.cumsum(self.choices)[:-1], axis=1)
        chosen = tuple(part.argmax(axis=1) for part in logits)
        numbers: Array = np.ravel_multi_index(chosen, self.choices)
        return numbers

    def v(self, states: Array) -> Array:
        return -self.critic(self.observe(states))[:, 0]

    @property
    def networks(self) -> tuple[NumpyNetwork, ...]:
        return self.actor, self.critic
