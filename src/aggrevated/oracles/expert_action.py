"""What π* would do, beside what an oracle knows of the action taken: one question more at each step, no simulation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gymnasium.spaces import Box, Discrete

from aggrevated.experts import Expert
from aggrevated.oracles import CostToGo, Oracle, is_per_trajectory
from aggrevated.oracles.zero_one import query_expert_actions
from aggrevated.rollout.trajectories import Trajectories

if TYPE_CHECKING:
    from aggrevated.policies import Policy


@dataclass(frozen=True)
class ExpertLabeledOracle:
    """The oracle's cost-to-go, with π*(s_t) as `advice` at every step: [K, T], or [K, T, A] for vectors."""

    oracle: Oracle
    expert: Expert
    action_space: Discrete | Box

    @property
    def is_per_trajectory(self) -> bool:
        return is_per_trajectory(self.oracle)

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        told = self.oracle(trajectories, policy)
        if told.expert_actions is not None:
            return told
        advised = query_expert_actions(self.expert, trajectories, self.action_space)
        only_advised = int((trajectories.mask & (told.weight == 0)).sum())
        return replace(told, expert_actions=advised, queries=told.queries + only_advised)
