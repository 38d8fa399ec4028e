"""The natural step: its length is δ_KL in the metric S Sᵀ + λI."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aggrevated.losses import compute_policy_distribution
from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.losses.fisher import compute_trajectory_scores
from aggrevated.oracles.q_star import QStarOracle
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.updates.fisher_solvers import solve_closed_form, solve_conjugate_gradient
from aggrevated.updates.natural import NaturalUpdate
from helpers.tiny_mdp import (
    TinyExpert,
    TinyMdp,
    deep_policy,
    flat,
    gradient,
    linear_policy,
    random_costs,
    random_trajectories,
)


@given(st.integers(1, 30), st.integers(1, 10), st.floats(-2, 2), st.floats(-6, 0), st.integers(0, 2**31))
def test_natural_displacement_has_squared_length_delta_kl(d, k, damping, delta_kl, seed):
    generator = torch.Generator().manual_seed(seed)
    s, g = (torch.randn(*size, generator=generator, dtype=torch.float64) for size in ((d, k), (d,)))
    natural = NaturalUpdate(delta_kl=10.0**delta_kl, damping=10.0**damping)
    step = natural.compute_displacement(s, g)
    metric = s @ s.T + natural.damping * s.square().sum(0).mean() * torch.eye(d, dtype=torch.float64)
    assert float(step @ metric @ step) == pytest.approx(natural.delta_kl, rel=1e-8)
    assert float(g @ step) < 0


def test_natural_displacement_matches_hand_computed_step():
    """S = (3, 4)ᵀ, ‖s‖² = 25, damping 0.2 so λ = 5; g = (1, 0): δ = (0.14, −0.08), η = √(δ_KL / 0.14)."""
    step = NaturalUpdate(delta_kl=0.0014, damping=0.2).compute_displacement(
        torch.tensor([[3.0], [4.0]]), torch.tensor([1.0, 0.0])
    )
    torch.testing.assert_close(step, torch.tensor([-0.014, 0.008]))


def test_natural_update_uses_delta_kl_schedule_of_iteration():
    """A quarter of δ_KL halves the step in the same direction; the trajectories hold n."""
    s = torch.tensor([[3.0], [4.0]])
    g = torch.tensor([1.0, 0.0])
    natural = NaturalUpdate(delta_kl=lambda n: 0.0014 / n**2, damping=0.2)
    torch.testing.assert_close(natural.compute_displacement(s, g, 1), torch.tensor([-0.014, 0.008]))
    torch.testing.assert_close(natural.compute_displacement(s, g, 2), torch.tensor([-0.007, 0.004]))
    trajectories = random_trajectories(k=20)
    costs = random_costs(trajectories)
    moved = []
    for update, n in ((natural, 5), (NaturalUpdate(0.0014 / 25, damping=0.2), 1), (natural, 1)):
        policy = deep_policy()
        update(policy, all_actions_loss, replace(trajectories, n=n), costs)
        moved.append(flat(policy) - flat(deep_policy()))
    np.testing.assert_array_equal(moved[0], moved[1])
    np.testing.assert_allclose(moved[2], 5 * moved[0], rtol=1e-6)


@pytest.mark.parametrize("solver", [solve_closed_form, solve_conjugate_gradient])
def test_natural_update_moves_policy_by_displacement(solver):
    """The whole update: θ moves by −η δ, with δ computed here from separate S_n and ∇ℓ_n."""
    policy = deep_policy()
    trajectories = random_trajectories(k=20)
    costs = random_costs(trajectories)
    s = compute_trajectory_scores(policy, trajectories).T
    g = torch.from_numpy(gradient(policy, all_actions_loss, trajectories, costs))
    natural = NaturalUpdate(delta_kl=1e-4, damping=1.0, solver=solver)
    before = flat(policy)
    metric = s @ s.T + s.square().sum(0).mean() * torch.eye(len(g), dtype=torch.float64)
    delta = torch.linalg.solve(metric, g)
    step = natural(policy, all_actions_loss, trajectories, costs)
    np.testing.assert_allclose(flat(policy) - before, -torch.sqrt(1e-4 / (g @ delta)) * delta, atol=1e-10)
    assert step.step_halvings == 0
    assert step.gradient_norm == pytest.approx(float(g.norm()))
    assert all_actions_loss(policy, trajectories, costs).item() < step.loss


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_natural_update_mean_kl_per_state_is_half_horizon_times_delta_kl(alpha):
    """The scale of `delta_kl`: Eq. 9 is the Fisher matrix per state over H, up to sampling and little damping.

    With mixing, only a share 1 − α of the steps has a score; without a correction the KL is 1/(1 − α) times too large.
    """
    policy = linear_policy().float()
    mixture = RollInPolicy(TinyExpert(), policy.actor(), alpha)
    trajectories = roll_in(TinyMdp(), mixture, np.arange(2000, dtype=np.uint64))
    step = NaturalUpdate(delta_kl=1e-4, damping=1e-3)(
        policy, all_actions_loss, trajectories, QStarOracle(TinyExpert())(trajectories)
    )
    averaged_over_h = step.kl * trajectories.steps / (3 * trajectories.count)  # steps after the end have no KL
    assert averaged_over_h == pytest.approx(3 * 1e-4 / 2, rel=0.1)


def test_natural_update_without_learner_steps_keeps_policy():
    policy = deep_policy()
    trajectories = random_trajectories()
    trajectories = replace(trajectories, by_expert=trajectories.mask, alpha=1.0)
    before = flat(policy)
    step = NaturalUpdate()(policy, all_actions_loss, trajectories, random_costs(trajectories))
    np.testing.assert_array_equal(flat(policy), before)
    assert (step.kl, step.step_halvings) == (0.0, 0)


def test_natural_update_is_invariant_to_cost_unit():
    """η = √(δ_KL / gᵀδ) cancels the unit of the costs."""
    trajectories = random_trajectories()
    moved = []
    for scale in (1.0, 1000.0):
        policy = deep_policy()
        NaturalUpdate()(policy, all_actions_loss, trajectories, random_costs(trajectories, scale=scale))
        moved.append(flat(policy))
    np.testing.assert_allclose(moved[0], moved[1], atol=1e-12)


def fisher_per_state(policy, trajectories):
    """Return the mean over visited states of Σ_a π(a|s) ∇log π(a|s) ∇log π(a|s)ᵀ [d, d], one score at a time."""
    log_probs = compute_policy_distribution(policy, trajectories).logits[torch.from_numpy(trajectories.mask)]
    total = 0.0
    for log_prob in log_probs.reshape(-1):
        gradients = torch.autograd.grad(log_prob, list(policy.parameters()), retain_graph=True)
        score = torch.cat([g.reshape(-1) for g in gradients])
        total = total + log_prob.exp().detach() * torch.outer(score, score)
    return total / trajectories.steps


@pytest.mark.parametrize("damping", [0.03, 1.0])
def test_natural_update_per_state_follows_dense_solution(damping):
    """With as many iterations as weights: (F + λI) δ = g, λ relative to gᵀFg / gᵀg, and a mean KL of H·δ_KL/2."""
    policy = deep_policy()
    trajectories = random_trajectories(k=20)
    costs = random_costs(trajectories)
    g = torch.from_numpy(gradient(policy, all_actions_loss, trajectories, costs))
    fisher = fisher_per_state(policy, trajectories)
    metric = fisher + damping * (g @ fisher @ g) / (g @ g) * torch.eye(len(g), dtype=torch.float64)
    delta = torch.linalg.solve(metric, g)
    before = flat(policy)
    step = NaturalUpdate(delta_kl=1e-6, damping=damping, per_state=200)(policy, all_actions_loss, trajectories, costs)
    expected = -torch.sqrt(trajectories.horizon * 1e-6 / (g @ delta)) * delta
    np.testing.assert_allclose(flat(policy) - before, expected, rtol=1e-4, atol=1e-9)
    assert 0 < step.kl < trajectories.horizon * 1e-6 / 2


@pytest.mark.parametrize("update", [{"per_state": 10, "damping": 0.03}, {"damping": 1.0}, {"damping": 10.0}], ids=str)
@pytest.mark.parametrize("target", [0.001, 0.01, 0.1])
def test_natural_update_measured_kl_is_near_target(update, target):
    policy = deep_policy()
    natural = NaturalUpdate(target_kl=target, **update)
    for n in range(1, 6):
        trajectories = replace(random_trajectories(k=20, seed=n), n=n)
        step = natural(policy, all_actions_loss, trajectories, random_costs(trajectories, seed=n))
        assert target / 1.5 <= step.kl <= 1.5 * target


def test_natural_update_follows_target_kl_schedule():
    natural = NaturalUpdate(target_kl=lambda n: 0.02 / n)
    trajectories = random_trajectories(k=20)
    for n in (1, 10):
        step = natural(deep_policy(), all_actions_loss, replace(trajectories, n=n), random_costs(trajectories))
        assert step.kl == pytest.approx(0.02 / n, rel=0.5)


def test_natural_update_target_kl_is_limited_by_max_kl():
    trajectories = random_trajectories(k=20)
    step = NaturalUpdate(target_kl=10.0, max_kl=0.3)(
        deep_policy(), all_actions_loss, trajectories, random_costs(trajectories)
    )
    assert 0.1 < step.kl <= 0.3


def test_natural_update_state_holds_cost_scale_only():
    natural = NaturalUpdate()
    assert natural.state() == {}
    with pytest.raises(AssertionError):
        natural.restore({"moment": torch.zeros(1)})
    with pytest.raises(AssertionError):
        natural.restore({"cost_scale": torch.ones(2)})
    measured = NaturalUpdate(normalize_costs=True)
    measured.restore({"cost_scale": torch.tensor([8.0, 2.0], dtype=torch.float64)})
    assert measured.state()["cost_scale"].tolist() == [8.0, 2.0]
