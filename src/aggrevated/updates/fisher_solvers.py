"""Ways to solve (S Sᵀ + λI) δ = g for S [d, K], mostly with K ≪ d, so that S Sᵀ is never formed.

All in float64, but of S only a block of rows at a time: a copy of all of it would be twice as large as S itself.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor

Solver: TypeAlias = Callable[[Tensor, Tensor, float], Tensor]  # from S, g and λ to δ
FLAT = 1e-10  # a cosine between v and F v that is zero but for rounding
GRID = tuple(10.0 ** (half / 2) for half in range(-6, 5))  # λ, relative to the mean squared length of S's columns


BLOCK = 8192  # rows of S at a time; what is summed in which order depends on this number only


def solve_closed_form(s: Tensor, g: Tensor, damping: float) -> Tensor:
    """δ = (g − S (λI + SᵀS)⁻¹ Sᵀ g) / λ: exact, by one K×K solve (Woodbury's identity). O(K² d).

    With no more weights than trajectories, d ≤ K, S Sᵀ itself is the smaller matrix.
    """
    g = g.double()
    if s.shape[0] <= s.shape[1]:
        return solve_damped(compute_gram_matrix(s.T), g, damping)
    delta: Tensor = (
        g - apply_scores(s, solve_damped(compute_gram_matrix(s), apply_scores_transposed(s, g), damping))
    ) / damping
    return delta


def solve_damped(matrix: Tensor, right: Tensor, damping: float) -> Tensor:
    """(M + λI)⁻¹ right; M is changed."""
    matrix.diagonal().add_(damping)
    solution: Tensor = torch.linalg.solve(matrix, right)
    return solution


def compute_gram_matrix(s: Tensor) -> Tensor:
    """SᵀS [K, K]."""
    total = s.new_zeros((s.shape[1], s.shape[1]), dtype=torch.float64)
    for rows in iter_blocks(s):
        total += rows.T @ rows
    return total


def apply_scores_transposed(s: Tensor, v: Tensor) -> Tensor:
    """Sᵀ v [K], for v [d]."""
    total = s.new_zeros(s.shape[1], dtype=torch.float64)
    for rows, part in zip(iter_blocks(s), torch.split(v, BLOCK), strict=True):
        total += rows.T @ part
    return total


def apply_scores(s: Tensor, w: Tensor) -> Tensor:
    """S w [d], for w [K]."""
    out = s.new_empty(s.shape[0], dtype=torch.float64)  # made first: parts between blocks would keep their memory open
    for rows, part in zip(iter_blocks(s), torch.split(out, BLOCK), strict=True):
        torch.mv(rows, w, out=part)
    return out


def iter_blocks(s: Tensor) -> Iterator[Tensor]:
    """S in float64, some rows at a time."""
    return (rows.double() for rows in torch.split(s, BLOCK))


def solve_conjugate_gradient(
    s: Tensor, g: Tensor, damping: float, iterations: int = 100, tolerance: float = 1e-10
) -> Tensor:
    """The paper's solver: conjugate gradient with products S (Sᵀ v), stopped at a relative residual of `tolerance`.

    Without damping the number of iterations is what keeps δ short: "a fixed number of iterations" (partial least
    squares). What of g is outside the span of S is then never reached, and the search ends when it would divide by 0.
    """
    return solve_krylov(
        lambda v: apply_scores(s, apply_scores_transposed(s, v)) + damping * v, g, iterations, tolerance
    )


def solve_krylov(product: Callable[[Tensor], Tensor], g: Tensor, iterations: int, tolerance: float = 1e-10) -> Tensor:
    """F δ = g by `iterations` of conjugate gradient at most, from products v ↦ F v only."""
    g = g.double()
    delta = torch.zeros_like(g)
    residual = g.clone()
    direction = residual.clone()
    squared = residual @ residual
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
        previous = squared
        squared = residual @ residual
        direction = residual + (squared / previous) * direction
    return delta


def solve_held_out(s: Tensor, g: Tensor, least: float = 0.0) -> Tensor:
    """The closed form with that λ ≥ `least` of the grid which does best where it was not fitted.

    δ from one half of the columns is judged by the other half, and the other way round: gᵀδ / √(δᵀ S Sᵀ δ) is what a
    step gains for the KL that it costs there. All of it is in the (K + 1)² inner products of the columns and g.
    """
    g = g.double()
    squared = compute_gram_matrix(s)
    length = float(squared.diagonal().mean())
    if s.shape[1] < 2:
        return solve_closed_form(s, g, max(least, max(GRID) * length))
    inner = torch.cat([squared, apply_scores_transposed(s, g)[None]]), g @ g
    grid = (length * torch.tensor(GRID, dtype=g.dtype)).clamp(min=least)
    even = torch.arange(0, s.shape[1], 2)
    odd = torch.arange(1, s.shape[1], 2)
    gains = estimate_held_out_gain(*inner, even, odd, grid) + estimate_held_out_gain(*inner, odd, even, grid)
    return solve_closed_form(s, g, float(grid[gains.argmax()]))


def estimate_held_out_gain(inner: Tensor, squared: Tensor, fitted: Tensor, judged: Tensor, grid: Tensor) -> Tensor:
    """For each λ of the grid, gᵀδ / √(δᵀ S_J S_Jᵀ δ) of the δ from the columns F.

    `inner` [K + 1, K] is (S, g)ᵀ S, and `squared` is gᵀg.
    """
    share = inner.shape[1] / len(fitted)  # of fewer columns each counts for more
    values, vectors = torch.linalg.eigh(share * inner[fitted][:, fitted])
    along = vectors.T @ inner[-1, fitted]  # S_Fᵀ g
    solved = share * along[:, None] / (values[:, None] + grid)  # [F, λ]
    slope = squared - along @ solved  # λ gᵀδ
    seen = inner[-1, judged][:, None] - inner[judged][:, fitted] @ vectors @ solved  # λ S_Jᵀ δ
    gain: Tensor = slope / seen.norm(dim=0).clamp(min=1e-300)
    return gain


def make_conjugate_gradient(iterations: int) -> Solver:
    """Conjugate gradient with that many iterations."""
    return partial(solve_conjugate_gradient, iterations=iterations)


SOLVERS: dict[str, Callable[[int], Solver]] = {  # from the iterations of those that have any
    "closed-form": lambda _: solve_closed_form,
    "conjugate-gradient": make_conjugate_gradient,
    "held-out": lambda _: solve_held_out,
}
