"""Q* of every action from an expert that knows it, such as a trained Q-network."""

from dataclasses import dataclass

from aggrevated.cost_to_go import CostToGo, scatter
from aggrevated.experts import ValueExpert
from aggrevated.trajectories import Trajectories


@dataclass(frozen=True)
class QStar:
    """Q*(s_t, a) for all a, [K, T, A]. The expert is asked once, about the live states of the whole batch."""

    expert: ValueExpert

    def __call__(self, trajectories: Trajectories) -> CostToGo:
        values = scatter(trajectories, self.expert.q(trajectories.states[trajectories.mask]))
        return CostToGo(values, trajectories.mask.astype("float32"), queries=trajectories.steps)
