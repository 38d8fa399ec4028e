"""Q* of single actions from an expert's critic, such as that of SAC or TD3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.experts import Expert, StateActionQExpert
from aggrevated.experts.checked import query_q_per_action, query_state_action_q
from aggrevated.oracles import (
    CostOracleSettings,
    CostToGo,
    Feedback,
    Oracle,
    add_trajectory_to_errors,
    check_expert_has,
    scatter_to_steps,
)
from aggrevated.oracles.advantage import AdvantageOracle
from aggrevated.oracles.zero_one import query_expert_actions
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators import Simulator

if TYPE_CHECKING:
    from aggrevated.policies import Policy


@dataclass(frozen=True)
class StateActionQOracle:
    """Oracle of Q*(s_t, a_t), [K, T], from one query of the expert's critic per step.

    The advantage Q*(s_t, a_t) − Q*(s_t, π*(s_t)) takes one query more, and the critic's offset cancels. Steps
    that π* took have weight 0.

    Args:
        expert: expert with Q*(s, a).
        actions: action space of the simulator.
        advantage: subtract Q* of the expert's action.
    """

    expert: StateActionQExpert
    actions: Discrete | Box
    advantage: bool = True
    is_per_trajectory: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_expert_has(self.expert, "q_of")

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        mask = trajectories.mask
        weight = trajectories.by_learner.astype(np.float32)
        states = trajectories.states[mask]
        with add_trajectory_to_errors(trajectories):
            q = query_state_action_q(self.expert, states, trajectories.actions[mask])
        if self.advantage:
            expert_actions = query_expert_actions(self.expert, trajectories, self.actions)[mask]
            with add_trajectory_to_errors(trajectories):
                q = q - query_state_action_q(self.expert, states, expert_actions)
        return CostToGo(scatter_to_steps(trajectories, q), weight, queries=trajectories.steps, advantage=self.advantage)


@dataclass(frozen=True)
class PerActionQOracle:
    """Oracle of Q*(s_t, a) for all discrete actions, [K, T, A], with one query per action.

    Args:
        expert: expert with Q*(s, a).
        actions: discrete action space of the simulator.
    """

    expert: StateActionQExpert
    actions: Discrete
    is_per_trajectory: ClassVar[bool] = True
    all_actions: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_expert_has(self.expert, "q_of")

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        with add_trajectory_to_errors(trajectories):
            q = query_q_per_action(self.expert, trajectories.states[trajectories.mask], int(self.actions.n))
        weight = trajectories.mask.astype(np.float32)
        return CostToGo(scatter_to_steps(trajectories, q), weight, queries=trajectories.steps)


@dataclass(frozen=True)
class StateActionQSettings(CostOracleSettings):
    """Q* from the expert's Q*(s, a): of every discrete action, or of the vector action taken."""

    name = "state-action-q"

    def get_feedback(self, finite: bool) -> Feedback:
        return Feedback.ALL_ACTIONS if finite else Feedback.TAKEN_ACTION

    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        if not isinstance(expert, StateActionQExpert):
            raise self.make_missing_capability_error(expert, "q_of")
        if not isinstance(simulator.action_space, Discrete):
            return StateActionQOracle(expert, simulator.action_space, self.advantage)
        oracle = PerActionQOracle(expert, simulator.action_space)
        return AdvantageOracle(oracle) if self.advantage else oracle
