"""0/1 disagreement with the expert: with it the loop is DAgger or, on the expert's states, supervised learning."""

from dataclasses import dataclass

import numpy as np

from aggrevated.cost_to_go import CostToGo
from aggrevated.experts import Expert
from aggrevated.trajectories import Trajectories


@dataclass(frozen=True)
class Disagreement:
    """1 for every action but π*(s_t), [K, T, A]."""

    expert: Expert
    actions: int  # A

    def __call__(self, trajectories: Trajectories) -> CostToGo:
        values = np.zeros((*trajectories.mask.shape, self.actions), np.float32)
        for t in range(trajectories.mask.shape[1]):  # π* may depend on t, so it is asked once for each t
            live = trajectories.mask[:, t]
            chosen = self.expert.act(trajectories.states[live, t], t)
            values[live, t] = np.arange(self.actions) != chosen[:, None]
        return CostToGo(values, trajectories.mask.astype(np.float32), queries=trajectories.steps)
