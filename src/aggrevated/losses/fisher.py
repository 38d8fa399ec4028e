"""Scores ∇ log ρ_π(τ_i) of trajectories (columns of S_n), and products with the Fisher matrix per state."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution, kl_divergence

from aggrevated.losses import compute_policy_distribution, make_action_mask_tensor, make_policy_inputs
from aggrevated.policies import Policy
from aggrevated.rollout.trajectories import Trajectories


def compute_trajectory_scores(policy: Policy, trajectories: Trajectories) -> Tensor:
    """Return S_nᵀ [K, d], whose row i is the score ∇ log ρ(τ_i) / (H √K) = Σ_t ∇ log π(a_t|s_t) / (H √K).

    S_n S_nᵀ is Eq. 14. Only steps whose action the learner chose have a score.
    """
    arrays = (trajectories.actions, trajectories.mask, trajectories.by_learner)
    actions, mask, by_learner = map(torch.from_numpy, arrays)
    rows = policy.compute_scores(
        make_policy_inputs(policy, trajectories), actions, mask, by_learner, make_action_mask_tensor(trajectories)
    )
    return rows.div_(trajectories.horizon * trajectories.count**0.5)


def compute_kl(before: Distribution, after: Distribution) -> Tensor:
    """Return KL(before ‖ after) [K, T], finite even where a probability of `after` underflows."""
    if not isinstance(before, Categorical) or not isinstance(after, Categorical):
        return kl_divergence(before, after)
    terms: Tensor = before.probs * (before.logits - after.logits)
    return torch.where(before.probs == 0, 0.0, terms).sum(-1)


def compute_mean_kl(before: Distribution, policy: Policy, trajectories: Trajectories) -> Tensor:
    """Return KL(`before` ‖ π_θ), averaged over the visited states."""
    kl = compute_kl(before, compute_policy_distribution(policy, trajectories))
    return kl[torch.from_numpy(trajectories.mask)].mean()


def make_fisher_product(policy: Policy, trajectories: Trajectories) -> Callable[[Tensor], Tensor]:
    """Return v ↦ F v for F = E[∇log π(a|s) ∇log π(a|s)ᵀ], over the visited states s and actions a ~ π_n.

    F is the Hessian of the mean KL at θ_n. A product is a second backward pass: it is exact, and F is never
    formed. Unlike Eq. 14, F does not depend on which actions were sampled, and K does not bound its rank.
    """
    parameters = list(policy.parameters())
    with torch.no_grad():
        before = compute_policy_distribution(policy, trajectories)
    mean = compute_mean_kl(before, policy, trajectories)
    # The gradient is 0 at θ_n; its derivative along v is F v. Parameters of auxiliary losses only get zeros.
    slope = flatten_gradients(torch.autograd.grad(mean, parameters, create_graph=True, materialize_grads=True))

    def multiply(vector: Tensor) -> Tensor:
        total = slope @ vector.to(slope.dtype)
        return flatten_gradients(torch.autograd.grad(total, parameters, retain_graph=True, materialize_grads=True)).to(
            vector.dtype
        )

    return multiply


def flatten_gradients(gradients: tuple[Tensor, ...]) -> Tensor:
    """Return the gradients of all parameters as one vector [d]."""
    return torch.cat([gradient.reshape(-1) for gradient in gradients])
