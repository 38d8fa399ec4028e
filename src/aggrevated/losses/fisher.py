"""The scores ∇ log ρ_π(τ_i), one per trajectory: the columns of S_n."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution, kl_divergence

from aggrevated.losses import compute_policy_distribution, make_action_mask_tensor, make_policy_inputs
from aggrevated.policies import Policy
from aggrevated.rollout.trajectories import Trajectories


def compute_trajectory_scores(policy: Policy, trajectories: Trajectories) -> Tensor:
    """S_nᵀ, [K, d]: row i is ∇ log ρ(τ_i) / (H √K) = Σ_t ∇ log π(a_t|s_t) / (H √K), so that S_n S_nᵀ is Eq. 14.

    Only the learner's own steps have a score.
    """
    arrays = (trajectories.actions, trajectories.mask, trajectories.by_learner)
    actions, mask, own = map(torch.from_numpy, arrays)
    rows = policy.compute_scores(
        make_policy_inputs(policy, trajectories), actions, mask, own, make_action_mask_tensor(trajectories)
    )
    return rows.div_(trajectories.horizon * trajectories.count**0.5)


def compute_kl(before: Distribution, after: Distribution) -> Tensor:
    """[K, T]: KL(before ‖ after), finite also where a probability of `after` is too small for a float."""
    if not isinstance(before, Categorical) or not isinstance(after, Categorical):
        return kl_divergence(before, after)
    terms: Tensor = before.probs * (before.logits - after.logits)
    return torch.where(before.probs == 0, 0.0, terms).sum(-1)


def compute_mean_kl(before: Distribution, policy: Policy, trajectories: Trajectories) -> Tensor:
    """KL(`before` ‖ π_θ), averaged over the visited states."""
    each = compute_kl(before, compute_policy_distribution(policy, trajectories))
    return each[torch.from_numpy(trajectories.mask)].mean()


def make_fisher_product(policy: Policy, trajectories: Trajectories) -> Callable[[Tensor], Tensor]:
    """v ↦ F v with F = E[∇log π(a|s) ∇log π(a|s)ᵀ], over the visited states and all that π_n might do there.

    F is the Hessian of the mean KL at θ_n, so a product is a second backward pass: exact, and F is never formed.
    Unlike Eq. 14 it does not depend on which actions were drawn, and K does not bound its rank.
    """
    parameters = list(policy.parameters())
    with torch.no_grad():
        before = compute_policy_distribution(policy, trajectories)
    mean = compute_mean_kl(before, policy, trajectories)
    # Zero at θ_n, and F v along v. Some parameters may be for what is learned along, and not for actions.
    slope = flatten_gradients(torch.autograd.grad(mean, parameters, create_graph=True, materialize_grads=True))

    def multiply(vector: Tensor) -> Tensor:
        total = slope @ vector.to(slope.dtype)
        return flatten_gradients(torch.autograd.grad(total, parameters, retain_graph=True, materialize_grads=True)).to(
            vector.dtype
        )

    return multiply


def flatten_gradients(gradients: tuple[Tensor, ...]) -> Tensor:
    """The gradients of all parameters as one vector [d]."""
    return torch.cat([gradient.reshape(-1) for gradient in gradients])
