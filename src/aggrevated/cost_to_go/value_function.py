"""Q* from the expert's critic, c(s_t, a_t) + γ V*(s_{t+1}): no simulator step, at the price of the critic's errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from aggrevated.cost_to_go import CostSettings, CostToGo, Oracle, Tells, require_method
from aggrevated.cost_to_go.truncated import Truncated
from aggrevated.experts import CriticExpert, Expert
from aggrevated.simulators import Simulator
from aggrevated.trajectories import Trajectories

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
    """Q* of the action taken, from the expert's critic."""

    name = "value-function"

    def tells(self, finite: bool) -> Tells:
        return Tells.TAKEN_ACTION

    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        if not isinstance(expert, CriticExpert):
            raise self.cannot_ask(expert, "v")
        return ValueFunction(expert, self.advantage)
