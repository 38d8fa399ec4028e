"""The record of demonstrations: what somebody saw and did, who cannot be asked any more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from gymnasium.spaces import Box, Dict, Space, Tuple
from gymnasium.spaces.utils import flatten

from aggrevated.core.arrays import Array
from aggrevated.core.spaces import SpaceAdapter
from aggrevated.errors import DataError

LAYOUT = "observations [N, ...], actions [N, ...] and ends, a bool [N] that is true at the last step of an episode"
ArraysByKey: TypeAlias = Mapping[str, Array]  # arrays [N, ...] by their place in a Dict or Tuple: "" alone, or "a/b"


@dataclass(frozen=True)
class Demonstrations:
    """N steps of some episodes, one after the other."""

    observations: ArraysByKey  # an array alone is taken as {"": array}
    actions: Array  # [N, ...] as the environment takes them
    ends: Array  # bool [N]: the last steps of the episodes
    rewards: Array | None = None  # [N]
    source: str = "the demonstrations"

    def __post_init__(self) -> None:
        if isinstance(self.observations, np.ndarray):
            object.__setattr__(self, "observations", {"": self.observations})
        n = len(self.actions) if self.actions.ndim else 0
        if not n:
            raise DataError(f"{self.source} have no actions; record at least one step")
        named = {f"observations {name}".strip(): array for name, array in self.observations.items()}
        more = {} if self.rewards is None else {"rewards": self.rewards}
        for name, array in {**named, "actions": self.actions, "ends": self.ends, **more}.items():
            if array.ndim < 1 or len(array) != n:
                raise DataError(f"{self.source} have {name} of shape {array.shape} for {n} actions; give one for each")
            if array.dtype.kind not in "fiub":
                raise DataError(f"{self.source} have {name} of type {array.dtype}; give numbers")
            if not np.isfinite(array).all():
                step = int(np.argwhere(~np.isfinite(array))[0][0])
                raise DataError(f"{self.source} have {name} that are not finite at step {step}; leave that episode out")
        if not self.observations or self.ends.shape != (n,) or (more and more["rewards"].shape != (n,)):
            raise DataError(f"{self.source} are not of the right shape; give {LAYOUT}")

    @property
    def steps(self) -> int:
        """N."""
        return len(self.actions)

    @property
    def episode(self) -> Array:
        """[N]: which episode a step is of, from 0 on."""
        number: Array = np.concatenate([[0], np.cumsum(self.ends.astype(bool))[:-1]])
        return number

    @property
    def episodes(self) -> int:
        """How many there are; one that was cut off is one, too."""
        return int(self.episode[-1]) + 1

    @property
    def mean_return(self) -> float | None:
        """Of its episodes; None where no rewards were recorded."""
        return None if self.rewards is None else float(self.rewards.sum()) / self.episodes

    def seen(self, translation: SpaceAdapter) -> Array:
        """What was seen, as a learner sees it: float32 [N, ...]; a `DataError` where it is of another environment."""
        if translation.is_image:
            return translation.view(flatten_leaf(self, translation.observations, ""))
        return translation.view(stack_vectors(self, translation.observations, ""))

    def done(self, translation: SpaceAdapter) -> Array:
        """What was done, as our actions: [N] of a finite set, or [N, A]."""
        space = translation.actions
        given = self.actions
        shape = (self.steps, *(space.shape or ()))
        if given.shape != shape and given.size != np.prod(shape):
            raise DataError(
                f"{self.source} have actions of shape {given.shape[1:]}, and the environment's are of {space}; record "
                "them in this environment"
            )
        try:
            return translation.ours(given.reshape(shape))
        except ValueError as error:
            raise DataError(
                f"{self.source} have actions that are none of {space} ({error}); record them in this environment"
            ) from error


def stack_vectors(recorded: Demonstrations, space: Space[Any], place: str) -> Array:
    """The observations of a space, or of the part of it at that place, as flat vectors [N, O]."""
    if isinstance(space, Dict | Tuple):
        inside = space.spaces.items() if isinstance(space, Dict) else enumerate(space.spaces)
        return np.concatenate(
            [stack_vectors(recorded, own, f"{place}/{name}".strip("/")) for name, own in inside], axis=1
        )
    given = flatten_leaf(recorded, space, place)
    if isinstance(space, Box):
        return given.reshape(recorded.steps, -1)
    try:
        return np.stack([np.asarray(flatten(space, one)) for one in given])
    except (ValueError, IndexError, TypeError) as error:
        raise DataError(
            f"{recorded.source} have observations {place} that are none of {space} ({error}); record them in this "
            "environment"
        ) from error


def flatten_leaf(recorded: Demonstrations, space: Space[Any], place: str) -> Array:
    """The array at a place, of the shape of its space."""
    called = f"observations{'/' if place else ''}{place}"
    if place not in recorded.observations:
        names = ", ".join(f"observations/{name}" if name else "observations" for name in recorded.observations)
        raise DataError(f"{recorded.source} have no {called}, but {names}; give one array for each part of {space}")
    given = recorded.observations[place]
    shape = (recorded.steps, *(space.shape or ()))
    if given.shape != shape and not (isinstance(space, Box) and given.size == np.prod(shape)):
        raise DataError(
            f"{recorded.source} have {called} of shape {given.shape[1:]}, and the environment shows {space}; record "
            "them in this environment"
        )
    return given.reshape(shape)
