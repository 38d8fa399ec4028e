"""The learner's own reward-to-go: with it Algorithm 1 is REINFORCE or TNPG."""

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
    """Oracle of the observed costs Σ_{i ≥ t} c_i, [K, T]; the expert is not queried."""

    is_per_trajectory: ClassVar[bool] = True

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        remaining = np.cumsum(trajectories.costs[:, ::-1], axis=1)[:, ::-1]
        values = (remaining * trajectories.mask).astype(np.float32)
        return CostToGo(values, trajectories.mask.astype(np.float32))


@dataclass(frozen=True)
class RewardToGoSettings(CostOracleSettings):
    """The learner's own reward-to-go; the expert is not queried."""

    name = "reward-to-go"

    def get_feedback(self, finite: bool) -> Feedback:
        return Feedback.TAKEN_ACTION

    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        return AdvantageOracle(RewardToGoOracle()) if self.advantage else RewardToGoOracle()
