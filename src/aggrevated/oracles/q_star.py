"""Q* of every action from an expert that knows it, such as a trained Q-network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from aggrevated.core.settings import Chosen
from aggrevated.errors import UsageError
from aggrevated.experts import Expert, ValueExpert
from aggrevated.experts.checked import costs_of
from aggrevated.oracles import CostSettings, CostToGo, Oracle, Tells, placed_in, require_method, scatter
from aggrevated.oracles.advantage import Advantage
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators import Simulator

if TYPE_CHECKING:
    from aggrevated.policies import Policy


@dataclass(frozen=True)
class QStar:
    """Q*(s_t, a) for all a, [K, T, A]. The expert is asked once, about the live states of the whole batch."""

    expert: ValueExpert
    alone: ClassVar[bool] = True
    every_action: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_method(self.expert, "q")

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        with placed_in(trajectories):
            values = scatter(trajectories, costs_of(self.expert, trajectories.states[trajectories.mask]))
        return CostToGo(values, trajectories.mask.astype("float32"), queries=trajectories.steps)


@dataclass(frozen=True)
class QStarSettings(CostSettings):
    """Q* of every action, from an expert that knows it."""

    name = "q-network"

    def tells(self, finite: bool) -> Tells:
        return Tells.EVERY_ACTION

    def check(self, chosen: Chosen) -> None:
        if not chosen.finite:
            raise UsageError(
                f"the oracle {self.name} tells Q* of every action, and there are infinitely many; choose another"
            )

    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        if not isinstance(expert, ValueExpert):
            raise self.cannot_ask(expert, "q")
        return Advantage(QStar(expert)) if self.advantage else QStar(expert)
