"""Experts made of an actor and of critics that judge actions: SAC, TD3, DDPG and TQC."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aggrevated.actors.networks import NumpyNetwork
from aggrevated.core.arrays import Array
from aggrevated.experts.squashing import scale_action, unscale_action
from aggrevated.kernels.elementary_functions import tanh


@dataclass(frozen=True)
class ActorQExpert:
    """π*(s) is the tanh of the actor's output, scaled to the action space; Q*(s, a) of the critic that hopes least."""

    name: str
    actor: NumpyNetwork
    critics: tuple[NumpyNetwork, ...]  # from observation and action in [−1, 1] to the expected rewards
    discount: float
    low: Array  # [A]
    high: Array
    observe: Callable[[Array], Array]  # what the expert sees of a state
    limit: float = np.inf  # of what tanh is taken of

    def act(self, states: Array, t: int) -> Array:
        means = self.actor(self.observe(states))
        return unscale_action(tanh(means.clip(-self.limit, self.limit)), self.low, self.high)

    def q_of(self, states: Array, actions: Array) -> Array:
        """[n]: the discounted cost-to-go of the actions [n, A] in the states [n, ...]."""
        seen = np.concatenate([self.observe(states), scale_action(actions, self.low, self.high)], axis=1).astype(
            np.float32
        )
        costs: Array = np.max([-critic(seen)[:, 0] for critic in self.critics], axis=0)
        return costs

    @property
    def networks(self) -> tuple[NumpyNetwork, ...]:
        return self.actor, *self.critics
