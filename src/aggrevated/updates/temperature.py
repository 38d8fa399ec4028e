"""The temperature of the exponentiated update, and the detector of a plateau of its fit."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Categorical

from aggrevated.losses import compute_policy_distribution
from aggrevated.policies import Policy
from aggrevated.updates.dataset_aggregation import TrainingData
from aggrevated.updates.projection_targets import compute_action_costs

DECAY_FACTOR = 0.5**0.5  # τ falls by so much at a time
MIN_FACTOR = 1 / 64  # and no further: logits would take too long to get there


@dataclass
class TemperatureSchedule:
    """What it takes to keep a goal cheap."""

    max_target_cost: float  # what it may cost, in parts of what the dearest policy did; 0: anything
    worst_policy_cost: float = 0.0  # what a policy cost above π*, over an episode, at most
    factor: float = 1.0  # of τ

    @torch.no_grad()
    def compute_temperature(self, tau: float, policy: Policy, newest: TrainingData) -> float:
        """τ, or as much less as it has to be; the newest data are by that policy."""
        if not self.max_target_cost:
            return tau
        now = compute_policy_distribution(policy, newest.trajectories)
        assert isinstance(now, Categorical)
        in_units, known, weight = map(torch.from_numpy, compute_action_costs(newest, policy.head.outputs))
        cost = torch.from_numpy(compute_action_costs(newest, policy.head.outputs, in_units=False)[0])
        self.worst_policy_cost = max(
            self.worst_policy_cost, compute_expected_cost_per_episode(now.probs, cost, known, weight)
        )
        while self.factor > MIN_FACTOR and self.worst_policy_cost > 0:  # else nothing has cost anything yet
            goal = torch.where(known, -in_units / (tau * self.factor), -torch.inf).softmax(-1)
            if (
                compute_expected_cost_per_episode(goal, cost, known, weight)
                <= self.max_target_cost * self.worst_policy_cost
            ):
                break
            self.factor *= DECAY_FACTOR
        return tau * self.factor


def compute_expected_cost_per_episode(pi: Tensor, cost: Tensor, known: Tensor, weight: Tensor) -> float:
    """Σ_t Σ_a π(a) A*(a), the mean over trajectories."""
    of_a_step = torch.where(known, pi.nan_to_num() * cost, 0.0).sum(-1)
    return float((of_a_step * weight).sum() / len(weight))


PLATEAU_WINDOW = 10  # iterations that are compared with as many before them
MIN_PLATEAU_EXCESS = 0.2  # of what a policy costs that acts at random
MIN_PLATEAU_RATIO = 0.9  # of what it was before: more than that is none


@dataclass
class PlateauDetector:
    """What the policies of the last iterations cost above their goals."""

    excess: list[float] = field(default_factory=list)  # at their own states; 1: as if they acted at random

    def add(self, excess: float) -> None:
        """Of π_n; no more are remembered than are looked at."""
        self.excess = [*self.excess, excess][-2 * PLATEAU_WINDOW :]

    def is_triggered(self) -> bool:
        """Whether it is too much, and hardly less than before."""
        before = np.mean(self.excess[:PLATEAU_WINDOW] or 0.0)
        now = np.mean(self.excess[PLATEAU_WINDOW:] or 0.0)
        return len(self.excess) == 2 * PLATEAU_WINDOW and bool(
            now > MIN_PLATEAU_EXCESS and now > MIN_PLATEAU_RATIO * before
        )
