"""Q* of every discrete action from an expert with Q*(s, ·), such as a trained Q-network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from aggrevated.core.errors import UsageError
from aggrevated.core.settings import SelectedComponents
from aggrevated.experts import DiscreteQExpert, Expert
from aggrevated.experts.checked import query_q_values
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
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators import Simulator

if TYPE_CHECKING:
    from aggrevated.policies import Policy


@dataclass(frozen=True)
class QStarOracle:
    """Oracle of Q*(s_t, a) for all actions, [K, T, A], from one query of the expert with all visited states.

    Args:
        expert: expert with Q*(s, ·).
    """

    expert: DiscreteQExpert
    is_per_trajectory: ClassVar[bool] = True
    all_actions: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_expert_has(self.expert, "q")

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        with add_trajectory_to_errors(trajectories):
            q = query_q_values(self.expert, trajectories.states[trajectories.mask])
            values = scatter_to_steps(trajectories, q)
        return CostToGo(values, trajectories.mask.astype("float32"), queries=trajectories.steps)


@dataclass(frozen=True)
class QStarSettings(CostOracleSettings):
    """Q* of every action from an expert with Q*(s, ·)."""

    name = "q-star"

    def get_feedback(self, finite: bool) -> Feedback:
        return Feedback.ALL_ACTIONS

    def check(self, chosen: SelectedComponents) -> None:
        if not chosen.has_discrete_actions:
            raise UsageError(f"the oracle {self.name} needs discrete actions, not vectors; choose another --oracle")

    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        if not isinstance(expert, DiscreteQExpert):
            raise self.make_missing_capability_error(expert, "q")
        return AdvantageOracle(QStarOracle(expert)) if self.advantage else QStarOracle(expert)
