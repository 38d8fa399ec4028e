"""The unit of cost that a task brings with it, how much A* varies: what is divided by it has none."""

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
    """The root-mean-square of A* over all states of all iterations so far where it is known; each counts alike.

    Costs in other units, c times as large, have a spread c times as large, so that A* over its spread stays as it is.
    """

    squares: float = 0.0  # Σ_s of the mean over the legal actions of A*(s, a)²
    states: float = 0.0  # how many

    @property
    def value(self) -> float:
        """The spread; 1 where nothing has cost anything yet."""
        return float(np.sqrt(self.squares / self.states)) if self.squares else 1.0

    def include(self, cost_to_go: CostToGo, trajectories: Trajectories) -> RunningCostScale:
        """The spread of these as well."""
        known = cost_to_go.weight > 0
        squares = np.square(cost_to_go.values[known], dtype=np.float64)  # [states, A] or [states]
        if cost_to_go.has_all_actions:
            squares = compute_masked_mean(squares, trajectories.action_mask[known])
        return RunningCostScale(self.squares + float(squares.sum()), self.states + len(squares))

    def divide(self, cost_to_go: CostToGo) -> CostToGo:
        """The same cost-to-go in units of the spread; its entropy bonus is in that unit already."""
        values = cost_to_go.values
        return replace(cost_to_go, values=(values.astype(np.float64) / self.value).astype(values.dtype))

    def to_tensor(self) -> Tensor:
        """Its two numbers [2], for a checkpoint."""
        return torch.tensor([self.squares, self.states], dtype=torch.float64)

    @classmethod
    def from_tensor(cls, tensor: Tensor) -> RunningCostScale:
        """What `tensor` gave."""
        return cls(*tensor.tolist())


def compute_masked_mean(values: Array, legal: Array) -> Array:
    """[states]: the mean over the legal actions of values [states, A]; over all where there is no restriction."""
    legal = legal if legal.shape[1] else np.ones(values.shape, bool)
    mean: Array = (values * legal).sum(axis=1) / np.maximum(legal.sum(axis=1), 1)
    return mean
