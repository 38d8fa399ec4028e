"""A step that would break the policy is shortened and counted, never taken: no run ends in NaN."""

import torch
from torch import Tensor
from torch.distributions import kl_divergence
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from aggrevated.losses import distribution_at
from aggrevated.policies import Policy
from aggrevated.trajectories import Trajectories

MOST_HALVINGS = 20


@torch.no_grad()
def safe_step(policy: Policy, trajectories: Trajectories, displacement: Tensor, max_kl: float) -> tuple[float, int]:
    """Move θ by `displacement`, halved until θ is finite and the mean KL at most `max_kl`; (that KL, the halvings).

    After the last halving the policy stays as it was.
    """
    theta = parameters_to_vector(policy.parameters())
    mask = torch.from_numpy(trajectories.mask)
    before = distribution_at(policy, trajectories)
    for halvings in range(MOST_HALVINGS):
        vector_to_parameters(theta + displacement / 2**halvings, policy.parameters())
        kl = float(kl_divergence(before, distribution_at(policy, trajectories))[mask].mean())
        if kl <= max_kl and torch.isfinite(parameters_to_vector(policy.parameters())).all():
            return kl, halvings
    vector_to_parameters(theta, policy.parameters())
    return 0.0, MOST_HALVINGS
