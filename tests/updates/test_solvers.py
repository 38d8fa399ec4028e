"""Two solvers of (S Sᵀ + λI) δ = g against a dense one."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aggrevated.updates.solvers import closed_form, conjugate_gradient

SOLVERS = pytest.mark.parametrize("solver", [closed_form, conjugate_gradient])


def system(d, k, seed):
    generator = torch.Generator().manual_seed(seed)
    s, g = (torch.randn(*size, generator=generator, dtype=torch.float64) for size in ((d, k), (d,)))
    return s, g


@SOLVERS
def test_by_hand(solver):
    """S = (3, 4)ᵀ, λ = 5, g = (1, 0): S Sᵀ + 5I = [14 12; 12 21], determinant 150, δ = (21, −12)/150."""
    delta = solver(torch.tensor([[3.0], [4.0]]), torch.tensor([1.0, 0.0]), 5.0)
    torch.testing.assert_close(delta, torch.tensor([0.14, -0.08], dtype=torch.float64), atol=1e-14, rtol=0)


@SOLVERS
@given(st.integers(1, 60), st.integers(1, 20), st.floats(-3, 3), st.integers(0, 2**31))
def test_agrees_with_the_dense_solution_and_points_downhill(solver, d, k, exponent, seed):
    s, g = system(d, k, seed)
    damping = 10.0**exponent * float(s.square().sum(0).mean())  # relative to the mean squared column, as in `Natural`
    dense = torch.linalg.solve(s @ s.T + damping * torch.eye(d, dtype=torch.float64), g)
    delta = solver(s, g, damping)
    assert delta.dtype == torch.float64
    assert float((delta - dense).norm() / dense.norm()) < 1e-8
    assert g @ delta > 0


@given(st.integers(1, 40), st.integers(1, 12), st.floats(-3, 3), st.integers(0, 2**31))
def test_both_agree_also_when_given_float32_and_columns_that_repeat(d, k, exponent, seed):
    """K trajectories may well be the same one: S then has less than full rank."""
    s, g = system(d, k, seed)
    s, g = torch.cat([s, s], dim=1).float(), g.float()
    damping = 10.0**exponent * float(s.square().sum(0).mean())
    exact, iterated = closed_form(s, g, damping), conjugate_gradient(s, g, damping)
    assert float((exact - iterated).norm() / exact.norm()) < 1e-8


@SOLVERS
def test_without_a_gradient_there_is_no_direction(solver):
    s, g = system(5, 3, 0)
    assert not solver(s, torch.zeros_like(g), 1.0).any()


@SOLVERS
def test_the_inputs_stay_as_they_were(solver):
    s, g = system(5, 3, 0)
    before = s.clone(), g.clone()
    solver(s, g, 0.1)
    assert torch.equal(s, before[0]) and torch.equal(g, before[1])


def test_conjugate_gradient_needs_at_most_k_plus_1_iterations():
    """S Sᵀ + λI has at most K + 1 distinct eigenvalues, whatever d is."""
    s, g = system(200, 4, 0)
    damping = float(s.square().sum(0).mean())
    few = conjugate_gradient(s, g, damping, iterations=5)
    np.testing.assert_allclose(few, closed_form(s, g, damping), rtol=1e-10, atol=1e-14)
    assert (conjugate_gradient(s, g, damping, iterations=2) - few).norm() > 1e-6 * few.norm()
