"""Steps that are shortened until the policy's parameters and its KL are finite and small enough."""

import math

import torch
from torch import Tensor
from torch.distributions import Distribution
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from aggrevated.losses import compute_policy_distribution
from aggrevated.losses.fisher import compute_mean_kl
from aggrevated.policies import Policy
from aggrevated.rollout.trajectories import Trajectories

MAX_HALVINGS = 20
MAX_TRIES = 8  # to find a step of the target KL
MAX_STEP_FACTOR = 8.0  # the longest step, as a multiple of the displacement
KL_TOLERANCE_FACTOR = 1.5  # a KL within this factor of its target is accepted


@torch.no_grad()
def take_safe_step(
    policy: Policy, trajectories: Trajectories, displacement: Tensor, max_kl: float
) -> tuple[float, int]:
    """Move θ by `displacement`, halved until θ is finite and the mean KL is at most `max_kl`.

    After `MAX_HALVINGS` halvings the policy is left unchanged.

    Args:
        policy: π_θ; its parameters are changed in place.
        trajectories: Trajectories whose states the KL is averaged over.
        displacement: The step, [d].
        max_kl: The largest mean KL per state, in nats.

    Returns:
        The mean KL of the step, and the number of halvings.
    """
    theta = parameters_to_vector(policy.parameters())
    old_distribution = compute_policy_distribution(policy, trajectories)
    for halvings in range(MAX_HALVINGS):
        kl = set_parameters_and_measure_kl(theta + displacement / 2**halvings, policy, old_distribution, trajectories)
        if kl <= max_kl:
            return kl, halvings
    vector_to_parameters(theta, policy.parameters())
    return 0.0, MAX_HALVINGS


@torch.no_grad()
def search_step_to_kl(
    policy: Policy, trajectories: Trajectories, displacement: Tensor, target: float
) -> tuple[float, float]:
    """Move θ along `displacement` so that the mean KL is near `target`; return the KL and the step's scale.

    The scale is a multiple of `displacement`. If the search fails, the longest step that was too short is
    taken.
    """
    if not displacement.any():
        return 0.0, 1.0
    theta = parameters_to_vector(policy.parameters())
    old_distribution = compute_policy_distribution(policy, trajectories)
    lower = 0.0
    scale = 1.0
    upper = MAX_STEP_FACTOR
    for _ in range(MAX_TRIES):
        kl = set_parameters_and_measure_kl(theta + scale * displacement, policy, old_distribution, trajectories)
        if target / KL_TOLERANCE_FACTOR <= kl <= target * KL_TOLERANCE_FACTOR:
            return kl, scale
        lower, upper = (scale, upper) if kl < target else (lower, scale)
        proposal = scale * compute_second_order_correction(kl, target)
        scale = proposal if lower < proposal < upper else (lower + upper) / 2
    if not lower:
        vector_to_parameters(theta, policy.parameters())
        return 0.0, 0.0
    return set_parameters_and_measure_kl(theta + lower * displacement, policy, old_distribution, trajectories), lower


def set_parameters_and_measure_kl(
    theta: Tensor, policy: Policy, old_distribution: Distribution, trajectories: Trajectories
) -> float:
    """Set the policy's parameters to θ, and return its mean KL from `old_distribution`; NaN if θ is not finite."""
    vector_to_parameters(theta, policy.parameters())
    return float(compute_mean_kl(old_distribution, policy, trajectories)) if is_all_finite(theta) else math.nan


def is_all_finite(x: Tensor) -> bool:
    """Return whether all numbers are finite, from their extremes: 20 times faster than `isfinite().all()`."""
    low, high = torch.aminmax(x)
    return math.isfinite(low) and math.isfinite(high)


def compute_second_order_correction(kl: float, target: float) -> float:
    """Return the factor, 0.25 to 2, for a step to reach `target`: the KL grows with the step's square."""
    return min(max(math.sqrt(target / max(kl, 1e-30)), 0.25), 2.0) if math.isfinite(kl) else 0.25


def count_halvings(scale: float) -> int:
    """Return the number of halvings that scale a step by at most `scale`, rounded down."""
    return max(0, math.floor(-math.log2(scale))) if scale else MAX_HALVINGS
