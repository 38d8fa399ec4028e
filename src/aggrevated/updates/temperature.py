"""How warm a goal may be: small costs add up over an episode, and what exp(−A*/τ) loses by chance is to be little.

By the performance difference lemma a policy costs, above π*, what its actions cost in all steps of its episodes
together. So much of the goal is compared with as much of the dearest policy so far: τ falls until it is a small part.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions import Categorical

from aggrevated.losses import policy_distribution
from aggrevated.policies import Policy
from aggrevated.updates.dataset_aggregation import TrainingData
from aggrevated.updates.projection_targets import action_costs

DECAY_FACTOR = 0.5**0.5  # τ falls by so much at a time
MIN_FACTOR = 1 / 64  # and no further: logits would take too long to get there


@dataclass
class TemperatureSchedule:
    """What it takes to keep a goal cheap."""

    max_target_cost: float  # what it may cost, in parts of what the dearest policy did; 0: anything
    worst_policy_cost: float = 0.0  # what a policy cost above π*, over an episode, at most
    factor: float = 1.0  # of τ

    @torch.no_grad()
    def tau(self, tau: float, policy: Policy, newest: TrainingData) -> float:
        """τ, or as much less as it has to be; the newest data are by that policy."""
        if not self.max_target_cost:
            return tau
        now = policy_distribution(policy, newest.trajectories)
        assert isinstance(now, Categorical)
        in_units, known, weight = map(torch.from_numpy, action_costs(newest, policy.head.outputs))
        cost = torch.from_numpy(action_costs(newest, policy.head.outputs, in_units=False)[0])
        self.worst_policy_cost = max(self.worst_policy_cost, expected_cost_per_episode(now.probs, cost, known, weight))
        while self.factor > MIN_FACTOR and self.worst_policy_cost > 0:  # else nothing has cost anything yet
            goal = torch.where(known, -in_units / (tau * self.factor), -torch.inf).softmax(-1)
            if expected_cost_per_episode(goal, cost, known, weight) <= self.max_target_cost * self.worst_policy_cost:
                break
            self.factor *= DECAY_FACTOR
        return tau * self.factor


def expected_cost_per_episode(pi: Tensor, cost: Tensor, known: Tensor, weight: Tensor) -> float:
    """Σ_t Σ_a π(a) A*(a), the mean over trajectories."""
    of_a_step = torch.where(known, pi.nan_to_num() * cost, 0.0).sum(-1)
    return float((of_a_step * weight).sum() / len(weight))
