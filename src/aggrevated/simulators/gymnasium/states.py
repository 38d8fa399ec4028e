"""States of Gymnasium environments: an observation, and a snapshot or a position in a history of actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from aggrevated.core.arrays import Array

MOST_BRANCHES = 8  # nested branches before a history is copied: pickle recurses into each of them


class EnvironmentState:
    """The immutable state of one episode."""

    __slots__ = ("action_mask", "ended", "observation", "restore_point")

    def __init__(
        self,
        observation: Array,
        ended: bool,
        action_mask: Array | None,
        restore_point: SnapshotState | HistoryPosition,
    ) -> None:
        self.observation = observation
        self.ended = ended
        self.action_mask = action_mask
        self.restore_point = restore_point

    def __reduce__(self) -> tuple[Any, ...]:
        return EnvironmentState, (self.observation, self.ended, self.action_mask, self.restore_point)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, EnvironmentState)
            and self.ended == other.ended
            and is_same_state(self.observation, other.observation)
            and is_same_state(self.action_mask, other.action_mask)
            and self.restore_point == other.restore_point
        )

    __hash__ = None  # type: ignore[assignment]


class SnapshotState:
    """A snapshot of an environment, and a seed for its generator if the state was reseeded."""

    __slots__ = ("generator_seed", "value")

    def __init__(self, value: Any, generator_seed: int | None = None) -> None:
        self.value = value
        self.generator_seed = generator_seed

    def __reduce__(self) -> tuple[Any, ...]:
        return SnapshotState, (self.value, self.generator_seed)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SnapshotState)
            and self.generator_seed == other.generator_seed
            and is_same_state(self.value, other.value)
        )

    __hash__ = None  # type: ignore[assignment]


class ActionHistory:
    """The actions since a reset, or since a position in another history; later actions are appended.

    `generator_seeds` are (time, seed) pairs: the environment's generator is replaced at these times.
    """

    __slots__ = ("actions", "branches", "generator_seeds", "origin", "seed", "start")

    def __init__(
        self,
        seed: int,
        origin: HistoryPosition | None = None,
        actions: list[Any] | None = None,
        generator_seeds: Any = (),
    ) -> None:
        self.seed = seed
        self.origin = origin
        self.generator_seeds = generator_seeds
        self.actions: list[Any] = [] if actions is None else actions  # numbers or [A], unconverted
        self.start = 0 if origin is None else origin.t
        self.branches: int = 0 if origin is None else origin.history.branches + 1

    def __reduce__(self) -> tuple[Any, ...]:
        return ActionHistory, (self.seed, self.origin, self.actions, self.generator_seeds)


class HistoryPosition:
    """The position after the first t actions of a history."""

    __slots__ = ("history", "t")

    def __init__(self, history: ActionHistory, t: int) -> None:
        self.history = history
        self.t = t

    def __reduce__(self) -> tuple[Any, ...]:
        return HistoryPosition, (self.history, self.t)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HistoryPosition) or self.t != other.t:
            return False
        if self.history is other.history:
            return True
        return self.history.seed == other.history.seed and is_same_state(
            self.collect_history(), other.collect_history()
        )

    __hash__ = None  # type: ignore[assignment]

    def append_action(self, action: Any) -> HistoryPosition:
        """Return the position one action later, in this history if it ends here, else in a branch."""
        history = self.history
        if history.start + len(history.actions) != self.t:
            history = self.branch()
        history.actions.append(action)
        return HistoryPosition(history, self.t + 1)

    def reseed(self, seed: int) -> HistoryPosition:
        """Return an equal position from which another generator is used."""
        branch = self.branch()
        branch.generator_seeds = (*branch.generator_seeds, (self.t, seed))
        return HistoryPosition(branch, self.t)

    def branch(self) -> ActionHistory:
        """Return a history that begins at this position."""
        if self.history.branches < MOST_BRANCHES:
            return ActionHistory(self.history.seed, self)
        actions, generator_seeds = self.collect_history()
        return ActionHistory(self.history.seed, None, actions, tuple(generator_seeds.items()))

    def iter_segments(self) -> Iterator[tuple[ActionHistory, int, int]]:
        """Yield (history, first time, end time) of each branch, from the last to the first."""
        position: HistoryPosition | None = self
        while position is not None:
            yield position.history, position.history.start, position.t
            position = position.history.origin

    def collect_history(self) -> tuple[list[Any], dict[int, int]]:
        """Return (all actions so far, seeds of generators by time)."""
        actions: list[Any] = []
        generator_seeds: dict[int, int] = {}
        for history, start, stop in reversed([*self.iter_segments()]):
            actions += history.actions[: stop - start]
            generator_seeds |= dict(history.generator_seeds)
        return actions, generator_seeds


def is_same_state(one: Any, other: Any) -> bool:
    """Return whether two values are equal, NaN equal to NaN; objects without `__eq__` count as equal."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        one = np.asarray(one)
        other = np.asarray(other)
        return bool(one.shape == other.shape and ((one == other) | ((one != one) & (other != other))).all())
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(is_same_state(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(is_same_state, one, other))
    if type(one) is type(other) and getattr(type(one), "__eq__", None) is vars(object)["__eq__"]:
        return True
    return bool(one == other or (one != one and other != other))


def stack_states(states: list[EnvironmentState]) -> Array:
    """Return the states as an array [n] of dtype object."""
    stacked = np.empty(len(states), object)
    stacked[:] = states
    return stacked
