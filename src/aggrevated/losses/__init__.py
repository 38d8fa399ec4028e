"""Losses ℓ_n(θ) whose gradient at θ_n is the paper's estimator (line 6 of Algorithm 1, second half).

A loss is a function of policy, trajectories and cost-to-go. It divides by H·K, not by the number of steps
taken: an episode that ended early has no cost-to-go after its end.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor

from aggrevated.core.settings import NON_NEGATIVE, Settings, setting
from aggrevated.oracles import CostToGo, Feedback
from aggrevated.policies import Policy
from aggrevated.rollout.trajectories import Trajectories

Loss: TypeAlias = Callable[[Policy, Trajectories, CostToGo], Tensor]


def compute_policy_distribution(policy: Policy, trajectories: Trajectories) -> torch.distributions.Distribution:
    """Return π_θ at every step of the trajectories, [K, T]."""
    mask = torch.from_numpy(trajectories.mask)
    return policy.distribution(make_policy_inputs(policy, trajectories), mask, make_action_mask_tensor(trajectories))


def make_policy_inputs(policy: Policy, trajectories: Trajectories) -> Tensor:
    """Return the inputs of `Policy.distribution` at every step of the trajectories, [K, T, ...]."""
    return policy.inputs(trajectories.observations, trajectories.actions)


def make_action_mask_tensor(trajectories: Trajectories) -> Tensor | None:
    """Return which actions were legal at each step, bool [K, T, A]; None if all actions always are."""
    return torch.from_numpy(trajectories.action_mask) if trajectories.action_mask.shape[2] else None


def compute_weighted_mean(
    per_step: Tensor, distribution: torch.distributions.Distribution, cost_to_go: CostToGo, trajectories: Trajectories
) -> Tensor:
    """Return 1/(HK) Σ_i Σ_t weight · (per_step − β_n · entropy of π_θ), without lost trajectories."""
    if cost_to_go.entropy_bonus:
        per_step = per_step - cost_to_go.entropy_bonus * distribution.entropy()
    total = (per_step * torch.from_numpy(cost_to_go.weight)).sum()
    return total / (trajectories.horizon * max(trajectories.count - cost_to_go.lost_trajectories, 1))


@dataclass(frozen=True)
class LossSettings(Settings, ABC):
    """Settings of a loss.

    Attributes:
        entropy: Entropy bonus: cost that one nat of the policy's entropy saves at each step; 0 disables it.
    """

    accepts: ClassVar[Mapping[Feedback, Feedback]]  # from the oracle's feedback to what the loss uses of it
    needs_learner_actions: ClassVar[bool] = False  # whether it uses only actions that the learner chose
    entropy: float = setting(
        0.0,
        "Entropy bonus: cost that one nat of the policy's entropy saves at each step; 0 disables it.",
        NON_NEGATIVE,
    )

    @abstractmethod
    def build(self) -> Loss:
        """Return the loss, a function of policy, trajectories and cost-to-go."""
