"""Trajectories as arrays: K trajectories of at most H steps, [K, T, ...]."""

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
    """K trajectories τ_i, padded with zeros to the length T ≤ H of the longest.

    Attributes:
        states: states [K, T, ...], for the expert and the oracle.
        observations: observations of the learner [K, T, ...].
        actions: actions [K, T] or [K, T, A].
        costs: costs of the steps [K, T].
        mask: bool [K, T], whether a step was taken.
        by_expert: bool [K, T], whether π* chose the action (line 4).
        horizon: H, the largest number of steps.
        alpha: α_n of the roll-in.
        action_mask: bool [K, T, A], whether an action was legal; [K, T, 0] if all are.
        seeds: uint64 [K], the seed of each trajectory's random numbers; by default 0 … K−1.
        n: iteration of the roll-in.
        diverged: number of further trajectories that were dropped because their simulation diverged.
        unseen: number of further simulator steps: of dropped trajectories, and replays.
    """

    states: Array
    observations: Array
    actions: Array
    costs: Array
    mask: Array
    by_expert: Array
    horizon: int
    alpha: float = 0.0
    action_mask: Array = field(default_factory=lambda: ALL_LEGAL)
    seeds: Array = field(default_factory=lambda: NUMBERED)
    n: int = 1
    diverged: int = 0
    unseen: int = 0

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
        """Return K, the number of trajectories."""
        return int(self.mask.shape[0])

    @property
    def steps(self) -> int:
        """Return the number of steps of all trajectories."""
        return int(self.mask.sum())

    @property
    def simulator_steps(self) -> int:
        """Return the number of simulator steps, with those of dropped trajectories and replays."""
        return self.steps + self.unseen

    @property
    def returns(self) -> Array:
        """Return the return of each trajectory, [K]: its negative total cost."""
        total: Array = self.costs.cumsum(axis=1)[:, -1]  # the order of additions in `sum` would depend on T
        return -total

    @property
    def by_learner(self) -> Array:
        """Return whether π_θ chose the action of a step, bool [K, T]; only these steps enter scores."""
        return self.mask & ~self.by_expert

    def take(self, indices: Array) -> Trajectories:
        """Return some of the trajectories.

        Args:
            indices: indices k, or bool [K].

        Returns:
            The trajectories at `indices`, in that order.
        """
        return replace(self, **{name: getattr(self, name)[indices] for name in (*ARRAYS, "seeds")})


NOT_PER_STEP = ("horizon", "alpha", "seeds", "n", "diverged", "unseen")
ARRAYS = tuple(f.name for f in fields(Trajectories) if f.name not in NOT_PER_STEP)  # [K, T, ...]


def pad_and_stack(arrays: Sequence[Array]) -> Array:
    """Return arrays [K_i, T_i, ...] as one array [Σ K_i, max T_i, ...], padded with zeros."""
    length = max(array.shape[1] for array in arrays)
    padded = [np.pad(a, [(0, 0), (0, length - a.shape[1])] + [(0, 0)] * (a.ndim - 2)) for a in arrays]
    return np.concatenate(padded)


def concatenate_trajectories(parts: Sequence[Trajectories]) -> Trajectories:
    """Return the trajectories of several batches as one, in order."""
    if len(parts) == 1:
        return parts[0]
    arrays: dict[str, Any] = {name: pad_and_stack([getattr(part, name) for part in parts]) for name in ARRAYS}
    counts = {name: sum(getattr(part, name) for part in parts) for name in ("diverged", "unseen")}
    return replace(parts[0], **arrays, **counts, seeds=np.concatenate([part.seeds for part in parts]))


def drop_states(trajectories: Trajectories) -> Trajectories:
    """Return the trajectories with empty states, which only oracles need."""
    return replace(trajectories, states=np.zeros((*trajectories.mask.shape, 0), np.float32))
