"""Q* from the expert's critic, c(s_t, a_t) + γ V*(s_{t+1}): no simulator step, at the price of the critic's errors."""

from dataclasses import dataclass

import numpy as np

from aggrevated.cost_to_go import CostSettings, CostToGo, Oracle, Tells
from aggrevated.experts import CriticExpert, Expert
from aggrevated.policies import Policy
from aggrevated.simulators import Simulator
from aggrevated.trajectories import Trajectories


@dataclass(frozen=True)
class ValueFunction:
    """Q*(s_t, a_t), [K, T]; with `advantage` less V*(s_t).

    After an episode that ended early V* is 0. The last step of one that ran to the horizon is left out: where it led
    is not on record.
    """

    expert: CriticExpert
    advantage: bool = True

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        mask = trajectories.mask
        v = np.zeros((mask.shape[0], mask.shape[1] + 1))
        v[:, :-1][mask] = self.expert.v(trajectories.states[mask])
        values = trajectories.costs + self.expert.discount * v[:, 1:] - (v[:, :-1] if self.advantage else 0.0)
        weight = trajectories.by_learner.astype(np.float32)
        weight[:, trajectories.horizon - 1 :] = 0.0
        told = (values * mask).astype(np.float32)
        return CostToGo(told, weight, queries=trajectories.steps, advantage=self.advantage)


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
