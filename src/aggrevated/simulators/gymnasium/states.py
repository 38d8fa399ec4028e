"""What a state is: what was shown there, and a way back, which is a snapshot or a place in a history of actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from aggrevated.core.arrays import Array

MOST_BRANCHES = 8  # of branches, before a history is written out: pickles go down as many levels


class EnvironmentState:
    """Where an episode is. It does not change."""

    __slots__ = ("action_mask", "back", "ended", "observation")

    def __init__(
        self, observation: Array, ended: bool, legal: Array | None, back: SnapshotState | HistoryPosition
    ) -> None:
        self.observation = observation
        self.ended = ended
        self.action_mask = legal
        self.back = back

    def __reduce__(self) -> tuple[Any, ...]:
        return EnvironmentState, (self.observation, self.ended, self.action_mask, self.back)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, EnvironmentState)
            and self.ended == other.ended
            and is_same_state(self.observation, other.observation)
            and is_same_state(self.action_mask, other.action_mask)
            and self.back == other.back
        )

    __hash__ = None  # type: ignore[assignment]


class SnapshotState:
    """What an environment gave to be set by, and perhaps the seed of a generator to be set besides."""

    __slots__ = ("luck", "value")

    def __init__(self, value: Any, luck: int | None = None) -> None:
        self.value = value
        self.luck = luck

    def __reduce__(self) -> tuple[Any, ...]:
        return SnapshotState, (self.value, self.luck)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SnapshotState) and self.luck == other.luck and is_same_state(self.value, other.value)

    __hash__ = None  # type: ignore[assignment]


class ActionHistory:
    """The actions since a reset, or since a place in another history; those to come are appended.

    `lucks` are seeds by time: of generators that were put in the place of the environment's own there.
    """

    __slots__ = ("actions", "branches", "lucks", "origin", "seed", "start")

    def __init__(
        self, seed: int, origin: HistoryPosition | None = None, actions: list[Any] | None = None, lucks: Any = ()
    ) -> None:
        self.seed = seed
        self.origin = origin
        self.lucks = lucks
        self.actions: list[Any] = [] if actions is None else actions  # ours: numbers or [A]
        self.start = 0 if origin is None else origin.t
        self.branches: int = 0 if origin is None else origin.history.branches + 1

    def __reduce__(self) -> tuple[Any, ...]:
        return ActionHistory, (self.seed, self.origin, self.actions, self.lucks)


class HistoryPosition:
    """After the first t actions of a history."""

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
        """One action later: in the same history where that goes no further yet, else in a branch of it."""
        history = self.history
        if history.start + len(history.actions) != self.t:
            history = self.branch()
        history.actions.append(action)
        return HistoryPosition(history, self.t + 1)

    def reseed(self, seed: int) -> HistoryPosition:
        """The same with another generator."""
        branch = self.branch()
        branch.lucks = (*branch.lucks, (self.t, seed))
        return HistoryPosition(branch, self.t)

    def branch(self) -> ActionHistory:
        """A history that begins here."""
        if self.history.branches < MOST_BRANCHES:
            return ActionHistory(self.history.seed, self)
        actions, lucks = self.collect_history()
        return ActionHistory(self.history.seed, None, actions, tuple(lucks.items()))

    def iter_segments(self) -> Iterator[tuple[ActionHistory, int, int]]:
        """(a history, from when, until when it is followed), of the branches from the last to the first."""
        place: HistoryPosition | None = self
        while place is not None:
            yield place.history, place.history.start, place.t
            place = place.history.origin

    def collect_history(self) -> tuple[list[Any], dict[int, int]]:
        """(all actions so far, the seeds of generators by time)."""
        actions: list[Any] = []
        lucks: dict[int, int] = {}
        for history, start, stop in reversed([*self.iter_segments()]):
            actions += history.actions[: stop - start]
            lucks |= dict(history.lucks)
        return actions, lucks


def is_same_state(one: Any, other: Any) -> bool:
    """Whether two values are equal, not-a-numbers included; what cannot be compared counts as equal."""
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


def stack_states(spots: list[EnvironmentState]) -> Array:
    """States [n] of dtype object."""
    states = np.empty(len(spots), object)
    states[:] = spots
    return states
