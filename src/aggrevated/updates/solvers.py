"""Ways to solve (S Sᵀ + λI) δ = g for a tall S [d, K], K ≪ d, without ever forming S Sᵀ. All in float64."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor

Solver: TypeAlias = Callable[[Tensor, Tensor, float], Tensor]  # from S, g and λ to δ
FLAT = 1e-10  # a cosine between v and F v that is zero but for rounding
GRID = tuple(10.0 ** (half / 2) for half in range(-6, 5))  # λ, relative to the mean squared length of S's columns


def closed_form(s: Tensor, g: Tensor, damping: float) -> Tensor:
    """δ = (g − S (λI + SᵀS)⁻¹ Sᵀ g) / λ: exact, by one K×K solve (Woodbury's identity). O(K² d)."""
    s, g = s.double(), g.double()
    small = s.T @ s
    small.diagonal().add_(damping)
    delta: Tensor = (g - s @ torch.linalg.solve(small, s.T @ g)) / damping
    return delta


def conjugate_gradient(s: Tensor, g: Tensor, damping: float, iterations: int = 100, tolerance: float = 1e-10) -> Tensor:
    """The paper's solver: conjugate gradient with products S (Sᵀ v), stopped at a relative residual of `tolerance`.

    Without damping the number of iterations is what keeps δ short: "a fixed number of iterations" (partial least
    squares). What of g is outside the span of S is then never reached, and the search ends when it would divide by 0.
    """
    s = s.double()
    return krylov(lambda v: s @ (s.T @ v) + damping * v, g, iterations, tolerance)


def krylov(product: Callable[[Tensor], Tensor], g: Tensor, iterations: int, tolerance: float = 1e-10) -> Tensor:
    """F δ = g by `iterations` of conjugate gradient at most, from products v ↦ F v only."""
    g = g.double()
    delta, residual = torch.zeros_like(g), g.clone()
    direction, squared = residual.clone(), residual @ residual
    enough = tolerance**2 * squared
    for _ in range(iterations):
        if squared <= enough:
            break
        along = product(direction)
        curvature = direction @ along
        if curvature <= FLAT * direction.norm() * along.norm():  # F does not see this direction: there is no minimum
            break
        step = squared / curvature
        delta += step * direction
        residual -= step * along
        previous, squared = squared, residual @ residual
        direction = residual + (squared / previous) * direction
    return delta


def held_out(s: Tensor, g: Tensor, least: float = 0.0) -> Tensor:
    """The closed form with that λ ≥ `least` of the grid which does best where it was not fitted.

    δ from one half of the columns is judged by the other half, and the other way round: gᵀδ / √(δᵀ S Sᵀ δ) is what a
    step gains for the KL that it costs there. All of it is in the (K + 1)² inner products of the columns and g.
    """
    s, g = s.double(), g.double()
    if s.shape[1] < 2:
        return closed_form(s, g, max(least, max(GRID) * float(s.square().sum())))
    columns = torch.cat([s, g[:, None]], dim=1)
    gram = columns.T @ columns
    grid = gram.diagonal()[:-1].mean() * torch.tensor(GRID, dtype=g.dtype)
    grid = grid.clamp(min=least)
    even, odd = torch.arange(0, s.shape[1], 2), torch.arange(1, s.shape[1], 2)
    gains = gained(gram, even, odd, grid) + gained(gram, odd, even, grid)
    return closed_form(s, g, float(grid[gains.argmax()]))


def gained(gram: Tensor, fitted: Tensor, judged: Tensor, grid: Tensor) -> Tensor:
    """For each λ of the grid, gᵀδ / √(δᵀ S_J S_Jᵀ δ) of the δ from the columns F; `gram` is (S, g)ᵀ (S, g)."""
    share = (len(gram) - 1) / len(fitted)  # of fewer columns each counts for more
    values, vectors = torch.linalg.eigh(share * gram[fitted][:, fitted])
    along = vectors.T @ gram[fitted, -1]  # S_Fᵀ g
    solved = share * along[:, None] / (values[:, None] + grid)  # [F, λ]
    slope = gram[-1, -1] - along @ solved  # λ gᵀδ
    seen = gram[judged, -1][:, None] - gram[judged][:, fitted] @ vectors @ solved  # λ S_Jᵀ δ
    gain: Tensor = slope / seen.norm(dim=0).clamp(min=1e-300)
    return gain


def iterated(iterations: int) -> Solver:
    """Conjugate gradient with that many iterations."""
    return partial(conjugate_gradient, iterations=iterations)


SOLVERS: dict[str, Callable[[int], Solver]] = {  # from the iterations of those that have any
    "closed-form": lambda _: closed_form,
    "conjugate-gradient": iterated,
    "held-out": lambda _: held_out,
}
