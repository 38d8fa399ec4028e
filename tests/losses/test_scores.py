"""S_n row by row, and its two Fisher matrices, on the tiny MDP."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.distributions import Categorical

from aggrevated.losses.fisher import compute_trajectory_scores
from aggrevated.policies import Policy
from helpers.tiny_mdp import (
    deep_policy,
    every_trajectory,
    linear_policy,
    probabilities,
    random_trajectories,
    state_distributions,
    with_expert_steps,
)


def scores_one_by_one(policy, trajectories):
    """Return row i by torch's autograd on trajectory i alone, one step at a time."""
    rows = []
    for i in range(trajectories.count):
        observations, mask = (torch.from_numpy(x[i : i + 1]) for x in (trajectories.observations, trajectories.mask))
        logits = policy.distribution(observations, mask).logits[0]
        total = 0.0 * logits.sum()
        for t in range(trajectories.mask.shape[1]):
            if trajectories.mask[i, t] and not trajectories.by_expert[i, t]:
                total = total + torch.log_softmax(logits[t], dim=-1)[trajectories.actions[i, t]]
        rows.append(torch.cat([g.reshape(-1) for g in torch.autograd.grad(total, list(policy.parameters()))]))
    return torch.stack(rows) / (trajectories.horizon * np.sqrt(trajectories.count))


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_trajectory_scores_rows_equal_scores_computed_one_by_one(alpha):
    policy = deep_policy()
    trajectories = with_expert_steps(random_trajectories(), alpha)
    torch.testing.assert_close(
        compute_trajectory_scores(policy, trajectories), scores_one_by_one(policy, trajectories), atol=1e-14, rtol=0
    )


def test_trajectory_scores_ignore_expert_steps():
    policy = deep_policy()
    trajectories = random_trajectories()
    all_by_expert = replace(trajectories, by_expert=trajectories.mask, alpha=1.0)
    assert not compute_trajectory_scores(policy, all_by_expert).any()
    mixed = with_expert_steps(trajectories, 0.5)
    other = replace(mixed, actions=np.where(mixed.by_expert, 2 - mixed.actions, mixed.actions))
    assert (mixed.actions != other.actions).any()
    assert torch.equal(compute_trajectory_scores(policy, mixed), compute_trajectory_scores(policy, other))


def test_trajectory_scores_of_uniform_policy_match_hand_computed_values():
    """∂ log π(a|s) / ∂W[b, s] = 1[a = b] − 1/3. One trajectory (s, a) = (0, 2), (0, 1) then ended, H = 4, K = 1."""
    observations = np.eye(3)[None, [0, 0, 1]]
    mask = np.array([[True, True, False]])
    actions = np.array([[2, 1, 0]])
    trajectories = replace(
        random_trajectories(k=1, t=3), observations=observations, mask=mask, actions=actions, horizon=4
    )
    weights = np.array([[-2 / 3, 0, 0], [1 / 3, 0, 0], [1 / 3, 0, 0]])
    expected = np.concatenate([weights.reshape(-1), [-2 / 3, 1 / 3, 1 / 3]]) / 4
    np.testing.assert_allclose(
        compute_trajectory_scores(linear_policy(None), trajectories).numpy()[0], expected, atol=1e-16
    )


def test_fisher_matrix_per_state_is_horizon_times_that_of_trajectories():
    """Cross terms of scores vanish in expectation, so Eq. 9 is the per-state Fisher matrix divided by H."""
    policy = linear_policy()
    every = every_trajectory(policy)
    pi = probabilities(policy)
    rows = compute_trajectory_scores(policy, every.trajectories).numpy() * np.sqrt(
        every.trajectories.count
    )  # ∇ log ρ(τ) / H
    of_trajectories = np.einsum("j,jd,je->de", every.probability, rows, rows)

    per_state = np.zeros_like(of_trajectories)
    average = state_distributions(pi).sum(axis=0) / 3  # d̄
    for s in range(3):
        for a in range(3):
            logits = np.zeros((3, 3))
            logits[:, s] = np.eye(3)[a] - pi[s]
            score = np.concatenate([logits.reshape(-1), np.eye(3)[a] - pi[s]])
            per_state += average[s] * pi[s, a] * np.outer(score, score)
    assert np.abs(per_state).max() > 0.05
    np.testing.assert_allclose(per_state, 3 * of_trajectories, atol=1e-14)


class CumulativeSumPolicy(Policy):
    """Policy with π(·|o₁ … o_t) from the sum of all observations so far; steps with mask 0 add nothing."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.weight = torch.nn.Parameter(torch.randn(3, 3, generator=generator, dtype=torch.float64))

    def distribution(self, observations, mask, legal=None):
        past = (observations * mask[..., None]).cumsum(1)
        return Categorical(logits=past @ self.weight, validate_args=False)

    def actor(self):
        raise NotImplementedError


def test_trajectory_scores_of_recurrent_policy_include_expert_steps_in_memory():
    """The expert's steps have no score, but the learner observed them, and its later actions depend on them."""
    policy = CumulativeSumPolicy()
    trajectories = with_expert_steps(random_trajectories(), 0.5)
    torch.testing.assert_close(
        compute_trajectory_scores(policy, trajectories), scores_one_by_one(policy, trajectories), atol=1e-14, rtol=0
    )
