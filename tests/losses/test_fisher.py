"""Products with the per-state Fisher matrix, against the matrix itself."""

import numpy as np
import pytest
import torch

from aggrevated.losses import compute_policy_distribution, make_action_mask_tensor
from aggrevated.losses.fisher import compute_mean_kl, make_fisher_product
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead, GaussianHead
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.policies.window import WindowPolicy
from helpers.tiny_mdp import random_trajectories, randomise, with_legal

KINDS = {
    "feed-forward": lambda head: FeedForwardPolicy(3, head, hidden=(5,)),
    "window": lambda head: WindowPolicy(3, head, hidden=(5,), width=2),
    "lstm": lambda head: RecurrentPolicy(3, head, 4, "lstm"),
    "gru": lambda head: RecurrentPolicy(3, head, 4, "gru"),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def make_policy(kind, head):
    return randomise(KINDS[kind](head).double(), 0)


def gradient_of(value, policy):
    """Return the gradient, with zeros for parameters that the value does not depend on."""
    parameters = list(policy.parameters())
    gradients = torch.autograd.grad(value, parameters, retain_graph=True, allow_unused=True, materialize_grads=True)
    return torch.cat([g.reshape(-1) for g in gradients])


def dense_fisher_matrix(policy, trajectories):
    """Return the mean over the visited states of Σ_a π(a|s) ∇log π(a|s) ∇log π(a|s)ᵀ, one score at a time."""
    log_probs = compute_policy_distribution(policy, trajectories).logits
    legal = make_action_mask_tensor(trajectories)
    total = 0.0
    for k, t in np.argwhere(trajectories.mask):
        for a in range(3):
            if legal is None or legal[k, t, a]:
                score = gradient_of(log_probs[k, t, a], policy)
                total = total + log_probs[k, t, a].exp().detach() * torch.outer(score, score)
    return total / trajectories.steps


def assert_products_of(matrix, policy, trajectories):
    product = make_fisher_product(policy, trajectories)
    for seed in range(3):
        vector = torch.randn(len(matrix), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        torch.testing.assert_close(product(vector), matrix @ vector, rtol=1e-8, atol=1e-10)


@every_kind
@pytest.mark.parametrize("add_action_mask", [lambda x: x, with_legal], ids=["all legal", "some illegal"])
def test_fisher_product_is_the_mean_outer_product_of_scores(kind, add_action_mask):
    policy = make_policy(kind, CategoricalHead(3))
    trajectories = add_action_mask(random_trajectories(k=3, t=3))
    assert_products_of(dense_fisher_matrix(policy, trajectories), policy, trajectories)


def test_fisher_product_of_gaussian_policy_matches_closed_form():
    """F = E[J_μᵀ Σ⁻¹ J_μ] for the mean, and 2 for each log-deviation."""
    policy = make_policy("feed-forward", GaussianHead(2))
    trajectories = random_trajectories(k=3, t=3)
    mean = compute_policy_distribution(policy, trajectories).mean
    deviation = policy.head.log_deviation.detach().exp()
    rows = [gradient_of(mean[k, t, a], policy) for k, t in np.argwhere(trajectories.mask) for a in (0, 1)]
    scaled = torch.stack(rows) / deviation.repeat(trajectories.steps)[:, None]
    matrix = scaled.T @ scaled / trajectories.steps
    names = [name for name, _ in policy.named_parameters()]
    at = 0
    for name, parameter in zip(names, policy.parameters(), strict=True):
        if name == "head.log_deviation":
            matrix[at : at + 2, at : at + 2] = 2 * torch.eye(2, dtype=torch.float64)
        at += parameter.numel()
    assert_products_of(matrix, policy, trajectories)


@every_kind
def test_fisher_product_predicts_kl_of_a_short_step(kind):
    policy = make_policy(kind, CategoricalHead(3))
    trajectories = random_trajectories()
    with torch.no_grad():
        before = compute_policy_distribution(policy, trajectories)
    theta = torch.nn.utils.parameters_to_vector(policy.parameters()).detach()
    step = 1e-3 * torch.randn(len(theta), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = float(step @ make_fisher_product(policy, trajectories)(step)) / 2
    torch.nn.utils.vector_to_parameters(theta + step, policy.parameters())
    assert compute_mean_kl(before, policy, trajectories).item() == pytest.approx(expected, rel=0.02)
