"""The variance-reduced form of any oracle: subtract what the state costs whatever is done there (Eq. 12 and 13)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.oracles import CostToGo, Oracle, is_per_trajectory
from aggrevated.rollout.trajectories import Trajectories

if TYPE_CHECKING:
    from aggrevated.policies import Policy


@dataclass(frozen=True)
class AdvantageOracle:
    """A = Q − V. V(s_t) = min_a Q(s_t, a) where every action is known; else the other trajectories' mean at time t.

    Neither depends on the action taken, so the gradient stays unbiased.
    """

    oracle: Oracle

    @property
    def all_actions(self) -> bool:
        """Whether the cost-to-go of every action is known to be told."""
        return bool(getattr(self.oracle, "all_actions", False))

    @property
    def is_per_trajectory(self) -> bool:
        return is_per_trajectory(self.oracle) and self.all_actions  # else it looks at the other trajectories

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        q = self.oracle(trajectories, policy)
        if q.has_all_actions:
            return replace(q, values=q.values - min_cost(q.values, trajectories.action_mask), advantage=True)
        return replace(q, values=(q.values - leave_one_out_mean(q.values, trajectories.mask)) * trajectories.mask)


@dataclass(frozen=True)
class TakenActionOracle:
    """Only the action taken, [K, T], of an oracle that knows every action: A*(s_t, a_t) from A*(s_t, ·)."""

    oracle: Oracle

    @property
    def is_per_trajectory(self) -> bool:
        return is_per_trajectory(self.oracle)

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        q = self.oracle(trajectories, policy)
        assert q.has_all_actions, "the oracle knows the taken action only; it needs no Taken around it"
        return replace(q, values=np.take_along_axis(q.values, trajectories.actions[..., None], axis=2)[..., 0])


def min_cost(values: Array, legal: Array) -> Array:
    """[K, T, 1]: min_a Q(s_t, a), over the legal actions where there is a restriction."""
    if legal.shape[2]:
        values = np.where(legal | ~legal.any(axis=2, keepdims=True), values, np.inf)
    least: Array = values.min(axis=2, keepdims=True)
    return least


def leave_one_out_mean(values: Array, mask: Array) -> Array:
    """[K, T]: the mean of `values` at time t over the other trajectories still running; 0 where there is none."""
    others = mask.sum(axis=0) - mask  # [K, T]
    total = (values * mask).sum(axis=0) - values * mask
    mean: Array = np.divide(total, others, out=np.zeros_like(values), where=others > 0)
    return mean
