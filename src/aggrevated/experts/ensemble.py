"""Several experts as one: each state is advised by the one that is best there (MAMBA, Cheng, Kolobov and Agarwal 2020).

Its value is min_i V_i(s), the max-aggregation of that paper for costs. To follow at every state the one that is best
there costs no more than the best of them alone, and often less.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from aggrevated.actors.feed_forward import NumpyNetwork
from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError
from aggrevated.experts import DiscreteQExpert, Expert, StateValueExpert, get_discount


@dataclass(frozen=True)
class QExpertEnsemble:
    """Experts that know Q: Q(s, a) = min_i Q_i(s, a), and the one with the least V_i(s) = Q_i(s, π_i(s)) acts."""

    experts: tuple[DiscreteQExpert, ...]

    @property
    def name(self) -> str:
        return join_names(self.experts)

    @property
    def discount(self) -> float:
        return get_discount(self.experts[0])

    def q(self, states: Array) -> Array:
        """[n, A]: the cost-to-go of every action, if the best of them for it goes on."""
        least: Array = np.min([expert.q(states) for expert in self.experts], axis=0)
        return least

    def act(self, states: Array, t: int) -> Array:
        actions = np.stack([expert.act(states, t) for expert in self.experts])  # [experts, n]
        q = np.stack([expert.q(states) for expert in self.experts])
        return select_best(actions, np.take_along_axis(q, actions[..., None], axis=2)[..., 0])

    @property
    def networks(self) -> tuple[NumpyNetwork, ...]:
        return collect_ensemble_networks(self.experts)


@dataclass(frozen=True)
class StateValueExpertEnsemble:
    """Experts with critics: V(s) = min_i V_i(s), and the one whose it is acts."""

    experts: tuple[StateValueExpert, ...]

    @property
    def name(self) -> str:
        return join_names(self.experts)

    @property
    def discount(self) -> float:
        return self.experts[0].discount

    def v(self, states: Array) -> Array:
        """[n]: the cost-to-go of the best of them."""
        least: Array = np.min([expert.v(states) for expert in self.experts], axis=0)
        return least

    def act(self, states: Array, t: int) -> Array:
        actions = np.stack([expert.act(states, t) for expert in self.experts])  # [experts, n, ...]
        return select_best(actions, np.stack([expert.v(states) for expert in self.experts]))

    @property
    def networks(self) -> tuple[NumpyNetwork, ...]:
        return collect_ensemble_networks(self.experts)


def make_expert_ensemble(experts: Sequence[Expert]) -> QExpertEnsemble | StateValueExpertEnsemble:
    """The experts as one; a `UsageError` if it cannot be known which of them is best where."""
    with_q = tuple(expert for expert in experts if isinstance(expert, DiscreteQExpert))
    with_v = tuple(expert for expert in experts if isinstance(expert, StateValueExpert))
    if len(set(map(get_discount, experts))) > 1:
        raise UsageError(f"the costs of {join_names(experts)} are discounted differently; give experts of one discount")
    if experts and len(with_q) == len(experts):
        return QExpertEnsemble(with_q)
    if experts and len(with_v) == len(experts):
        return StateValueExpertEnsemble(with_v)
    raise UsageError(
        f"which of {join_names(experts) or 'no experts'} is best in a state is known only if each has a "
        "method q, or each "
        "a method v; give such experts, or one alone"
    )


def select_best(actions: Array, v: Array) -> Array:
    """[n, ...]: of actions [experts, n, ...] in each state those of the expert with the least V, `v` [experts, n]."""
    chosen: Array = actions[v.argmin(axis=0), np.arange(v.shape[1])]
    return chosen


def join_names(experts: Sequence[Expert]) -> str:
    """Their names as one, as the command line takes it."""
    return ",".join(expert.name for expert in experts)


def collect_ensemble_networks(experts: Sequence[Expert]) -> tuple[NumpyNetwork, ...]:
    """All that is in those that are made of networks."""
    return tuple(chain.from_iterable(getattr(expert, "networks", ()) for expert in experts))
