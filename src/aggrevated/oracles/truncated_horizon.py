"""Truncated horizon: the learner's own costs for k steps, then V*. THOR (Sun, Bagnell and Boots, 2018).

k = 1 is AggreVaTeD with a critic; k = H is reinforcement learning, with V* as its baseline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.settings import at_least, setting
from aggrevated.experts import CriticExpert, Expert, ValueExpert, discount_of
from aggrevated.experts.checked import costs_of, values_of
from aggrevated.oracles import CostSettings, CostToGo, Oracle, Tells, placed_in, require_method, scatter
from aggrevated.oracles.advantage import cheapest
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators import Simulator

if TYPE_CHECKING:
    from aggrevated.policies import Policy


@dataclass(frozen=True)
class Truncated:
    """Σ_{i<k} γ^i c_{t+i} + γ^k V*(s_{t+k}), [K, T]; with `advantage` less V*(s_t).

    That is the sum of k shaped costs c + γ V*(s') − V*(s). After an episode that ended early V* is 0. Where one that
    ran to the horizon led is not on record: sums end at its last state, with V* of that, and its last step is left out.
    """

    expert: CriticExpert | ValueExpert
    k: int = 1
    advantage: bool = True
    alone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_method(self.expert, "v", "q")

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        v, last = v_star(self.expert, trajectories), trajectories.horizon - 1
        ahead = v
        for _ in range(min(self.k, v.shape[1])):
            following = np.pad(ahead[:, 1:], ((0, 0), (0, 1)))
            ahead = trajectories.costs + discount_of(self.expert) * following
            ahead[:, last:] = v[:, last:]
        values = (ahead - (v if self.advantage else 0.0)) * trajectories.mask
        weight = trajectories.by_learner.astype(np.float32)
        weight[:, last:] = 0.0
        told = values.astype(np.float32)
        return CostToGo(told, weight, queries=trajectories.steps, advantage=self.advantage)


def v_star(expert: CriticExpert | ValueExpert, trajectories: Trajectories) -> Array:
    """V*(s_t), [K, T], 0 where no step was taken; of an expert without a critic it is the least of the legal Q*."""
    states, mask = trajectories.states[trajectories.mask], trajectories.mask
    with placed_in(trajectories):
        if isinstance(expert, CriticExpert):
            v = np.zeros(mask.shape)
            v[mask] = values_of(expert, states)
            return v
        least: Array = cheapest(scatter(trajectories, costs_of(expert, states)), trajectories.legal)[..., 0]
    return least.astype(np.float64)


@dataclass(frozen=True)
class TruncatedSettings(CostSettings):
    """The learner's own costs for k steps, then V*."""

    name = "truncated"
    planning_horizon: int = setting(
        10,
        "k: after how many steps V* stands for all that follows; from H on it is reinforcement learning.",
        at_least(1),
    )

    def tells(self, finite: bool) -> Tells:
        return Tells.TAKEN_ACTION

    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        if not isinstance(expert, CriticExpert | ValueExpert):
            raise self.cannot_ask(expert, "v or q")
        return Truncated(expert, self.planning_horizon, self.advantage)
