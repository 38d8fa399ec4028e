"""Gradient over all actions: Eq. 10 with Q*, Eq. 12 with the advantage A*."""

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
    """Return ℓ_n(θ) = 1/(HK) Σ_i Σ_t Σ_a π_θ(a|s_t) Q*(s_t, a).

    Its gradient is Eq. 10, and Eq. 12 with A* instead of Q*. It is unbiased for any α_n, since it does not
    use the action taken.

    Args:
        policy: π_θ, for a finite set of A actions.
        trajectories: The K trajectories of the iteration.
        cost_to_go: Q* or A* of every action, [K, T, A].

    Returns:
        The loss, a scalar tensor.

    Raises:
        DataError: The oracle returned the cost-to-go of another number of actions than the policy has.
    """
    assert cost_to_go.has_all_actions, "this loss needs the costs of all actions; use taken_action_loss"
    distribution = compute_policy_distribution(policy, trajectories)
    assert isinstance(distribution, Categorical), "vectors have no sum over actions; use taken_action_loss"
    actions = distribution.probs.shape[-1]
    if cost_to_go.values.shape[2] != actions:
        differ = f"the oracle returned costs of {cost_to_go.values.shape[2]} actions, the policy has {actions}"
        raise DataError(f"{differ}; use an oracle and a policy of the same simulator")
    expected = (distribution.probs * torch.from_numpy(cost_to_go.values)).sum(-1)  # [K, T]
    return compute_weighted_mean(expected, distribution, cost_to_go, trajectories)


@dataclass(frozen=True)
class AllActionsSettings(LossSettings):
    """Expected cost-to-go over all actions (Eq. 10, 12)."""

    name = "all-actions"
    accepts = MappingProxyType({Feedback.ALL_ACTIONS: Feedback.ALL_ACTIONS})

    def build(self) -> Loss:
        return all_actions_loss
