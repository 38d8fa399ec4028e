"""The learner's own realised cost-to-go: with it the same loop is REINFORCE or TNPG."""

from aggrevated.arrays import running_from_the_end
from aggrevated.cost_to_go import CostToGo
from aggrevated.trajectories import Trajectories


def realised(trajectories: Trajectories) -> CostToGo:
    """Σ_{i ≥ t} c_i, [K, T]: what happened after (s_t, a_t) in this very trajectory. No expert is asked."""
    values = running_from_the_end(trajectories.costs) * trajectories.mask
    return CostToGo(values.astype("float32"), trajectories.mask.astype("float32"))
