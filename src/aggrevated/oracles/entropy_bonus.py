"""An entropy bonus, for as long as a policy must not be sure of itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aggrevated.core.schedules import Schedule, evaluate_schedule
from aggrevated.oracles import CostToGo, Oracle, is_per_trajectory
from aggrevated.rollout.trajectories import Trajectories

if TYPE_CHECKING:
    from aggrevated.policies import Policy


@dataclass(frozen=True)
class EntropyBonusOracle:
    """The oracle's cost-to-go, less β_n for every nat of the policy's entropy.

    Σ_a π(a) A*(a) goes flat where π is confident and wrong; the bonus keeps it from getting there too soon.
    """

    oracle: Oracle
    bonus: float | Schedule  # β_n, in the unit that the update measures costs in

    @property
    def is_per_trajectory(self) -> bool:
        return is_per_trajectory(self.oracle)

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        return replace(self.oracle(trajectories, policy), entropy_bonus=evaluate_schedule(self.bonus, trajectories.n))
