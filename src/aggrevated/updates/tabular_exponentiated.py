"""Exponentiated gradient for tables, Eq. 7 (`eg_closed_form`): π_{n+1}[i] ∝ π_n[i] exp(−η Q̃[i]).

A table is π^s [S, A], π^{s,t} [H, S, A], or the weights w of base policies; on the tree the latter have a
form of their own, `apply_base_policies_step`. For networks see `exponentiated.py`.
"""

import numpy as np

from aggrevated.core.arrays import Array


def apply_exponentiated_step(log_policy: Array, q: Array, eta: float | Array) -> Array:
    """Return log π_{n+1} [..., A] from log π_n and Q̃."""
    return log_softmax(log_policy - eta * q)


def log_softmax(logits: Array) -> Array:
    """Return the logits normalized to log-probabilities along the last axis."""
    logits = logits - logits.max(axis=-1, keepdims=True)
    normal: Array = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return normal


def apply_base_policies_step(log_odds: Array, q_taken: Array, q_other: Array, eta: float) -> Array:
    """Return the log-odds [..., D] of the actions of one path after a step of EG over 2^D base policies.

    A base policy is a leaf of the tree. Its loss on a path is Σ_s Q̃(s, π^j(s)); off its own path it acts as π_n. So
    all leaves of a subtree that the path leaves at level t have the same loss. Then one number per node, the odds of
    its two sides, stores the weights of all leaves, and a step changes only the D nodes of the path. Eq. 7 for each
    node separately equals it up to terms of order η².
    """
    # log-probabilities
    log_p_taken = -np.logaddexp(0.0, -log_odds)
    log_p_other = -np.logaddexp(0.0, log_odds)
    mean = np.exp(log_p_taken) * q_taken + np.exp(log_p_other) * q_other
    log_odds = np.empty_like(log_odds)
    below = np.zeros(mean.shape[:-1])
    inside = np.zeros(mean.shape[:-1])
    for level in range(mean.shape[-1] - 1, -1, -1):
        log_weight_taken = log_p_taken[..., level] - eta * q_taken[..., level] + inside  # log-weights of both sides
        log_weight_other = log_p_other[..., level] - eta * (q_other[..., level] + below)
        log_odds[..., level] = log_weight_taken - log_weight_other
        inside = np.logaddexp(log_weight_taken, log_weight_other)
        below = below + mean[..., level]
    return log_odds
