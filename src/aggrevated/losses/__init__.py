"""Line 6 of Algorithm 1, second half: losses ℓ_n(θ) whose gradient at θ_n is the paper's estimator.

Each is a function of a policy, its trajectories and their cost-to-go, and divides by H·K, not by the steps seen: an
episode that ended early has no cost-to-go after its end.
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
    """π_θ at every step of the trajectories, [K, T]."""
    mask = torch.from_numpy(trajectories.mask)
    return policy.distribution(make_policy_inputs(policy, trajectories), mask, make_action_mask_tensor(trajectories))


def make_policy_inputs(policy: Policy, trajectories: Trajectories) -> Tensor:
    """[K, T, ...]: what the policy saw at each step, as its `distribution` takes it."""
    return policy.inputs(trajectories.observations, trajectories.actions)


def make_action_mask_tensor(trajectories: Trajectories) -> Tensor | None:
    """[K, T, A]: which actions were legal at each step; None where all are."""
    return torch.from_numpy(trajectories.action_mask) if trajectories.action_mask.shape[2] else None


def compute_weighted_mean(
    per_step: Tensor, distribution: torch.distributions.Distribution, cost_to_go: CostToGo, trajectories: Trajectories
) -> Tensor:
    """1/(HK) Σ_i Σ_t weight · (per_step − β_n · the entropy of π_θ), over the K of which something is known."""
    if cost_to_go.entropy_bonus:
        per_step = per_step - cost_to_go.entropy_bonus * distribution.entropy()
    total = (per_step * torch.from_numpy(cost_to_go.weight)).sum()
    return total / (trajectories.horizon * max(trajectories.count - cost_to_go.lost_trajectories, 1))


@dataclass(frozen=True)
class LossSettings(Settings, ABC):
    """One of the losses."""

    accepts: ClassVar[
        Mapping[Feedback, Feedback]
    ]  # from what the oracle tells to what the loss, and so the update, looks at
    needs_learner_actions: ClassVar[bool] = False  # whether it learns from actions of the learner's own, and needs some
    entropy: float = setting(
        0.0,
        "What a nat of the policy's entropy saves at each step: above 0 it keeps a policy from being sure too soon.",
        NON_NEGATIVE,
    )

    @abstractmethod
    def build(self) -> Loss:
        """The loss."""
