"""Between what an environment of Gymnasium shows and takes, and the vectors and numbers that policies are made of.

Observations of every kind that Gymnasium can flatten become one vector, pictures stay what they are. Several discrete
choices at once become one choice among all their combinations, of each of which can be asked what it costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Tuple
from gymnasium.spaces.utils import flatdim, flatten

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError, UsageError

MAX_JOINT_ACTIONS = 4096  # of several discrete choices, at most
MAX_IMAGE_SIZE = 16_384  # numbers in a picture, at most: a step of a trajectory holds one
MAX_VECTOR_SIZE = 1_000_000  # numbers in a vector
JsonDict = dict[str, Any]


@dataclass(frozen=True)
class SpaceAdapter:
    """One environment's spaces, and how what is in them becomes ours and theirs.

    `columns`, `mean` and `scale` say how a vector is seen by a learner: some of its numbers, each less its mean and
    divided by its scale.
    """

    observations: Space[Any]
    actions: Space[Any]
    columns: tuple[int, ...] | None = None
    mean: Array | None = None  # float64 [O]
    scale: Array | None = None

    @cached_property
    def is_image(self) -> bool:
        """Whether observations are pictures, which stay what they are."""
        return is_image(self.observations)

    @cached_property
    def observation_space(self) -> Box:
        """Of the vectors, or pictures, as they come: without `columns` and the rest."""
        if self.is_image:
            assert isinstance(self.observations, Box)
            return Box(0.0, 255.0, self.observations.shape, np.float32)
        if isinstance(self.observations, Box):
            with np.errstate(over="ignore"):  # bounds beyond a float32 become infinite
                low, high = (b.ravel().astype(np.float32) for b in (self.observations.low, self.observations.high))
            return Box(low, high, dtype=np.float32)
        return Box(-np.inf, np.inf, (int(flatdim(self.observations)),), np.float32)

    @cached_property
    def learner_observation_space(self) -> Box:
        """Of what a learner sees."""
        if self.columns is None and self.scale is None:
            return self.observation_space
        size = self.observation_space.shape[0] if self.columns is None else len(self.columns)
        return Box(-np.inf, np.inf, (size,), np.float32)

    @cached_property
    def action_space(self) -> Discrete | Box:
        """Of our actions: they count from 0, or are vectors."""
        if isinstance(self.actions, Box):
            return Box(self.actions.low.ravel(), self.actions.high.ravel(), dtype=self.actions.dtype.type)
        return Discrete(int(np.prod(self._choices)))

    @cached_property
    def _choices(self) -> tuple[int, ...]:
        """How many there are of each of the discrete choices that an action is."""
        if isinstance(self.actions, Discrete):
            return (int(self.actions.n),)
        if isinstance(self.actions, MultiDiscrete):
            return tuple(map(int, self.actions.nvec.ravel()))
        assert isinstance(self.actions, MultiBinary)
        return (2,) * int(np.prod(self.actions.shape))

    def to_vector(self, observation: Any) -> Array:
        """One observation of the environment as a vector, or as the picture that it is, in the environment's type."""
        if self.is_image:
            return np.asarray(observation)
        flat: Array = flatten(self.observations, observation)  # type: ignore[assignment]
        return flat

    def view(self, vectors: Array) -> Array:
        """What a learner sees of vectors [n, O] or pictures, float32: rounded to that only when they are scaled."""
        seen: Array = np.asarray(vectors)
        if self.columns is not None:
            seen = np.ascontiguousarray(seen[:, self.columns])
        if self.mean is not None and self.scale is not None:
            seen = (seen.astype(np.float64) - self.mean) / self.scale
        return seen.astype(np.float32)

    def read(self, observation: Any) -> tuple[Array, bool]:
        """(what a learner sees of one observation or of a batch of them [n, ...], whether it is one alone)."""
        single = not is_batch(self.observations, observation)
        each = [observation] if single else split_batch(self.observations, observation)
        return self.view(np.stack([self.to_vector(one) for one in each])), single

    def clip_actions(self, actions: Array) -> Array:
        """Our vectors [n, A] or numbers [n], vectors clipped to the space and in its type."""
        if isinstance(self.action_space, Discrete):
            return np.asarray(actions)
        low = self.action_space.low
        high = self.action_space.high
        return np.reshape(actions, (len(actions), -1)).clip(low, high).astype(self.actions.dtype)

    def to_native_actions(self, actions: Array) -> Array:
        """Our actions [n] or [n, A] as the environment takes them, [n, ...]: copies, which it is free to change."""
        if isinstance(self.actions, Box):
            return self.clip_actions(actions).reshape(len(actions), *self.actions.shape)
        numbers = np.asarray(actions).reshape(-1).astype(np.int64)
        if isinstance(self.actions, Discrete):
            return numbers + int(self.actions.start)
        several = np.stack(np.unravel_index(numbers, self._choices), axis=-1)
        start = getattr(self.actions, "start", np.zeros(1, np.int64))
        shape = (len(numbers), *(self.actions.shape or ()))
        return (several.reshape(shape) + start).astype(self.actions.dtype)

    def to_learner_actions(self, actions: Any) -> Array:
        """The environment's actions [n, ...] as ours, [n] or [n, A]; a `ValueError` where they are none of its own."""
        given = np.asarray(actions)
        n = len(given)
        if isinstance(self.actions, Box):
            return given.reshape(n, -1)
        choices = given.reshape(n, -1)
        if choices.dtype.kind not in "iub" and not np.array_equal(choices, np.floor(choices)):
            raise ValueError("an action is no whole number")
        start = np.ravel(getattr(self.actions, "start", 0))
        numbers: Array = np.ravel_multi_index(tuple((choices.astype(np.int64) - start).T), self._choices)
        return numbers

    def to_dict(self) -> JsonDict:
        """For JSON."""
        seen = {"mean": self.mean, "scale": self.scale}
        listed = {name: None if array is None else [float(x) for x in array] for name, array in seen.items()}
        columns = None if self.columns is None else list(self.columns)
        spaces = {"observations": space_to_dict(self.observations), "actions": space_to_dict(self.actions)}
        return {**spaces, "columns": columns, **listed}

    @classmethod
    def from_dict(cls, facts: JsonDict, source: object) -> SpaceAdapter:
        """What `facts` gave; a `DataError` that names the source where it was not that."""
        try:
            mean, scale = (None if facts[k] is None else np.array(facts[k], np.float64) for k in ("mean", "scale"))
            columns = None if facts["columns"] is None else tuple(map(int, facts["columns"]))
            read = cls(space_from_dict(facts["observations"]), space_from_dict(facts["actions"]), columns, mean, scale)
            check_supported_space(read.observations, read.actions, str(source))
            sized = [x for x in (mean, scale) if x is not None]
            if (
                any(x.shape != read.learner_observation_space.shape or not np.isfinite(x).all() for x in sized)
                or len(sized) == 1
            ):
                raise ValueError("mean and scale are not of the observations")
            if columns is not None and not all(0 <= c < read.observation_space.shape[0] for c in columns):
                raise ValueError("its columns are not of the observations")
        except (KeyError, TypeError, ValueError, AssertionError, OverflowError, UsageError) as error:
            raise DataError(f"{source} does not say what its policy reads ({error}); save it again") from error
        return read


def check_supported_space(observations: Space[Any], actions: Space[Any], name: str) -> None:
    """A `UsageError` where a policy cannot read such observations or choose such actions, and what to do about it."""
    if is_image(observations):
        size = int(np.prod(observations.shape or ()))
        if size > MAX_IMAGE_SIZE:
            raise UsageError(
                f"{name} shows pictures of {size:,} numbers, and {MAX_IMAGE_SIZE:,} are the most: wrap it in "
                "gymnasium.wrappers.GrayscaleObservation and ResizeObservation"
            )
    elif not observations.is_np_flattenable:
        raise UsageError(
            f"{name} has observations of type {type(observations).__name__}, of which no vector can be made: wrap it "
            "in gymnasium.wrappers.TransformObservation so that they are a Box, Discrete, Tuple or Dict"
        )
    elif not 0 < flatdim(observations) <= MAX_VECTOR_SIZE:
        raise UsageError(
            f"{name} shows vectors of {flatdim(observations):,} numbers; wrap it to show 1 to {MAX_VECTOR_SIZE:,}"
        )
    if isinstance(actions, Box):
        if actions.dtype.kind not in "fiu" or not actions.shape or not np.prod(actions.shape):
            raise UsageError(f"{name} has actions of type {actions}: wrap it to make them vectors of numbers")
        return
    if isinstance(actions, MultiDiscrete | MultiBinary):
        count = (
            float(np.prod(np.float64(actions.nvec)))
            if isinstance(actions, MultiDiscrete)
            else 2.0 ** count_choices(actions)
        )
        if count > MAX_JOINT_ACTIONS:
            raise UsageError(
                f"{name} has {count:,.0f} combinations of actions, and {MAX_JOINT_ACTIONS:,} are the most: wrap it in "
                "gymnasium.wrappers.TransformAction with fewer choices, or with a Box"
            )
    elif not isinstance(actions, Discrete):
        raise UsageError(
            f"{name} has actions of type {type(actions).__name__}: wrap it in gymnasium.wrappers.TransformAction to "
            "make them Discrete, MultiDiscrete, MultiBinary or a Box"
        )


def count_choices(space: MultiBinary) -> int:
    """How many choices it has."""
    return int(np.prod(space.shape))


def is_image(space: Space[Any]) -> bool:
    """Whether what it holds are pictures: bytes with height and width, and perhaps with colours."""
    return (
        isinstance(space, Box) and space.dtype == np.uint8 and len(space.shape) in (2, 3) and min(space.shape[:2]) > 7
    )


def is_batch(space: Space[Any], observation: Any) -> bool:
    """Whether it is several observations in one, with an axis more than one has."""
    if isinstance(space, Dict):
        name = next(iter(space.spaces))
        return is_batch(space.spaces[name], observation[name])
    if isinstance(space, Tuple):
        return is_batch(space.spaces[0], observation[0])
    return np.ndim(observation) > len(space.shape or ())


def split_batch(space: Space[Any], batch: Any) -> list[Any]:
    """The observations of a batch, one by one."""
    if isinstance(space, Dict):
        parts = {name: split_batch(own, batch[name]) for name, own in space.spaces.items()}
        return [dict(zip(parts, row, strict=True)) for row in zip(*parts.values(), strict=True)]
    if isinstance(space, Tuple):
        return [*zip(*(split_batch(own, part) for own, part in zip(space.spaces, batch, strict=True)), strict=True)]
    return list(np.asarray(batch))


def space_to_dict(space: Space[Any]) -> JsonDict:
    """A space, for JSON."""
    kind = type(space).__name__
    if isinstance(space, Box):
        return {
            "kind": kind, "shape": list(space.shape), "dtype": str(space.dtype),
            "low": bounds_to_list(space.low), "high": bounds_to_list(space.high),
        }  # fmt: skip
    if isinstance(space, Discrete):
        return {"kind": kind, "n": int(space.n), "start": int(space.start)}
    if isinstance(space, MultiDiscrete):
        return {"kind": kind, "nvec": space.nvec.tolist(), "start": space.start.tolist()}
    if isinstance(space, MultiBinary):
        return {"kind": kind, "shape": list(space.shape)}
    if isinstance(space, Dict):
        return {"kind": kind, "spaces": [[name, space_to_dict(own)] for name, own in space.spaces.items()]}
    if isinstance(space, Tuple):
        return {"kind": kind, "spaces": [space_to_dict(own) for own in space.spaces]}
    raise UsageError(f"a space of type {kind} cannot be written down; wrap the environment")


def bounds_to_list(bound: Array) -> Any:
    """One number where all are the same; infinities are texts, which JSON has none of."""
    numbers = [float(x) for x in (bound.ravel()[:1] if np.all(bound == bound.ravel()[:1]) else bound.ravel())]
    said = [x if np.isfinite(x) else str(x) for x in numbers]
    return said[0] if len(said) == 1 else said


def bounds_from_list(said: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    """What `bound_facts` wrote."""
    numbers = np.array(
        [float(x) for x in (said if isinstance(said, Sequence) and not isinstance(said, str) else [said])]
    )
    whole: Array = np.broadcast_to(numbers, int(np.prod(shape))) if numbers.size == 1 else numbers
    return whole.reshape(shape).astype(dtype)


def space_from_dict(facts: Mapping[str, Any]) -> Space[Any]:
    """What `space_facts` wrote; a `ValueError`, `KeyError` or the like where it did not."""
    kind = facts["kind"]
    if kind == "Box":
        shape = tuple(map(int, facts["shape"]))
        dtype = np.dtype(facts["dtype"])
        if dtype.kind not in "fiub" or not 0 <= int(np.prod(shape)) <= MAX_VECTOR_SIZE:
            raise ValueError("a Box of an unusual type")
        return Box(
            bounds_from_list(facts["low"], shape, dtype),
            bounds_from_list(facts["high"], shape, dtype),
            dtype=dtype.type,
        )
    if kind == "Discrete":
        return Discrete(int(facts["n"]), start=int(facts["start"]))
    if kind == "MultiDiscrete":
        return MultiDiscrete(np.array(facts["nvec"], np.int64), start=np.array(facts["start"], np.int64))
    if kind == "MultiBinary":
        sizes = [int(n) for n in facts["shape"]]
        return MultiBinary(sizes[0] if len(sizes) == 1 else sizes)
    if kind == "Dict":
        return Dict({str(name): space_from_dict(own) for name, own in facts["spaces"]})
    if kind == "Tuple":
        return Tuple([space_from_dict(own) for own in facts["spaces"]])
    raise ValueError(f"no space is called {kind!r}")
