"""The scores ∇ log ρ_π(τ_i), one per trajectory: the columns of S_n."""

import torch
from torch import Tensor

from aggrevated.losses import action_mask_tensor, policy_inputs
from aggrevated.policies import Policy
from aggrevated.rollout.trajectories import Trajectories


def compute_trajectory_scores(policy: Policy, trajectories: Trajectories) -> Tensor:
    """S_nᵀ, [K, d]: row i is ∇ log ρ(τ_i) / (H √K) = Σ_t ∇ log π(a_t|s_t) / (H √K), so that S_n S_nᵀ is Eq. 14.

    Only the learner's own steps have a score.
    """
    arrays = (trajectories.actions, trajectories.mask, trajectories.by_learner)
    actions, mask, own = map(torch.from_numpy, arrays)
    rows = policy.scores(policy_inputs(policy, trajectories), actions, mask, own, action_mask_tensor(trajectories))
    return rows.div_(trajectories.horizon * trajectories.count**0.5)
