"""Several experts as one: each state is advised by the one that is best there (MAMBA, Cheng, Kolobov and Agarwal 2020).

Its value is min_i V_i(s), the max-aggregation of that paper for costs. To follow at every state the one that is best
there costs no more than the best of them alone, and often less.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from aggrevated.actors.networks import NumpyNetwork
from aggrevated.core.arrays import Array
from aggrevated.errors import UsageError
from aggrevated.experts import CriticExpert, Expert, ValueExpert, discount_of


@dataclass(frozen=True)
class SeveralWithQ:
    """Experts that know Q: Q(s, a) = min_i Q_i(s, a), and the one with the least V_i(s) = Q_i(s, π_i(s)) acts."""

    experts: tuple[ValueExpert, ...]

    @property
    def name(self) -> str:
        return joined(self.experts)

    @property
    def discount(self) -> float:
        return discount_of(self.experts[0])

    def q(self, states: Array) -> Array:
        """[n, A]: the cost-to-go of every action, if the best of them for it goes on."""
        least: Array = np.min([expert.q(states) for expert in self.experts], axis=0)
        return least

    def act(self, states: Array, t: int) -> Array:
        actions = np.stack([expert.act(states, t) for expert in self.experts])  # [experts, n]
        q = np.stack([expert.q(states) for expert in self.experts])
        return of_the_best(actions, np.take_along_axis(q, actions[..., None], axis=2)[..., 0])

    @property
    def networks(self) -> tuple[NumpyNetwork, ...]:
        return networks_of(self.experts)


@dataclass(frozen=True)
class SeveralWithV:
    """Experts with critics: V(s) = min_i V_i(s), and the one whose it is acts."""

    experts: tuple[CriticExpert, ...]

    @property
    def name(self) -> str:
        return joined(self.experts)

    @property
    def discount(self) -> float:
        return self.experts[0].discount

    def v(self, states: Array) -> Array:
        """[n]: the cost-to-go of the best of them."""
        least: Array = np.min([expert.v(states) for expert in self.experts], axis=0)
        return least

    def act(self, states: Array, t: int) -> Array:
        actions = np.stack([expert.act(states, t) for expert in self.experts])  # [experts, n, ...]
        return of_the_best(actions, np.stack([expert.v(states) for expert in self.experts]))

    @property
    def networks(self) -> tuple[NumpyNetwork, ...]:
        return networks_of(self.experts)


def several(experts: Sequence[Expert]) -> SeveralWithQ | SeveralWithV:
    """The experts as one; a `UsageError` if it cannot be known which of them is best where."""
    with_q = tuple(expert for expert in experts if isinstance(expert, ValueExpert))
    with_v = tuple(expert for expert in experts if isinstance(expert, CriticExpert))
    if len(set(map(discount_of, experts))) > 1:
        raise UsageError(f"the costs of {joined(experts)} are discounted differently; give experts of one discount")
    if experts and len(with_q) == len(experts):
        return SeveralWithQ(with_q)
    if experts and len(with_v) == len(experts):
        return SeveralWithV(with_v)
    raise UsageError(
        f"which of {joined(experts) or 'no experts'} is best in a state is known only if each has a method q, or each "
        "a method v; give such experts, or one alone"
    )


def of_the_best(actions: Array, v: Array) -> Array:
    """[n, ...]: of actions [experts, n, ...] in each state those of the expert with the least V, `v` [experts, n]."""
    chosen: Array = actions[v.argmin(axis=0), np.arange(v.shape[1])]
    return chosen


def joined(experts: Sequence[Expert]) -> str:
    """Their names as one, as the command line takes it."""
    return ",".join(expert.name for expert in experts)


def networks_of(experts: Sequence[Expert]) -> tuple[NumpyNetwork, ...]:
    """All that is in those that are made of networks."""
    return tuple(chain.from_iterable(getattr(expert, "networks", ()) for expert in experts))
