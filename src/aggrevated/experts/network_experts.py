"""Experts that are networks of a checkpoint: Q-network, categorical actor, actor with a critic, actor with Q."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aggrevated.actors.feed_forward import NumpyNetwork
from aggrevated.core.arrays import Array
from aggrevated.experts.checkpoint_layers import scale_action, unscale_action
from aggrevated.kernels.elementary_functions import tanh


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


class ActorWithCritic:
    """What experts with an actor and a critic of states have in common: V* is the critic's, with its sign turned."""

    actor: NumpyNetwork
    critic: NumpyNetwork
    observe: Callable[[Array], Array]

    def v(self, states: Array) -> Array:
        return -self.critic(self.observe(states))[:, 0]

    @property
    def networks(self) -> tuple[NumpyNetwork, ...]:
        return self.actor, self.critic


@dataclass(frozen=True)
class CategoricalExpert(ActorWithCritic):
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


@dataclass(frozen=True)
class ActorCriticExpert(ActorWithCritic):
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
