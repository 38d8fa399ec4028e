"""Bounds of the theorems with their constants."""

import numpy as np

from aggrevated.core.arrays import Array

DELTA = 0.05  # a bound that holds with probability 1 − δ


def compute_special_upper_bound(depth: int, episodes: Array, worst: float = 1.0) -> Array:
    """Return the bound of Theorem special_upper: (K − 1) times the worst regret of an episode, for any N."""
    return np.minimum(episodes, depth - 1) * worst


def compute_special_lower_bound(leaves: int, gap: float, episodes: Array) -> Array:
    """Return Theorem special_lower's bound on any RL algorithm, averaged over instances with one good leaf.

    gap · n (1 − 1/L − ½ √(−(n/L) ln(1 − 4 gap²))): the lower bound of bandits (Auer et al. 2002) before its
    gap is chosen. It is of order √(LN) for the gap of `experiments.compute_hard_gap`, and never falls with
    n.
    """
    detected_share = 0.5 * np.sqrt(-(episodes / leaves) * np.log(1 - 4 * gap**2))
    bound: Array = np.maximum.accumulate(gap * episodes * np.maximum(1 - 1 / leaves - detected_share, 0.0))
    return bound


def compute_growing_bound(at_the_end: float, episodes: Array) -> Array:
    """Return EG's bound after n of N episodes, with the best step for N: B/2 (1 + n/N), B at the end.

    In the lemma's ln(d)/μ + μ/2 Σ …, the first half is constant and the second grows with n.
    """
    bound: Array = at_the_end / 2 * (1 + episodes / episodes[-1])
    return bound


def compute_special_lower_noisy_bound(depth: int, episodes: Array, largest: float = 1.0) -> Array:
    """Return Theorem special_lower_noisy's bound for D = K − 1 decisions and L = 2^D leaves.

    It is D l_max (√(2 ln L N) + 4 √(ln(2/δ) N)). The paper has √(ln S N) as first root; its lemma gives
    √(2 ln L N).
    """
    decisions = depth - 1
    first = compute_growing_bound(float(np.sqrt(2 * decisions * np.log(2) * episodes[-1])), episodes)
    bound: Array = decisions * largest * (first + 4 * np.sqrt(np.log(2 / DELTA) * episodes))
    return bound


def compute_upper_bound(horizon: int, largest: float, states: int, actions: int, episodes: Array) -> Array:
    """Return Theorem upper_bound for exact Q* and infinitely many roll-ins: H Q_max √(2 S ln A N)."""
    at_the_end = horizon * largest * float(np.sqrt(2 * states * np.log(actions) * episodes[-1]))
    return compute_growing_bound(at_the_end, episodes)


def compute_noisy_upper_bound(horizon: int, largest: float, states: int, actions: int, episodes: Array) -> Array:
    """Return Theorem upper_bound for one roll-in per episode and Q̃ in [0, H].

    √(H Q_max) replaces Q_max, since E[Q̃²] ≤ H Q*. The martingale term 4 H l √(ln(2/δ) N) is that of the
    proof for the tree, with l = H, the largest Q̃.
    """
    first = compute_upper_bound(horizon, float(np.sqrt(horizon * largest)), states, actions, episodes)
    bound: Array = first + 4 * horizon * horizon * np.sqrt(np.log(2 / DELTA) * episodes)
    return bound
