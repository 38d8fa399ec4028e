"""Projection onto a policy that is a table of logits, in closed form: Eq. 7 itself."""

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

from aggrevated.losses import compute_policy_distribution
from aggrevated.policies import Policy
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.updates.projection_targets import CategoricalTarget


def is_table(policy: Policy, trajectories: Trajectories) -> bool:
    """Return whether the policy has separate logits for each observation."""
    if not isinstance(policy, FeedForwardPolicy) or len(policy.network) != 1:
        return False
    observations = trajectories.observations[trajectories.mask]
    return bool((observations.max(axis=1) == 1.0).all() and (np.abs(observations).sum(axis=1) == 1.0).all())


@torch.no_grad()
def fill_table(policy: Policy, trajectories: Trajectories, target: CategoricalTarget) -> None:
    """Project onto a table: set the logits of each observation to the mean of its targets; others stay."""
    assert isinstance(policy, FeedForwardPolicy)
    mask = torch.from_numpy(trajectories.mask)
    current = compute_policy_distribution(policy, trajectories)
    assert isinstance(current, Categorical)
    layer = policy.network[0]
    assert isinstance(layer, nn.Linear)
    weight = layer.weight  # [A, S]
    one_hot = torch.from_numpy(trajectories.observations)[mask].to(weight.dtype)
    counts = one_hot * target.weight[mask][:, None]  # [n, S]
    change = counts.T @ (target.logits - current.logits)[mask].to(weight.dtype)
    weight += (change / counts.sum(dim=0).clamp(min=1e-12)[:, None]).T
