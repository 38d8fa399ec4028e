"""Q* from the expert's critic, c(s_t, a_t) + γ V*(s_{t+1}): no simulator step, at the price of the critic's errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gymnasium.spaces import Discrete

from aggrevated.core.settings import setting
from aggrevated.experts import CriticExpert, Expert
from aggrevated.oracles import CostSettings, CostToGo, Oracle, Tells, require_method
from aggrevated.oracles.advantage import Advantage
from aggrevated.oracles.one_step_lookahead import Lookahead
from aggrevated.oracles.truncated_horizon import Truncated
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators import Simulator

if TYPE_CHECKING:
    from aggrevated.policies import Policy


@dataclass(frozen=True)
class ValueFunction:
    """Q*(s_t, a_t), [K, T]; with `advantage` less V*(s_t).

    After an episode that ended early V* is 0. The last step of one that ran to the horizon is left out: where it led
    is not on record.
    """

    expert: CriticExpert
    advantage: bool = True
    alone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_method(self.expert, "v")

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        return Truncated(self.expert, 1, self.advantage)(trajectories)


@dataclass(frozen=True)
class ValueFunctionSettings(CostSettings):
    """Q* from the expert's critic: of every action of a finite set, or of the action taken."""

    name = "value-function"
    every_action: bool = setting(
        True, "Take every action of a finite set once in the simulator, not only the one taken on record."
    )

    def tells(self, finite: bool) -> Tells:
        return Tells.EVERY_ACTION if finite and self.every_action else Tells.TAKEN_ACTION

    def most_steps(self, horizon: int, actions: int | None) -> int:
        return horizon * actions if actions is not None and self.every_action else 0

    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        if not isinstance(expert, CriticExpert):
            raise self.cannot_ask(expert, "v")
        if self.tells(isinstance(simulator.action_space, Discrete)) is Tells.TAKEN_ACTION:
            return ValueFunction(expert, self.advantage)
        every = Lookahead(simulator, expert)
        return Advantage(every) if self.advantage else every
