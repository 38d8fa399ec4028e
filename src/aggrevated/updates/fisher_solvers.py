"""Solvers of (S Sᵀ + λI) δ = g for S [d, K], mostly with K ≪ d, which never form S Sᵀ.

They compute in float64, and convert S by blocks of rows: a float64 copy of S would be twice as large as S.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor

Solver: TypeAlias = Callable[[Tensor, Tensor, float], Tensor]  # from S, g and λ to δ
FLAT = 1e-10  # cosine between v and F v, below which it is a rounding error
GRID = tuple(10.0 ** (half / 2) for half in range(-6, 5))  # λ relative to the mean squared length of columns


BLOCK = 8192  # rows of S in a block; it determines the order of sums


def solve_closed_form(s: Tensor, g: Tensor, damping: float) -> Tensor:
    """Return δ = (g − S (λI + SᵀS)⁻¹ Sᵀ g) / λ, exact by one K×K solve (Woodbury's identity), in O(K² d).

    If d ≤ K, S Sᵀ is the smaller matrix and is solved directly.
    """
    g = g.double()
    if s.shape[0] <= s.shape[1]:
        return solve_damped(compute_gram_matrix(s.T), g, damping)
    delta: Tensor = (
        g - apply_scores(s, solve_damped(compute_gram_matrix(s), apply_scores_transposed(s, g), damping))
    ) / damping
    return delta


def solve_damped(matrix: Tensor, right: Tensor, damping: float) -> Tensor:
    """Return (M + λI)⁻¹ right; M is changed in place."""
    matrix.diagonal().add_(damping)
    solution: Tensor = torch.linalg.solve(matrix, right)
    return solution


def compute_gram_matrix(s: Tensor) -> Tensor:
    """Return SᵀS [K, K]."""
    total = s.new_zeros((s.shape[1], s.shape[1]), dtype=torch.float64)
    for rows in iter_blocks(s):
        total += rows.T @ rows
    return total


def apply_scores_transposed(s: Tensor, v: Tensor) -> Tensor:
    """Return Sᵀ v [K] for v [d]."""
    total = s.new_zeros(s.shape[1], dtype=torch.float64)
    for rows, part in zip(iter_blocks(s), torch.split(v, BLOCK), strict=True):
        total += rows.T @ part
    return total


def apply_scores(s: Tensor, w: Tensor) -> Tensor:
    """Return S w [d] for w [K]."""
    out = s.new_empty(s.shape[0], dtype=torch.float64)  # allocated before the blocks, against fragmentation
    for rows, part in zip(iter_blocks(s), torch.split(out, BLOCK), strict=True):
        torch.mv(rows, w, out=part)
    return out


def iter_blocks(s: Tensor) -> Iterator[Tensor]:
    """Yield S in float64, by blocks of rows."""
    return (rows.double() for rows in torch.split(s, BLOCK))


def solve_conjugate_gradient(
    s: Tensor, g: Tensor, damping: float, iterations: int = 100, tolerance: float = 1e-10
) -> Tensor:
    """Return δ by the paper's solver, conjugate gradient with products S (Sᵀ v).

    It stops at a relative residual of `tolerance`. Without damping, the number of iterations limits the
    length of δ: "a fixed number of iterations" (partial least squares). The part of g outside the span of S
    is ignored, and the search stops before a division by 0.
    """
    return solve_krylov(
        lambda v: apply_scores(s, apply_scores_transposed(s, v)) + damping * v, g, iterations, tolerance
    )


def solve_krylov(product: Callable[[Tensor], Tensor], g: Tensor, iterations: int, tolerance: float = 1e-10) -> Tensor:
    """Return δ with F δ = g, by at most `iterations` of conjugate gradient with products v ↦ F v."""
    g = g.double()
    delta = torch.zeros_like(g)
    residual = g.clone()
    direction = residual.clone()
    squared = residual @ residual
    threshold = tolerance**2 * squared
    for _ in range(iterations):
        if squared <= threshold:
            break
        along = product(direction)
        curvature = direction @ along
        if curvature <= FLAT * direction.norm() * along.norm():  # F is 0 in this direction
            break
        step = squared / curvature
        delta += step * direction
        residual -= step * along
        previous = squared
        squared = residual @ residual
        direction = residual + (squared / previous) * direction
    return delta


def solve_held_out(s: Tensor, g: Tensor, least: float = 0.0) -> Tensor:
    """Return the closed-form δ with the best λ ≥ `least` of the grid, by cross-validation.

    δ from one half of the columns is evaluated on the other half, and the reverse: gᵀδ / √(δᵀ S Sᵀ δ) is the
    gain of a step per square root of its KL there. It follows from the (K + 1)² inner products of the columns
    and g.
    """
    g = g.double()
    gram = compute_gram_matrix(s)
    squared_length = float(gram.diagonal().mean())
    if s.shape[1] < 2:
        return solve_closed_form(s, g, max(least, max(GRID) * squared_length))
    inner = torch.cat([gram, apply_scores_transposed(s, g)[None]]), g @ g
    grid = (squared_length * torch.tensor(GRID, dtype=g.dtype)).clamp(min=least)
    even = torch.arange(0, s.shape[1], 2)
    odd = torch.arange(1, s.shape[1], 2)
    gains = estimate_held_out_gain(*inner, even, odd, grid) + estimate_held_out_gain(*inner, odd, even, grid)
    return solve_closed_form(s, g, float(grid[gains.argmax()]))


def estimate_held_out_gain(inner: Tensor, squared: Tensor, train: Tensor, test: Tensor, grid: Tensor) -> Tensor:
    """Return the gain of the δ of the training columns on the test columns T, for each λ of the grid.

    The gain is gᵀδ / √(δᵀ S_T S_Tᵀ δ). `inner` [K + 1, K] is (S, g)ᵀ S, and `squared` is gᵀg.
    """
    scale = inner.shape[1] / len(train)  # S Sᵀ is estimated from a part of the columns
    values, vectors = torch.linalg.eigh(scale * inner[train][:, train])
    along = vectors.T @ inner[-1, train]  # Sᵀ g for the training columns
    solved = scale * along[:, None] / (values[:, None] + grid)  # [training columns, λ]
    slope = squared - along @ solved  # λ gᵀδ
    projected = inner[-1, test][:, None] - inner[test][:, train] @ vectors @ solved  # λ S_Tᵀ δ
    gain: Tensor = slope / projected.norm(dim=0).clamp(min=1e-300)
    return gain


def make_conjugate_gradient(iterations: int) -> Solver:
    """Return the conjugate gradient solver with a number of iterations."""
    return partial(solve_conjugate_gradient, iterations=iterations)


SOLVERS: dict[str, Callable[[int], Solver]] = {  # from the number of iterations, if the solver is iterative
    "closed-form": lambda _: solve_closed_form,
    "conjugate-gradient": make_conjugate_gradient,
    "held-out": lambda _: solve_held_out,
}
