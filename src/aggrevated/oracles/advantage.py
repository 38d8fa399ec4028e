"""Advantages from the costs of any oracle, to reduce variance (Eq. 12 and 13)."""

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
    """Oracle of advantages A = Q − V.

    V(s_t) is min_a Q(s_t, a) if the costs of all actions are known, else the mean over the other trajectories
    at time t. Neither depends on the action taken, so the gradient stays unbiased.

    Args:
        oracle: the oracle of Q.
    """

    oracle: Oracle

    @property
    def all_actions(self) -> bool:
        """Return whether the oracle is known to return the costs of all actions."""
        return bool(getattr(self.oracle, "all_actions", False))

    @property
    def is_per_trajectory(self) -> bool:
        """Return whether the advantages of a trajectory depend on no other trajectory."""
        return is_per_trajectory(self.oracle) and self.all_actions

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        q = self.oracle(trajectories, policy)
        if q.has_all_actions:
            return replace(q, values=q.values - min_cost(q.values, trajectories.action_mask), advantage=True)
        return replace(q, values=(q.values - leave_one_out_mean(q.values, trajectories.mask)) * trajectories.mask)


@dataclass(frozen=True)
class TakenActionOracle:
    """Oracle of the action taken, [K, T], from an oracle of all actions: A*(s_t, a_t) from A*(s_t, ·).

    Args:
        oracle: an oracle that returns the costs of all actions.
    """

    oracle: Oracle

    @property
    def is_per_trajectory(self) -> bool:
        """Return whether the wrapped oracle needs one trajectory at a time only."""
        return is_per_trajectory(self.oracle)

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        q = self.oracle(trajectories, policy)
        assert q.has_all_actions, "the oracle already returns the taken action only; remove TakenActionOracle"
        return replace(q, values=np.take_along_axis(q.values, trajectories.actions[..., None], axis=2)[..., 0])


def min_cost(values: Array, legal: Array) -> Array:
    """Return min_a Q(s_t, a), [K, T, 1], over the legal actions if there is a mask."""
    if legal.shape[2]:
        values = np.where(legal | ~legal.any(axis=2, keepdims=True), values, np.inf)
    minimum: Array = values.min(axis=2, keepdims=True)
    return minimum


def leave_one_out_mean(values: Array, mask: Array) -> Array:
    """Return the mean of `values` [K, T] at time t over the other running trajectories; 0 without any."""
    n_others = mask.sum(axis=0) - mask
    total = (values * mask).sum(axis=0) - values * mask
    mean: Array = np.divide(total, n_others, out=np.zeros_like(values), where=n_others > 0)
    return mean
