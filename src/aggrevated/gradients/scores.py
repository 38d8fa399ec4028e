"""The scores ∇ log ρ_π(τ_i), one per trajectory: the columns of S_n."""

import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap

from aggrevated.policies import Policy
from aggrevated.trajectories import Trajectories


def scores(policy: Policy, trajectories: Trajectories) -> Tensor:
    """S_nᵀ, [K, d]: row i is ∇ log ρ(τ_i) / (H √K) = Σ_t ∇ log π(a_t|s_t) / (H √K), so that S_n S_nᵀ is Eq. 14.

    Only the learner's own steps have a score. One vectorised backward pass for all K.
    """

    def log_likelihood(theta: dict[str, Tensor], *one: Tensor) -> Tensor:
        observations, actions, mask, own = (x[None] for x in one)
        distribution = functional_call(policy, theta, (observations, mask))
        total: Tensor = (distribution.log_prob(actions) * own).sum()
        return total

    theta = {name: parameter.detach() for name, parameter in policy.named_parameters()}
    arrays = (trajectories.observations, trajectories.actions, trajectories.mask, trajectories.by_learner)
    per_trajectory = vmap(grad(log_likelihood), in_dims=(None, 0, 0, 0, 0))(theta, *map(torch.from_numpy, arrays))
    rows = torch.cat([g.reshape(trajectories.count, -1) for g in per_trajectory.values()], dim=1)
    return rows.div_(trajectories.horizon * trajectories.count**0.5)
