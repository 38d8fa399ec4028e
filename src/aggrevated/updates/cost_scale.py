"""Running scale of A*, which makes updates independent of the task's unit of cost."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from aggrevated.core.arrays import Array
from aggrevated.oracles import CostToGo
from aggrevated.rollout.trajectories import Trajectories


@dataclass(frozen=True)
class RunningCostScale:
    """Root mean square of A* over all queried states so far, with equal weights.

    If all costs are multiplied by c, the scale is, too, so that A* divided by it does not change.
    """

    squares: float = 0.0  # Σ_s of the mean of A*(s, a)² over the legal actions
    states: float = 0.0  # number of states

    @property
    def value(self) -> float:
        """Return the scale; 1 if all costs so far are 0."""
        return float(np.sqrt(self.squares / self.states)) if self.squares else 1.0

    def include(self, cost_to_go: CostToGo, trajectories: Trajectories) -> RunningCostScale:
        """Return the scale with these states included."""
        queried = cost_to_go.weight > 0
        squares = np.square(cost_to_go.values[queried], dtype=np.float64)  # [states, A] or [states]
        if cost_to_go.has_all_actions:
            squares = compute_masked_mean(squares, trajectories.action_mask[queried])
        return RunningCostScale(self.squares + float(squares.sum()), self.states + len(squares))

    def divide(self, cost_to_go: CostToGo) -> CostToGo:
        """Return the cost-to-go in units of the scale; its entropy bonus already is."""
        values = cost_to_go.values
        return replace(cost_to_go, values=(values.astype(np.float64) / self.value).astype(values.dtype))

    def to_tensor(self) -> Tensor:
        """Return `squares` and `states` as a tensor [2], for a checkpoint."""
        return torch.tensor([self.squares, self.states], dtype=torch.float64)

    @classmethod
    def from_tensor(cls, tensor: Tensor) -> RunningCostScale:
        """Return the scale from a tensor of `to_tensor`."""
        return cls(*tensor.tolist())


def compute_masked_mean(values: Array, legal: Array) -> Array:
    """Return the mean of values [n, A] over the legal actions, [n]; `legal` [n, 0] means all actions."""
    legal = legal if legal.shape[1] else np.ones(values.shape, bool)
    mean: Array = (values * legal).sum(axis=1) / np.maximum(legal.sum(axis=1), 1)
    return mean
