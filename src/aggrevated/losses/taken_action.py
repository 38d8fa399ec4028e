"""The gradient from the action taken, by importance weighting: Eq. 11 with Q*, Eq. 13 with the advantage A*."""

from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor

from aggrevated.core.errors import UsageError
from aggrevated.losses import Loss, LossSettings, compute_policy_distribution, compute_weighted_mean
from aggrevated.oracles import CostToGo, Feedback
from aggrevated.policies import Policy
from aggrevated.rollout.trajectories import Trajectories


def taken_action_loss(policy: Policy, trajectories: Trajectories, cost_to_go: CostToGo) -> Tensor:
    """ℓ_n(θ) = 1/(HK) Σ_i Σ_t π_θ(a_t|s_t)/π_{θ_n}(a_t|s_t) Q*(s_t, a_t) (Eq. 4), whose gradient at θ_n is Eq. 11.

    An action that the expert chose says nothing about π_θ, so with mixing α only the learner's own steps count, each
    1/(1 − α)-fold: the estimate stays unbiased.
    """
    assert not cost_to_go.has_all_actions, "taken_action needs the cost-to-go of the taken action; wrap it in Taken"
    if trajectories.alpha == 1.0:
        raise UsageError("with mixing 1 the learner takes no action to learn from; use a mixing below 1")
    distribution = compute_policy_distribution(policy, trajectories)
    log_probability = distribution.log_prob(torch.from_numpy(trajectories.actions))  # [K, T]
    ratio = torch.exp(log_probability - log_probability.detach())  # 1, with gradient ∇π/π
    own = torch.from_numpy(trajectories.by_learner) / (1.0 - trajectories.alpha)
    return compute_weighted_mean(
        ratio * own * torch.from_numpy(cost_to_go.values), distribution, cost_to_go, trajectories
    )


@dataclass(frozen=True)
class TakenActionSettings(LossSettings):
    """The cost-to-go of the action taken, importance weighted (Eq. 11, 13)."""

    name = "taken-action"
    accepts = MappingProxyType(dict.fromkeys((Feedback.ALL_ACTIONS, Feedback.TAKEN_ACTION), Feedback.TAKEN_ACTION))
    needs_learner_actions = True

    def build(self) -> Loss:
        return taken_action_loss
