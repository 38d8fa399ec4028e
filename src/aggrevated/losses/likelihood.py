"""Negative log-likelihood of the best action: supervised learning, and DAgger's surrogate of the 0/1 loss."""

from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor

from aggrevated.losses import (
    Loss,
    LossSettings,
    compute_policy_distribution,
    compute_weighted_mean,
    make_action_mask_tensor,
)
from aggrevated.oracles import CostToGo, Feedback
from aggrevated.policies import Policy
from aggrevated.rollout.trajectories import Trajectories


def best_action_nll_loss(policy: Policy, trajectories: Trajectories, cost_to_go: CostToGo) -> Tensor:
    """Return −1/(HK) Σ_i Σ_t log π_θ(argmin_a Q(s_t, a) | s_t), the NLL of the best actions.

    Unlike Σ_a π(a) 1[a ≠ π*(s)], it is convex in the logits and has a gradient where π_θ is confident and
    wrong.

    Args:
        policy: π_θ.
        trajectories: The K trajectories of the iteration.
        cost_to_go: The expert actions, [K, T] or [K, T, A] for vectors, or else the costs of all actions.

    Returns:
        The loss, a scalar tensor.
    """
    best = choose_best_actions(cost_to_go, trajectories)
    distribution = compute_policy_distribution(policy, trajectories)
    return compute_weighted_mean(-distribution.log_prob(best), distribution, cost_to_go, trajectories)


def choose_best_actions(cost_to_go: CostToGo, trajectories: Trajectories) -> Tensor:
    """Return the expert actions, [K, T] or [K, T, A], or else the actions of least cost-to-go, [K, T]."""
    if cost_to_go.expert_actions is not None:
        return torch.from_numpy(cost_to_go.expert_actions)
    assert cost_to_go.has_all_actions, "best_action_nll_loss needs expert actions or the costs of all actions"
    values = torch.from_numpy(cost_to_go.values)
    legal = make_action_mask_tensor(trajectories)
    return (values if legal is None else values.masked_fill(~legal, torch.inf)).argmin(-1)


@dataclass(frozen=True)
class LikelihoodSettings(LossSettings):
    """Negative log-likelihood of the best action."""

    name = "likelihood"
    accepts = MappingProxyType({feedback: feedback for feedback in (Feedback.ALL_ACTIONS, Feedback.BEST_ACTION)})

    def build(self) -> Loss:
        return best_action_nll_loss
