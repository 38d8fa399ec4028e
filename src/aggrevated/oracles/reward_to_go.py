"""The learner's own realised cost-to-go: with it the same loop is REINFORCE or TNPG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from aggrevated.experts import Expert
from aggrevated.oracles import CostOracleSettings, CostToGo, Feedback, Oracle
from aggrevated.oracles.advantage import AdvantageOracle
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators import Simulator

if TYPE_CHECKING:
    from aggrevated.policies import Policy


@dataclass(frozen=True)
class RewardToGoOracle:
    """Σ_{i ≥ t} c_i, [K, T]: what happened after (s_t, a_t) in this very trajectory. No expert is asked."""

    is_per_trajectory: ClassVar[bool] = True

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        remaining = np.cumsum(trajectories.costs[:, ::-1], axis=1)[:, ::-1]
        values = (remaining * trajectories.mask).astype(np.float32)
        return CostToGo(values, trajectories.mask.astype(np.float32))


@dataclass(frozen=True)
class RewardToGoSettings(CostOracleSettings):
    """What the learner itself paid; the expert is not asked."""

    name = "reward-to-go"

    def get_feedback(self, finite: bool) -> Feedback:
        return Feedback.TAKEN_ACTION

    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        return AdvantageOracle(RewardToGoOracle()) if self.advantage else RewardToGoOracle()
