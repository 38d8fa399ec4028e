"""Exponentiated gradient, Eq. 7 (`eg_closed_form`): π_{n+1}[i] ∝ π_n[i] exp(−η Q̃[i]), in log space.

One function serves every policy that is a table of distributions: π^s [S, A], π^{s,t} [H, S, A], or the weights w of
base policies; `base_policies` is its form on the tree. For networks see `projected.py`.
"""

import numpy as np

from aggrevated.core.arrays import Array


def apply_exponentiated_step(log_policy: Array, q: Array, eta: float | Array) -> Array:
    """log π_{n+1} [..., A] from log π_n and Q̃."""
    return log_softmax(log_policy - eta * q)


def log_softmax(logits: Array) -> Array:
    """The logarithms of probabilities that sum to 1 along the last axis."""
    logits = logits - logits.max(axis=-1, keepdims=True)
    normal: Array = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return normal


def apply_base_policies_step(log_odds: Array, q_taken: Array, q_other: Array, eta: float) -> Array:
    """EG over the 2^D base policies of the tree: the new log-odds [..., D] of the actions taken on one path.

    A base policy is a leaf, its loss on a path is Σ_s Q̃(s, π^j(s)), and where it is off its own path it does as π_n
    does. Then all leaves of the subtree that the path leaves at level t share their loss, so that the weights of all
    2^D leaves are kept by one number per node, the odds of its two sides, and an update touches only the D nodes of
    the path. Eq. 7 for each node on its own is the same up to terms of order η².
    """
    # log probabilities
    taken = -np.logaddexp(0.0, -log_odds)
    other = -np.logaddexp(0.0, log_odds)
    mean = np.exp(taken) * q_taken + np.exp(other) * q_other
    log_odds = np.empty_like(log_odds)
    below = np.zeros(mean.shape[:-1])
    inside = np.zeros(mean.shape[:-1])
    for level in range(mean.shape[-1] - 1, -1, -1):
        here = taken[..., level] - eta * q_taken[..., level] + inside  # of the leaves on the side that was taken
        beside = other[..., level] - eta * (q_other[..., level] + below)
        log_odds[..., level] = here - beside
        inside = np.logaddexp(here, beside)
        below = below + mean[..., level]
    return log_odds
