"""The record that flows through the loop: K trajectories of at most H steps, as arrays [K, T, ...]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from aggrevated.core.arrays import Array

ALL_LEGAL = np.zeros((0, 0, 0), bool)
NUMBERED = np.zeros(0, np.uint64)


@dataclass(frozen=True)
class Trajectories:
    """K trajectories τ_i, padded with zeros to the longest, T ≤ H. Steps that were never taken have mask 0."""

    states: Array  # [K, T, ...], what the oracle sees
    observations: Array  # [K, T, ...], what the learner sees
    actions: Array  # [K, T] or [K, T, A]
    costs: Array  # [K, T]
    mask: Array  # [K, T] bool, true where a step was taken
    by_expert: Array  # [K, T] bool, true where π* chose the action (line 4)
    horizon: int  # H
    alpha: float = 0.0  # α_n
    # [K, T, A] bool, true where an action was legal; [K, T, 0] where all are
    action_mask: Array = field(default_factory=lambda: ALL_LEGAL)
    seeds: Array = field(default_factory=lambda: NUMBERED)  # uint64 [K]: where a trajectory's randomness comes from
    n: int = 1  # the iteration that they were rolled in for
    diverged: int = 0  # how many more there were, left out because their simulation diverged
    unseen: int = 0  # how many more steps were simulated: of those left out, and replays

    def __post_init__(self) -> None:
        shape = self.mask.shape
        if self.action_mask is ALL_LEGAL:
            object.__setattr__(self, "action_mask", np.zeros((*shape, 0), bool))
        if self.seeds is NUMBERED:
            object.__setattr__(self, "seeds", np.arange(shape[0], dtype=np.uint64))
        assert self.seeds.shape == shape[:1], (self.seeds.shape, shape)
        assert len(shape) == 2 and shape[1] <= self.horizon, (shape, self.horizon)
        for name in ("states", "observations", "actions", "costs", "by_expert", "action_mask"):
            assert getattr(self, name).shape[:2] == shape, (name, getattr(self, name).shape, shape)

    @property
    def count(self) -> int:
        """K."""
        return int(self.mask.shape[0])

    @property
    def steps(self) -> int:
        """How many steps were taken, over all trajectories."""
        return int(self.mask.sum())

    @property
    def simulator_steps(self) -> int:
        """How many steps were simulated for them: the bill."""
        return self.steps + self.unseen

    @property
    def returns(self) -> Array:
        """[K] total rewards: for people. Inside the loop there are only costs."""
        total: Array = self.costs.cumsum(axis=1)[:, -1]  # one after the other: `sum` goes by the length of the longest
        return -total

    @property
    def by_learner(self) -> Array:
        """[K, T] bool: the steps whose action π_θ chose. Scores and taken-action gradients use only these."""
        return self.mask & ~self.by_expert

    def take(self, indices: Array) -> Trajectories:
        """The trajectories at `indices`, in that order."""
        return replace(self, **{name: getattr(self, name)[indices] for name in (*ARRAYS, "seeds")})


NOT_PER_STEP = ("horizon", "alpha", "seeds", "n", "diverged", "unseen")
ARRAYS = tuple(f.name for f in fields(Trajectories) if f.name not in NOT_PER_STEP)  # [K, T, ...]


def pad_and_stack(arrays: Sequence[Array]) -> Array:
    """Arrays [K_i, T_i, ...] as one [Σ K_i, max T_i, ...], zeros where a batch was shorter."""
    longest = max(array.shape[1] for array in arrays)
    padded = [np.pad(a, [(0, 0), (0, longest - a.shape[1])] + [(0, 0)] * (a.ndim - 2)) for a in arrays]
    return np.concatenate(padded)


def concatenate_trajectories(parts: Sequence[Trajectories]) -> Trajectories:
    """The trajectories of several batches, in order."""
    if len(parts) == 1:
        return parts[0]
    arrays: dict[str, Any] = {name: pad_and_stack([getattr(part, name) for part in parts]) for name in ARRAYS}
    counts = {name: sum(getattr(part, name) for part in parts) for name in ("diverged", "unseen")}
    return replace(parts[0], **arrays, **counts, seeds=np.concatenate([part.seeds for part in parts]))
