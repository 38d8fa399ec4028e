"""Expert actions added to the cost-to-go of another oracle: one query more per step, no simulation."""

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
    """Oracle that adds the expert's action π*(s_t) at every step: [K, T], or [K, T, A] for vector actions."""

    oracle: Oracle
    expert: Expert
    action_space: Discrete | Box

    @property
    def is_per_trajectory(self) -> bool:
        return is_per_trajectory(self.oracle)

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        cost_to_go = self.oracle(trajectories, policy)
        if cost_to_go.expert_actions is not None:
            return cost_to_go
        expert_actions = query_expert_actions(self.expert, trajectories, self.action_space)
        new_queries = int((trajectories.mask & (cost_to_go.weight == 0)).sum())
        return replace(cost_to_go, expert_actions=expert_actions, queries=cost_to_go.queries + new_queries)
