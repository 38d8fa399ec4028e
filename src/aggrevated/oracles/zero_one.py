"""Disagreement with the expert's actions, as in DAgger or, on the expert's states, supervised learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.core.user_code import add_error_position
from aggrevated.experts import Expert
from aggrevated.experts.checked import query_actions
from aggrevated.oracles import CostToGo, Feedback, Oracle, OracleSettings
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators import Simulator

if TYPE_CHECKING:
    from aggrevated.policies import Policy


@dataclass(frozen=True)
class ZeroOneOracle:
    """Oracle of the 0/1 cost: 1 for every action but π*(s_t), [K, T, A]."""

    expert: Expert
    actions: Discrete
    is_per_trajectory: ClassVar[bool] = True
    all_actions: ClassVar[bool] = True

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        expert_actions = query_expert_actions(self.expert, trajectories, self.actions)[..., None]
        values = (np.arange(int(self.actions.n)) != expert_actions) & trajectories.mask[..., None]
        return CostToGo(values.astype(np.float32), trajectories.mask.astype(np.float32), queries=trajectories.steps)


@dataclass(frozen=True)
class ExpertActionOracle:
    """Oracle of the expert's vector actions π*(s_t), [K, T, A], without costs."""

    expert: Expert
    actions: Box
    is_per_trajectory: ClassVar[bool] = True

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        mask = trajectories.mask.astype(np.float32)
        expert_actions = query_expert_actions(self.expert, trajectories, self.actions)
        return CostToGo(np.zeros_like(mask), mask, queries=trajectories.steps, expert_actions=expert_actions)


def make_zero_one_oracle(expert: Expert, action_space: Discrete | Box) -> Oracle:
    """Return the oracle of disagreement with the expert that fits the action space.

    Args:
        expert: π*.
        action_space: action space of the simulator.

    Returns:
        An oracle of 0/1 costs for discrete actions, or of the expert's actions for vectors.
    """
    return (
        ZeroOneOracle(expert, action_space)
        if isinstance(action_space, Discrete)
        else ExpertActionOracle(expert, action_space)
    )


def query_expert_actions(expert: Expert, trajectories: Trajectories, space: Discrete | Box) -> Array:
    """Return π*(s_t) at all steps taken: integers [K, T] for discrete actions, or float32 [K, T, A].

    π* may depend on t, so it is queried once for each t.
    """
    shape = trajectories.mask.shape
    out = np.zeros(shape, np.int64) if isinstance(space, Discrete) else np.zeros((*shape, *space.shape), np.float32)
    for t in range(shape[1]):
        live = np.flatnonzero(trajectories.mask[:, t])
        with add_error_position(trajectories.seeds, live, t):
            out[live, t] = query_actions(expert, trajectories.states[live, t], t, space)
    return out


@dataclass(frozen=True)
class ZeroOneSettings(OracleSettings):
    """Disagreement with the expert's action."""

    name = "zero-one"

    def get_feedback(self, finite: bool) -> Feedback:
        return Feedback.ALL_ACTIONS if finite else Feedback.BEST_ACTION

    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        return make_zero_one_oracle(expert, simulator.action_space)
