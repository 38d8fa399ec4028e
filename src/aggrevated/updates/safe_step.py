"""A step that would break the policy is shortened and counted, never taken: no run ends in NaN."""

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
MAX_TRIES = 8  # of a step that is to have a certain KL
MAX_STEP_FACTOR = 8.0  # times as long as it was thought to be
KL_TOLERANCE_FACTOR = 1.5  # a KL within this factor of its target is near enough


@torch.no_grad()
def take_safe_step(
    policy: Policy, trajectories: Trajectories, displacement: Tensor, max_kl: float
) -> tuple[float, int]:
    """Move θ by `displacement`, halved until θ is finite and the mean KL at most `max_kl`; (that KL, the halvings).

    After the last halving the policy stays as it was.
    """
    theta = parameters_to_vector(policy.parameters())
    before = compute_policy_distribution(policy, trajectories)
    for halvings in range(MAX_HALVINGS):
        kl = set_parameters_and_measure_kl(theta + displacement / 2**halvings, policy, before, trajectories)
        if kl <= max_kl:
            return kl, halvings
    vector_to_parameters(theta, policy.parameters())
    return 0.0, MAX_HALVINGS


@torch.no_grad()
def search_step_to_kl(
    policy: Policy, trajectories: Trajectories, displacement: Tensor, target: float
) -> tuple[float, float]:
    """Move θ along `displacement` until the mean KL is near `target`; (that KL, how many displacements far).

    After the last try the longest step that was too short is taken, if there was one.
    """
    if not displacement.any():
        return 0.0, 1.0
    theta = parameters_to_vector(policy.parameters())
    before = compute_policy_distribution(policy, trajectories)
    short = 0.0
    far = 1.0
    long = MAX_STEP_FACTOR
    for _ in range(MAX_TRIES):
        kl = set_parameters_and_measure_kl(theta + far * displacement, policy, before, trajectories)
        if target / KL_TOLERANCE_FACTOR <= kl <= target * KL_TOLERANCE_FACTOR:
            return kl, far
        short, long = (far, long) if kl < target else (short, far)
        aimed = far * compute_second_order_correction(kl, target)
        far = aimed if short < aimed < long else (short + long) / 2
    if not short:
        vector_to_parameters(theta, policy.parameters())
        return 0.0, 0.0
    return set_parameters_and_measure_kl(theta + short * displacement, policy, before, trajectories), short


def set_parameters_and_measure_kl(
    theta: Tensor, policy: Policy, before: Distribution, trajectories: Trajectories
) -> float:
    """Put θ into the policy; the mean KL of that from `before`, NaN where a weight is not finite."""
    vector_to_parameters(theta, policy.parameters())
    return float(compute_mean_kl(before, policy, trajectories)) if is_all_finite(theta) else math.nan


def is_all_finite(x: Tensor) -> bool:
    """Whether each number is finite: where one is not, nor is the least or the greatest. In a twentieth of the time."""
    low, high = torch.aminmax(x)
    return math.isfinite(low) and math.isfinite(high)


def compute_second_order_correction(kl: float, target: float) -> float:
    """How much longer a step must be: KL grows with its square. At most twice as long, at least a quarter."""
    return min(max(math.sqrt(target / max(kl, 1e-30)), 0.25), 2.0) if math.isfinite(kl) else 0.25


def count_halvings(far: float) -> int:
    """How many halvings come to such a part of a step."""
    return max(0, math.floor(-math.log2(far))) if far else MAX_HALVINGS
