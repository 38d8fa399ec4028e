"""The gradient over all actions: Eq. 10 with Q*, Eq. 12 with the advantage A*."""

from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor
from torch.distributions import Categorical

from aggrevated.core.errors import DataError
from aggrevated.losses import Loss, LossSettings, compute_policy_distribution, compute_weighted_mean
from aggrevated.oracles import CostToGo, Feedback
from aggrevated.policies import Policy
from aggrevated.rollout.trajectories import Trajectories


def all_actions_loss(policy: Policy, trajectories: Trajectories, cost_to_go: CostToGo) -> Tensor:
    """ℓ_n(θ) = 1/(HK) Σ_i Σ_t Σ_a π_θ(a|s_t) Q*(s_t, a), whose gradient is Eq. 10 (Eq. 12 with A* for Q*).

    Unbiased for any mixing, since it does not use the action taken.
    """
    assert cost_to_go.has_all_actions, "all_actions needs the cost-to-go of every action; use taken_action"
    distribution = compute_policy_distribution(policy, trajectories)
    assert isinstance(distribution, Categorical), "all_actions needs a finite set of actions; use taken_action"
    actions = distribution.probs.shape[-1]
    if cost_to_go.values.shape[2] != actions:
        raise DataError(
            f"the oracle gave the cost-to-go of {cost_to_go.values.shape[2]} actions, but the policy has {actions}"
        )
    expected = (distribution.probs * torch.from_numpy(cost_to_go.values)).sum(-1)  # [K, T]
    return compute_weighted_mean(expected, distribution, cost_to_go, trajectories)


@dataclass(frozen=True)
class AllActionsSettings(LossSettings):
    """The expected cost-to-go over all actions (Eq. 10, 12)."""

    name = "all-actions"
    accepts = MappingProxyType({Feedback.ALL_ACTIONS: Feedback.ALL_ACTIONS})

    def build(self) -> Loss:
        return all_actions_loss
