"""Two ways to solve (S Sᵀ + λI) δ = g for a tall S [d, K], K ≪ d, without ever forming S Sᵀ. Both in float64."""

import torch
from torch import Tensor


def closed_form(s: Tensor, g: Tensor, damping: float) -> Tensor:
    """δ = (g − S (λI + SᵀS)⁻¹ Sᵀ g) / λ: exact, by one K×K solve (Woodbury's identity). O(K² d)."""
    s, g = s.double(), g.double()
    small = s.T @ s
    small.diagonal().add_(damping)
    delta: Tensor = (g - s @ torch.linalg.solve(small, s.T @ g)) / damping
    return delta


def conjugate_gradient(s: Tensor, g: Tensor, damping: float, iterations: int = 100, tolerance: float = 1e-10) -> Tensor:
    """The paper's solver: conjugate gradient with products S (Sᵀ v), stopped at a relative residual of `tolerance`."""
    s, g = s.double(), g.double()
    delta, residual = torch.zeros_like(g), g.clone()
    direction, squared = residual.clone(), residual @ residual
    enough = tolerance**2 * squared
    for _ in range(iterations):
        if squared <= enough:
            break
        product = s @ (s.T @ direction) + damping * direction
        step = squared / (direction @ product)
        delta += step * direction
        residual -= step * product
        previous, squared = squared, residual @ residual
        direction = residual + (squared / previous) * direction
    return delta


SOLVERS = {"closed-form": closed_form, "conjugate-gradient": conjugate_gradient}
