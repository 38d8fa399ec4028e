"""The learner's own realised cost-to-go: with it the same loop is REINFORCE or TNPG."""

from dataclasses import dataclass

import numpy as np

from aggrevated.cost_to_go import CostToGo
from aggrevated.trajectories import Trajectories


@dataclass(frozen=True)
class Realised:
    """Σ_{i ≥ t} c_i, [K, T]: what happened after (s_t, a_t) in this very trajectory. No expert is asked."""

    def __call__(self, trajectories: Trajectories) -> CostToGo:
        remaining = np.cumsum(trajectories.costs[:, ::-1], axis=1)[:, ::-1]
        values = (remaining * trajectories.mask).astype(np.float32)
        return CostToGo(values, trajectories.mask.astype(np.float32))
