"""The negative log-likelihood of what π* would do: supervised learning, and DAgger's surrogate of the 0/1 loss."""

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
    """−1/(HK) Σ_i Σ_t log π_θ(argmin_a Q(s_t, a) | s_t): "maximizing the likelihood of expert's actions".

    Unlike Σ_a π(a) 1[a ≠ π*(s)] it is convex in the logits and does not go flat where π_θ is confident and wrong.
    """
    best = choose_best_actions(cost_to_go, trajectories)
    distribution = compute_policy_distribution(policy, trajectories)
    return compute_weighted_mean(-distribution.log_prob(best), distribution, cost_to_go, trajectories)


def choose_best_actions(cost_to_go: CostToGo, trajectories: Trajectories) -> Tensor:
    """[K, T]: the action of least cost-to-go; where actions are vectors, [K, T, A], the one that π* advised."""
    if cost_to_go.expert_actions is not None:
        return torch.from_numpy(cost_to_go.expert_actions)
    assert cost_to_go.has_all_actions, "likelihood needs the cost-to-go of every action, to know the cheapest"
    values = torch.from_numpy(cost_to_go.values)
    legal = make_action_mask_tensor(trajectories)
    return (values if legal is None else values.masked_fill(~legal, torch.inf)).argmin(-1)


@dataclass(frozen=True)
class LikelihoodSettings(LossSettings):
    """The likelihood of the best action."""

    name = "likelihood"
    accepts = MappingProxyType({what: what for what in (Feedback.ALL_ACTIONS, Feedback.BEST_ACTION)})

    def build(self) -> Loss:
        return best_action_nll_loss
