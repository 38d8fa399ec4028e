"""Gradient from the action taken, by importance weighting: Eq. 11 with Q*, Eq. 13 with the advantage A*."""

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
    """Return ℓ_n(θ) = 1/(HK) Σ_i Σ_t π_θ(a_t|s_t)/π_{θ_n}(a_t|s_t) Q*(s_t, a_t) (Eq. 4).

    Its gradient at θ_n is Eq. 11. An action that the expert chose is not a sample of π_θ. So only steps whose
    action the learner chose count, each with weight 1/(1 − α_n), and the estimate stays unbiased.

    Args:
        policy: π_θ.
        trajectories: The K trajectories of the iteration; their α_n is below 1.
        cost_to_go: Q* or A* of the action taken, [K, T].

    Returns:
        The loss, a scalar tensor.

    Raises:
        UsageError: α_n is 1, so that the learner chose no action.
    """
    assert not cost_to_go.has_all_actions, "taken_action_loss needs one cost a step: use TakenActionOracle"
    if trajectories.alpha == 1.0:
        raise UsageError("with alpha = 1 the learner chooses no action to learn from; use an alpha below 1")
    distribution = compute_policy_distribution(policy, trajectories)
    log_probability = distribution.log_prob(torch.from_numpy(trajectories.actions))  # [K, T]
    ratio = torch.exp(log_probability - log_probability.detach())  # 1, with gradient ∇π/π
    importance = torch.from_numpy(trajectories.by_learner) / (1.0 - trajectories.alpha)
    return compute_weighted_mean(
        ratio * importance * torch.from_numpy(cost_to_go.values), distribution, cost_to_go, trajectories
    )


@dataclass(frozen=True)
class TakenActionSettings(LossSettings):
    """Importance-weighted cost-to-go of the action taken (Eq. 11, 13)."""

    name = "taken-action"
    accepts = MappingProxyType(dict.fromkeys((Feedback.ALL_ACTIONS, Feedback.TAKEN_ACTION), Feedback.TAKEN_ACTION))
    needs_learner_actions = True

    def build(self) -> Loss:
        return taken_action_loss
