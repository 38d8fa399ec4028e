"""Solvers of (S Sᵀ + λI) δ = g against dense solutions."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aggrevated.updates.fisher_solvers import (
    BLOCK,
    GRID,
    solve_closed_form,
    solve_conjugate_gradient,
    solve_held_out,
    solve_krylov,
)
from aggrevated.updates.fisher_solvers import SOLVERS as NAMED

SOLVERS = pytest.mark.parametrize("solver", [solve_closed_form, solve_conjugate_gradient])


def system(d, k, seed):
    generator = torch.Generator().manual_seed(seed)
    s, g = (torch.randn(*size, generator=generator, dtype=torch.float64) for size in ((d, k), (d,)))
    return s, g


@SOLVERS
def test_fisher_solvers_match_hand_computed_solution(solver):
    """S = (3, 4)ᵀ, λ = 5, g = (1, 0): S Sᵀ + 5I = [14 12; 12 21], determinant 150, δ = (21, −12)/150."""
    delta = solver(torch.tensor([[3.0], [4.0]]), torch.tensor([1.0, 0.0]), 5.0)
    torch.testing.assert_close(delta, torch.tensor([0.14, -0.08], dtype=torch.float64), atol=1e-14, rtol=0)


@SOLVERS
@given(st.integers(1, 60), st.integers(1, 20), st.floats(-3, 3), st.integers(0, 2**31))
def test_fisher_solvers_agree_with_dense_solution(solver, d, k, exponent, seed):
    s, g = system(d, k, seed)
    damping = 10.0**exponent * float(s.square().sum(0).mean())  # relative to the mean squared column, as in `Natural`
    dense = torch.linalg.solve(s @ s.T + damping * torch.eye(d, dtype=torch.float64), g)
    delta = solver(s, g, damping)
    assert delta.dtype == torch.float64
    assert float((delta - dense).norm() / dense.norm()) < 1e-8
    assert g @ delta > 0


@given(st.integers(1, 40), st.integers(1, 12), st.floats(-3, 3), st.integers(0, 2**31))
def test_fisher_solvers_agree_for_float32_and_repeated_columns(d, k, exponent, seed):
    """Trajectories may be equal: the rank of S is then below K."""
    s, g = system(d, k, seed)
    s = torch.cat([s, s], dim=1).float()
    g = g.float()
    damping = 10.0**exponent * float(s.square().sum(0).mean())
    exact = solve_closed_form(s, g, damping)
    iterated = solve_conjugate_gradient(s, g, damping)
    assert float((exact - iterated).norm() / exact.norm()) < 1e-8


@SOLVERS
@pytest.mark.parametrize("more", [-1, 0, 1, BLOCK + 5])
def test_fisher_solvers_count_every_row_across_blocks(solver, more):
    """Every row counts once, also those of an incomplete last block; S and g are float32 as in updates."""
    s, g = (x.float() for x in system(BLOCK + more, 3, 0))
    exact = s.double()
    damping = 0.1 * float(s.double().square().sum(0).mean())
    small = exact.T @ exact + damping * torch.eye(3, dtype=torch.float64)
    expected = (g.double() - exact @ torch.linalg.solve(small, exact.T @ g.double())) / damping
    delta = solver(s, g, damping)
    assert float((delta - expected).norm() / expected.norm()) < 1e-12


@given(st.integers(1, 12), st.integers(0, 30), st.integers(0, 2**31))
def test_closed_form_keeps_precision_with_little_damping_at_full_rank(d, more, seed):
    """S Sᵀ has full rank and is solved directly: Woodbury's identity would divide a small difference by λ."""
    s, g = system(d, 3 * d + more, seed)
    damping = 1e-12 * float(s.square().sum(0).mean())
    dense = torch.linalg.solve(s @ s.T + damping * torch.eye(d, dtype=torch.float64), g)
    assert float((solve_closed_form(s, g, damping) - dense).norm() / dense.norm()) < 1e-10


@pytest.mark.parametrize("shape", [(3000, 4), (4, 3000)])
def test_closed_form_solves_system_of_the_smaller_side(shape, monkeypatch):
    solved = []
    solve = torch.linalg.solve
    monkeypatch.setattr(
        torch.linalg, "solve", lambda matrix, right: solved.append(matrix.shape) or solve(matrix, right)
    )
    solve_closed_form(*system(*shape, 0), 0.1)
    assert solved == [(4, 4)]


@pytest.mark.parametrize("solver", [solve_closed_form, solve_conjugate_gradient, solve_held_out])
def test_fisher_solvers_do_not_copy_whole_score_matrix(solver, monkeypatch):
    """In float64 there are vectors and blocks of rows, but no array of the size of S."""
    s, g = (x.float() for x in system(4 * BLOCK, 40, 0))
    copied = []
    double = torch.Tensor.double
    monkeypatch.setattr(torch.Tensor, "double", lambda x: copied.append(x.numel()) or double(x))
    solver(s, g, 0.1)
    assert copied and max(copied) == 40 * BLOCK


@SOLVERS
def test_fisher_solvers_return_zero_for_zero_gradient(solver):
    s, g = system(5, 3, 0)
    assert not solver(s, torch.zeros_like(g), 1.0).any()


@SOLVERS
def test_fisher_solvers_do_not_modify_inputs(solver):
    s, g = system(5, 3, 0)
    before = s.clone(), g.clone()
    solver(s, g, 0.1)
    assert torch.equal(s, before[0]) and torch.equal(g, before[1])


def test_conjugate_gradient_converges_in_k_plus_1_iterations():
    """S Sᵀ + λI has at most K + 1 distinct eigenvalues for any d."""
    s, g = system(200, 4, 0)
    damping = float(s.square().sum(0).mean())
    few = solve_conjugate_gradient(s, g, damping, iterations=5)
    np.testing.assert_allclose(few, solve_closed_form(s, g, damping), rtol=1e-10, atol=1e-14)
    assert (solve_conjugate_gradient(s, g, damping, iterations=2) - few).norm() > 1e-6 * few.norm()


def textbook(matrix, g, iterations):
    """Textbook conjugate gradient with the explicit matrix."""
    delta = np.zeros_like(g)
    residual = g.copy()
    direction = residual.copy()
    for _ in range(iterations):
        alpha = (residual @ residual) / (direction @ matrix @ direction)
        delta = delta + alpha * direction
        following = residual - alpha * (matrix @ direction)
        direction = following + (following @ following) / (residual @ residual) * direction
        residual = following
    return delta


@pytest.mark.parametrize("iterations", [1, 3, 6])
def test_conjugate_gradient_undamped_matches_textbook_algorithm(iterations):
    """S Sᵀ δ = g has no solution for most g; fewer iterations than the rank still give a δ."""
    s, g = system(30, 8, 0)
    expected = textbook((s @ s.T).numpy(), g.numpy(), iterations)
    delta = NAMED["conjugate-gradient"](iterations)(s, g, 0.0)
    np.testing.assert_allclose(delta, expected, rtol=1e-8, atol=1e-10)
    assert g @ delta == pytest.approx(float((s.T @ delta).square().sum()), rel=1e-8)  # gᵀδ = δᵀ S Sᵀ δ


def test_conjugate_gradient_undamped_minimizes_model_over_krylov_space():
    """δ = V (Vᵀ F V)⁻¹ Vᵀ g, with V a basis of g, F g, F² g."""
    s, g = system(30, 8, 1)
    fisher = s @ s.T
    basis, _ = torch.linalg.qr(torch.stack([g, fisher @ g, fisher @ fisher @ g], dim=1))
    expected = basis @ torch.linalg.solve(basis.T @ fisher @ basis, basis.T @ g)
    torch.testing.assert_close(solve_conjugate_gradient(s, g, 0.0, iterations=3), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("k", [1, 4])
def test_conjugate_gradient_undamped_stops_changing_after_k_iterations(k):
    """After K iterations the residual of g is outside the span of S, so further iterations change nothing."""
    s, g = system(30, k, 0)
    delta = solve_conjugate_gradient(s, g, 0.0, iterations=k)
    torch.testing.assert_close(solve_conjugate_gradient(s, g, 0.0, iterations=50), delta, rtol=1e-6, atol=1e-8)


def test_krylov_inverts_matrix_of_full_rank():
    s, g = system(6, 9, 0)
    delta = solve_krylov(lambda v: s @ (s.T @ v), g, iterations=20)
    torch.testing.assert_close(delta, torch.linalg.solve(s @ s.T, g), rtol=1e-6, atol=1e-8)


def test_krylov_returns_zero_without_curvature():
    assert not solve_krylov(torch.zeros_like, torch.ones(3), iterations=5).any()


def dense_choice(s, g):
    """Return the λ of the grid with the largest gain on held-out columns, computed with whole matrices."""
    d, k = s.shape
    length = float(s.square().sum(0).mean())
    gains = []
    for damping in GRID:
        gain = 0.0
        for train, held_out in ((s[:, ::2], s[:, 1::2]), (s[:, 1::2], s[:, ::2])):
            metric = k / train.shape[1] * train @ train.T + damping * length * torch.eye(d, dtype=s.dtype)
            delta = torch.linalg.solve(metric, g)
            gain += float(g @ delta / (held_out.T @ delta).norm())
        gains.append(gain)
    return GRID[int(np.argmax(gains))] * length


@given(st.integers(2, 30), st.integers(2, 9), st.floats(0, 5), st.integers(0, 2**31))
def test_held_out_uses_damping_that_is_best_for_the_other_half(d, k, common, seed):
    s, g = system(d, k, seed)
    s = s + common * g[:, None]  # from columns that agree about g to columns without a common part
    expected = solve_closed_form(s, g, dense_choice(s, g))
    torch.testing.assert_close(solve_held_out(s, g), expected, rtol=1e-6, atol=1e-9)


def test_held_out_uses_least_damping_for_identical_halves():
    """Every column occurs twice, once in each half, so the least damping is best."""
    s, g = system(20, 4, 0)
    repeated = torch.stack([s, s], dim=2).reshape(20, 8)
    length = float(s.square().sum(0).mean())
    torch.testing.assert_close(solve_held_out(repeated, g), solve_closed_form(repeated, g, min(GRID) * length))


def test_held_out_respects_minimum_damping():
    s, g = system(20, 4, 0)
    least = 1e6 * float(s.square().sum(0).mean())
    torch.testing.assert_close(solve_held_out(s, g, least), solve_closed_form(s, g, least))


def test_held_out_uses_most_damping_for_a_single_column():
    s, g = system(20, 1, 0)
    torch.testing.assert_close(solve_held_out(s, g), solve_closed_form(s, g, max(GRID) * float(s.square().sum())))
