"""Experts made of networks: Q-network, categorical actor, actor with a critic, actor with Q."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aggrevated.actors.feed_forward import NumpyNetwork
from aggrevated.core.arrays import Array
from aggrevated.experts.checkpoint_layers import scale_action, unscale_action
from aggrevated.kernels.elementary_functions import tanh


@dataclass(frozen=True)
class QNetworkExpert:
    """The expert π*(s) = argmin_a Q*(s, a), where Q* is the negated output of a network for rewards."""

    name: str
    network: NumpyNetwork  # from the expert's observation to the expected rewards of each action
    observe: Callable[[Array], Array]  # from states to the expert's observations
    discount: float = 1.0  # of Q*

    def q(self, states: Array) -> Array:
        """Return Q*(s, a) [n, A] of every action."""
        return -self.network(self.observe(states))

    def act(self, states: Array, t: int) -> Array:
        actions: Array = np.argmin(self.q(states), axis=1)
        return actions

    @property
    def networks(self) -> tuple[NumpyNetwork, ...]:
        return (self.network,)


class ActorWithCritic:
    """Base of experts with an actor and a critic, where V* is the critic's negated output."""

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
    """The expert π*(s) that takes the most likely action, or the most likely option of each choice."""

    name: str
    actor: NumpyNetwork  # to a logit for each option
    critic: NumpyNetwork  # to the expected rewards
    choices: tuple[int, ...]  # number of options of each choice
    discount: float
    observe: Callable[[Array], Array]  # from states to the expert's observations

    def act(self, states: Array, t: int) -> Array:
        logits = np.split(self.actor(self.observe(states)), np.cumsum(self.choices)[:-1], axis=1)
        options = tuple(part.argmax(axis=1) for part in logits)
        actions: Array = np.ravel_multi_index(options, self.choices)
        return actions


@dataclass(frozen=True)
class ActorCriticExpert(ActorWithCritic):
    """The expert π*(s) that takes the mean of a Gaussian policy, clipped to the action space."""

    name: str
    actor: NumpyNetwork
    critic: NumpyNetwork  # from the expert's observation to the expected rewards
    discount: float
    low: Array  # [A]
    high: Array  # [A]
    observe: Callable[[Array], Array]  # from states to the expert's observations
    squash: bool = False  # to the bounds by tanh, instead of clipping

    def act(self, states: Array, t: int) -> Array:
        if self.squash:
            return unscale_action(tanh(self.actor(self.observe(states))), self.low, self.high)
        return np.clip(self.actor(self.observe(states)), self.low, self.high)


@dataclass(frozen=True)
class ActorQExpert:
    """The expert π*(s) = tanh of the actor's output, scaled to the action space; Q* of the most pessimistic critic.

    The critics return expected rewards, so Q* is the largest of their negated outputs.
    """

    name: str
    actor: NumpyNetwork
    critics: tuple[NumpyNetwork, ...]  # from observation and action in [−1, 1] to the expected rewards
    discount: float
    low: Array  # [A]
    high: Array  # [A]
    observe: Callable[[Array], Array]  # from states to the expert's observations
    limit: float = np.inf  # to which the input of tanh is clipped

    def act(self, states: Array, t: int) -> Array:
        means = self.actor(self.observe(states))
        return unscale_action(tanh(means.clip(-self.limit, self.limit)), self.low, self.high)

    def q_of(self, states: Array, actions: Array) -> Array:
        """Return the discounted cost-to-go [n] of the actions [n, A] in the states [n, ...]."""
        parts = [self.observe(states), scale_action(actions, self.low, self.high)]
        inputs = np.concatenate(parts, axis=1).astype(np.float32)
        costs: Array = np.max([-critic(inputs)[:, 0] for critic in self.critics], axis=0)
        return costs

    @property
    def networks(self) -> tuple[NumpyNetwork, ...]:
        return self.actor, *self.critics
