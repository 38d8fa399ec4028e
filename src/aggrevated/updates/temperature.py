"""Temperature schedule of the exponentiated update, and a detector of plateaus of its fit.

τ falls with the number of iterations (`inverse_sqrt_decay`), and further until its targets cost little
(`TemperatureSchedule`).
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Categorical

from aggrevated.losses import compute_policy_distribution
from aggrevated.policies import Policy
from aggrevated.updates.dataset_aggregation import TrainingData
from aggrevated.updates.projection_targets import compute_action_costs

DECAY_FACTOR = 0.5**0.5  # by which τ is lowered in one step
MIN_FACTOR = 1 / 64  # the lowest multiple of τ: for a lower τ the logits would take too long to fit


def inverse_sqrt_decay(n: int, decay_after: int) -> float:
    """Return min(1, √(decay_after/n)), by which τ and the learning rate fall; 1 if `decay_after` is 0.

    n rounds of Eq. 7 with the step η/√n of its regret bound are one round with η√n, so τ = 1/η falls as 1/√n.
    """
    return min(1.0, (decay_after / n) ** 0.5) if decay_after else 1.0


@dataclass
class TemperatureSchedule:
    """A schedule that lowers τ until sampling from exp(−A*/τ) costs little more than acting greedily.

    Attributes:
        max_target_cost: Allowed cost above π* per episode, as a fraction of `worst_policy_cost`; 0 disables
            it.
        worst_policy_cost: The largest cost of a policy above π* so far, per episode.
        factor: The present multiple of τ.
    """

    max_target_cost: float
    worst_policy_cost: float = 0.0
    factor: float = 1.0

    @torch.no_grad()
    def compute_temperature(self, tau: float, policy: Policy, newest: TrainingData) -> float:
        """Return τ, lowered as needed; `newest` is data collected with `policy`."""
        if not self.max_target_cost:
            return tau
        current = compute_policy_distribution(policy, newest.trajectories)
        assert isinstance(current, Categorical)
        scaled_cost, known, weight = map(torch.from_numpy, compute_action_costs(newest, policy.head.outputs))
        cost = torch.from_numpy(compute_action_costs(newest, policy.head.outputs, scaled=False)[0])
        self.worst_policy_cost = max(
            self.worst_policy_cost, compute_expected_cost_per_episode(current.probs, cost, known, weight)
        )
        while self.factor > MIN_FACTOR and self.worst_policy_cost > 0:  # 0: all costs so far are 0
            target = torch.where(known, -scaled_cost / (tau * self.factor), -torch.inf).softmax(-1)
            target_cost = compute_expected_cost_per_episode(target, cost, known, weight)
            if target_cost <= self.max_target_cost * self.worst_policy_cost:
                break
            self.factor *= DECAY_FACTOR
        return tau * self.factor


def compute_expected_cost_per_episode(pi: Tensor, cost: Tensor, known: Tensor, weight: Tensor) -> float:
    """Return Σ_t Σ_a π(a) A*(a), averaged over trajectories."""
    step_cost = torch.where(known, pi.nan_to_num() * cost, 0.0).sum(-1)
    return float((step_cost * weight).sum() / len(weight))


PLATEAU_WINDOW = 10  # iterations; their mean is compared with that of the window before
MIN_PLATEAU_EXCESS = 0.2  # as a fraction of the cost of acting at random
MIN_PLATEAU_RATIO = 0.9  # of the excess to that of the window before, above which the fit does not improve


@dataclass
class PlateauDetector:
    """A detector of plateaus: the policies cost more than their targets, and this excess does not fall.

    Attributes:
        excess: Costs of the last policies above their targets, at their own states; 1 is the cost of acting
            at random.
    """

    excess: list[float] = field(default_factory=list)

    def add(self, excess: float) -> None:
        """Append the excess cost of π_n, and drop those before the two windows."""
        self.excess = [*self.excess, excess][-2 * PLATEAU_WINDOW :]

    def is_triggered(self) -> bool:
        """Return whether the fit is on a plateau: the excess is large, and almost as large as before."""
        older_excess = np.mean(self.excess[:PLATEAU_WINDOW] or 0.0)
        newest_excess = np.mean(self.excess[PLATEAU_WINDOW:] or 0.0)
        return len(self.excess) == 2 * PLATEAU_WINDOW and bool(
            newest_excess > MIN_PLATEAU_EXCESS and newest_excess > MIN_PLATEAU_RATIO * older_excess
        )


@torch.no_grad()
def compute_normalized_excess_cost(policy: Policy, data: TrainingData, tau: float) -> float:
    """Return Σ_a π(a) A*(a) minus that of exp(−A*/τ), in mean sizes of A*: about 1 if π acts at random."""
    current = compute_policy_distribution(policy, data.trajectories)
    assert isinstance(current, Categorical)
    cost, known, weight = map(torch.from_numpy, compute_action_costs(data, policy.head.outputs))
    target = torch.where(known, -cost / tau, -torch.inf).softmax(-1)
    excess = torch.where(known, (current.probs - target) * cost, 0.0).sum(-1)
    return float((excess * weight).sum() / weight.sum().clamp(min=1e-9))
