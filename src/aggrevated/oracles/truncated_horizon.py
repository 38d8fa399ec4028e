"""Truncated horizon: the learner's own costs for k steps, then V*, as in THOR (Sun, Bagnell and Boots, 2018).

k = 1 is AggreVaTeD with a critic; k = H is reinforcement learning with V* as baseline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.settings import at_least, setting
from aggrevated.experts import DiscreteQExpert, Expert, StateValueExpert, get_discount
from aggrevated.experts.checked import query_q_values, query_state_values
from aggrevated.oracles import (
    CostOracleSettings,
    CostToGo,
    Feedback,
    Oracle,
    add_trajectory_to_errors,
    check_expert_has,
    scatter_to_steps,
)
from aggrevated.oracles.advantage import min_cost
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators import Simulator

if TYPE_CHECKING:
    from aggrevated.policies import Policy


@dataclass(frozen=True)
class TruncatedHorizonOracle:
    """Oracle of Σ_{i<k} γ^i c_{t+i} + γ^k V*(s_{t+k}), [K, T]; minus V*(s_t) with `advantage`.

    The advantage is the sum of k shaped costs c + γ V*(s') − V*(s). V* is 0 after an episode that ended
    early. The state after the horizon is not recorded: sums end with V* of the last state, and the last step
    has weight 0.

    Args:
        expert: expert with V* or Q*(s, ·).
        k: number of the learner's own steps before V*.
        advantage: subtract V*(s_t).
    """

    expert: StateValueExpert | DiscreteQExpert
    k: int = 1
    advantage: bool = True
    is_per_trajectory: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_expert_has(self.expert, "v", "q")

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        v = query_v_star(self.expert, trajectories)
        last = trajectories.horizon - 1
        q = v
        for _ in range(min(self.k, v.shape[1])):
            following = np.pad(q[:, 1:], ((0, 0), (0, 1)))
            q = trajectories.costs + get_discount(self.expert) * following
            q[:, last:] = v[:, last:]
        values = (q - (v if self.advantage else 0.0)) * trajectories.mask
        weight = trajectories.by_learner.astype(np.float32)
        weight[:, last:] = 0.0
        return CostToGo(values.astype(np.float32), weight, queries=trajectories.steps, advantage=self.advantage)


def query_v_star(expert: StateValueExpert | DiscreteQExpert, trajectories: Trajectories) -> Array:
    """Return V*(s_t) [K, T], or the minimum of the legal Q* without a critic; 0 where no step was taken."""
    states = trajectories.states[trajectories.mask]
    mask = trajectories.mask
    with add_trajectory_to_errors(trajectories):
        if isinstance(expert, StateValueExpert):
            v = np.zeros(mask.shape)
            v[mask] = query_state_values(expert, states)
            return v
        q = scatter_to_steps(trajectories, query_q_values(expert, states))
        minimum: Array = min_cost(q, trajectories.action_mask)[..., 0]
    return minimum.astype(np.float64)


@dataclass(frozen=True)
class TruncatedHorizonSettings(CostOracleSettings):
    """The learner's own costs for k steps, then V*."""

    name = "truncated-horizon"
    planning_horizon: int = setting(
        10,
        "k: number of the learner's own steps before V*; k >= H is reinforcement learning.",
        at_least(1),
    )

    def get_feedback(self, finite: bool) -> Feedback:
        return Feedback.TAKEN_ACTION

    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        if not isinstance(expert, StateValueExpert | DiscreteQExpert):
            raise self.make_missing_capability_error(expert, "v or q")
        return TruncatedHorizonOracle(expert, self.planning_horizon, self.advantage)
