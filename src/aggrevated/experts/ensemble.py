"""Ensembles of experts: in each state the best expert acts (MAMBA, Cheng, Kolobov and Agarwal 2020).

The value of the ensemble is min_i V_i(s), the max-aggregation of that paper for costs. Acting with the best
expert of each state costs at most as much as the best single expert.
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
    """Experts that know Q: Q(s, a) = min_i Q_i(s, a); the one with the least V_i(s) = Q_i(s, π_i(s)) acts."""

    experts: tuple[DiscreteQExpert, ...]

    @property
    def name(self) -> str:
        return join_names(self.experts)

    @property
    def discount(self) -> float:
        return get_discount(self.experts[0])

    def q(self, states: Array) -> Array:
        """Return the cost-to-go [n, A] of every action: the least over the experts."""
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
    """Experts with critics: V(s) = min_i V_i(s); the expert with the least V_i(s) acts."""

    experts: tuple[StateValueExpert, ...]

    @property
    def name(self) -> str:
        return join_names(self.experts)

    @property
    def discount(self) -> float:
        return self.experts[0].discount

    def v(self, states: Array) -> Array:
        """Return the cost-to-go [n] of the best expert of each state."""
        least: Array = np.min([expert.v(states) for expert in self.experts], axis=0)
        return least

    def act(self, states: Array, t: int) -> Array:
        actions = np.stack([expert.act(states, t) for expert in self.experts])  # [experts, n, ...]
        return select_best(actions, np.stack([expert.v(states) for expert in self.experts]))

    @property
    def networks(self) -> tuple[NumpyNetwork, ...]:
        return collect_ensemble_networks(self.experts)


def make_expert_ensemble(experts: Sequence[Expert]) -> QExpertEnsemble | StateValueExpertEnsemble:
    """Return one expert that follows the best of several experts in each state.

    Args:
        experts: experts that all have `q`, or all have `v`, with one common discount.

    Returns:
        An expert with `q` if all have it, else with `v`.

    Raises:
        UsageError: the discounts differ, or some expert has neither `q` nor `v`.

    Example:
        >>> from aggrevated import CartPole, load_expert, make_expert_ensemble
        >>> expert = load_expert("cartpole", CartPole())
        >>> make_expert_ensemble([expert, expert]).name
        'cartpole,cartpole'
    """
    with_q = tuple(expert for expert in experts if isinstance(expert, DiscreteQExpert))
    with_v = tuple(expert for expert in experts if isinstance(expert, StateValueExpert))
    if len(set(map(get_discount, experts))) > 1:
        raise UsageError(f"the experts {join_names(experts)} have different discounts; pass experts of one discount")
    if experts and len(with_q) == len(experts):
        return QExpertEnsemble(with_q)
    if experts and len(with_v) == len(experts):
        return StateValueExpertEnsemble(with_v)
    raise UsageError(
        f"cannot compare the experts {join_names(experts) or '(none)'} in a state: all need a method q, or all a "
        "method v; pass such experts, or one alone"
    )


def select_best(actions: Array, v: Array) -> Array:
    """Return, of actions [experts, n, ...], those of the expert with the least v [experts, n] in each state."""
    best_actions: Array = actions[v.argmin(axis=0), np.arange(v.shape[1])]
    return best_actions


def join_names(experts: Sequence[Expert]) -> str:
    """Return the names separated by commas, as `--expert` accepts them."""
    return ",".join(expert.name for expert in experts)


def collect_ensemble_networks(experts: Sequence[Expert]) -> tuple[NumpyNetwork, ...]:
    """Return the networks of all experts that have some."""
    return tuple(chain.from_iterable(getattr(expert, "networks", ()) for expert in experts))
