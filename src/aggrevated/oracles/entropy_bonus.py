"""Entropy bonus, which keeps a policy from becoming deterministic too early."""

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
    """Oracle whose cost-to-go has an entropy bonus: β_n is subtracted per nat of the policy's entropy.

    The gradient of Σ_a π(a) A*(a) vanishes where π is confident and wrong; the bonus delays that.

    Args:
        oracle: the oracle of the costs.
        bonus: β_n, a constant or a schedule over n, in the update's unit of cost.
    """

    oracle: Oracle
    bonus: float | Schedule

    @property
    def is_per_trajectory(self) -> bool:
        """Return whether the wrapped oracle needs one trajectory at a time only."""
        return is_per_trajectory(self.oracle)

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        return replace(self.oracle(trajectories, policy), entropy_bonus=evaluate_schedule(self.bonus, trajectories.n))
