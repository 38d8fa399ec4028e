"""Q* from the expert's critic, c(s_t, a_t) + γ V*(s_{t+1}): no simulator step, but the critic's errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gymnasium.spaces import Discrete

from aggrevated.core.settings import setting
from aggrevated.experts import Expert, StateValueExpert
from aggrevated.oracles import CostOracleSettings, CostToGo, Feedback, Oracle, check_expert_has
from aggrevated.oracles.advantage import AdvantageOracle
from aggrevated.oracles.one_step_lookahead import LookaheadOracle
from aggrevated.oracles.truncated_horizon import TruncatedHorizonOracle
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators import Simulator

if TYPE_CHECKING:
    from aggrevated.policies import Policy


@dataclass(frozen=True)
class ValueFunctionOracle:
    """Oracle of c(s_t, a_t) + γ V*(s_{t+1}), [K, T]; minus V*(s_t) with `advantage`.

    V* is 0 after an episode that ended early. The last step before the horizon has weight 0: its next state
    is not recorded.

    Args:
        expert: expert with V*.
        advantage: subtract V*(s_t).
    """

    expert: StateValueExpert
    advantage: bool = True
    is_per_trajectory: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_expert_has(self.expert, "v")

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        return TruncatedHorizonOracle(self.expert, 1, self.advantage)(trajectories)


@dataclass(frozen=True)
class ValueFunctionSettings(CostOracleSettings):
    """Q* from the expert's critic: of every discrete action, or of the action taken."""

    name = "value-function"
    all_actions: bool = setting(
        True, "Simulate one step of every discrete action, instead of using the recorded action only."
    )

    def get_feedback(self, finite: bool) -> Feedback:
        return Feedback.ALL_ACTIONS if finite and self.all_actions else Feedback.TAKEN_ACTION

    def max_steps(self, horizon: int, actions: int | None) -> int:
        return horizon * actions if actions is not None and self.all_actions else 0

    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        if not isinstance(expert, StateValueExpert):
            raise self.make_missing_capability_error(expert, "v")
        if self.get_feedback(isinstance(simulator.action_space, Discrete)) is Feedback.TAKEN_ACTION:
            return ValueFunctionOracle(expert, self.advantage)
        oracle = LookaheadOracle(simulator, expert)
        return AdvantageOracle(oracle) if self.advantage else oracle
