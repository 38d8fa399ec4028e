"""Conversion between Gymnasium spaces and the vectors and action numbers of policies.

Observations that Gymnasium can flatten become one vector; images keep their shape. Several discrete choices
at once become one choice among all their combinations, so that each combination has a cost.
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

MAX_JOINT_ACTIONS = 4096  # largest number of combinations of discrete choices
MAX_IMAGE_SIZE = 16_384  # numbers in an image; each step of a trajectory stores one
MAX_VECTOR_SIZE = 1_000_000  # numbers in a vector
JsonDict = dict[str, Any]


@dataclass(frozen=True)
class SpaceAdapter:
    """Conversion between an environment's spaces and those of a policy.

    Attributes:
        observations: observation space of the environment.
        actions: action space of the environment.
        columns: indices of the entries of a vector that the learner observes, or None for all.
        mean: float64 [O], subtracted from the entries, or None.
        scale: float64 [O], by which the entries are then divided, or None.
    """

    observations: Space[Any]
    actions: Space[Any]
    columns: tuple[int, ...] | None = None
    mean: Array | None = None
    scale: Array | None = None

    @cached_property
    def is_image(self) -> bool:
        """Return whether observations are images, which keep their shape."""
        return is_image(self.observations)

    @cached_property
    def observation_space(self) -> Box:
        """Return the space of vectors or images before `columns`, `mean` and `scale`."""
        if self.is_image:
            assert isinstance(self.observations, Box)
            return Box(0.0, 255.0, self.observations.shape, np.float32)
        if isinstance(self.observations, Box):
            with np.errstate(over="ignore"):  # bounds beyond float32 become infinite
                low, high = (b.ravel().astype(np.float32) for b in (self.observations.low, self.observations.high))
            return Box(low, high, dtype=np.float32)
        return Box(-np.inf, np.inf, (int(flatdim(self.observations)),), np.float32)

    @cached_property
    def learner_observation_space(self) -> Box:
        """Return the space of the learner's observations."""
        if self.columns is None and self.scale is None:
            return self.observation_space
        size = self.observation_space.shape[0] if self.columns is None else len(self.columns)
        return Box(-np.inf, np.inf, (size,), np.float32)

    @cached_property
    def action_space(self) -> Discrete | Box:
        """Return the space of the policy's actions: numbers from 0, or vectors."""
        if isinstance(self.actions, Box):
            return Box(self.actions.low.ravel(), self.actions.high.ravel(), dtype=self.actions.dtype.type)
        return Discrete(int(np.prod(self._choices)))

    @cached_property
    def _choices(self) -> tuple[int, ...]:
        """Return the number of options of each discrete choice of an action."""
        if isinstance(self.actions, Discrete):
            return (int(self.actions.n),)
        if isinstance(self.actions, MultiDiscrete):
            return tuple(map(int, self.actions.nvec.ravel()))
        assert isinstance(self.actions, MultiBinary)
        return (2,) * int(np.prod(self.actions.shape))

    def to_vector(self, observation: Any) -> Array:
        """Return one observation of the environment as a vector or image, in the environment's dtype."""
        if self.is_image:
            return np.asarray(observation)
        flat: Array = flatten(self.observations, observation)  # type: ignore[assignment]
        return flat

    def view(self, vectors: Array) -> Array:
        """Return the learner's float32 observations of vectors [n, O] or images, scaled in float64."""
        observations: Array = np.asarray(vectors)
        if self.columns is not None:
            observations = np.ascontiguousarray(observations[:, self.columns])
        if self.mean is not None and self.scale is not None:
            observations = (observations.astype(np.float64) - self.mean) / self.scale
        return observations.astype(np.float32)

    def read(self, observation: Any) -> tuple[Array, bool]:
        """Return (the learner's observations [n, ...], whether `observation` is a single one, not a batch)."""
        is_single = not is_batch(self.observations, observation)
        batch = [observation] if is_single else split_batch(self.observations, observation)
        return self.view(np.stack([self.to_vector(one) for one in batch])), is_single

    def clip_actions(self, actions: Array) -> Array:
        """Return vector actions [n, A] clipped to the space in its dtype, or action numbers [n] unchanged."""
        if isinstance(self.action_space, Discrete):
            return np.asarray(actions)
        low = self.action_space.low
        high = self.action_space.high
        return np.reshape(actions, (len(actions), -1)).clip(low, high).astype(self.actions.dtype)

    def to_native_actions(self, actions: Array) -> Array:
        """Return copies of the policy's actions [n] or [n, A] as actions of the environment [n, ...]."""
        if isinstance(self.actions, Box):
            return self.clip_actions(actions).reshape(len(actions), *self.actions.shape)
        numbers = np.asarray(actions).reshape(-1).astype(np.int64)
        if isinstance(self.actions, Discrete):
            return numbers + int(self.actions.start)
        choices = np.stack(np.unravel_index(numbers, self._choices), axis=-1)
        start = getattr(self.actions, "start", np.zeros(1, np.int64))
        shape = (len(numbers), *(self.actions.shape or ()))
        return (choices.reshape(shape) + start).astype(self.actions.dtype)

    def to_learner_actions(self, actions: Any) -> Array:
        """Return the environment's actions [n, ...] as the policy's, [n] or [n, A], or raise a `ValueError`."""
        native = np.asarray(actions)
        n = len(native)
        if isinstance(self.actions, Box):
            return native.reshape(n, -1)
        choices = native.reshape(n, -1)
        if choices.dtype.kind not in "iub" and not np.array_equal(choices, np.floor(choices)):
            raise ValueError("an action is not a whole number")
        start = np.ravel(getattr(self.actions, "start", 0))
        numbers: Array = np.ravel_multi_index(tuple((choices.astype(np.int64) - start).T), self._choices)
        return numbers

    def to_dict(self) -> JsonDict:
        """Return the adapter for JSON."""
        arrays = {"mean": self.mean, "scale": self.scale}
        listed = {name: None if array is None else [float(x) for x in array] for name, array in arrays.items()}
        columns = None if self.columns is None else list(self.columns)
        spaces = {"observations": space_to_dict(self.observations), "actions": space_to_dict(self.actions)}
        return {**spaces, "columns": columns, **listed}

    @classmethod
    def from_dict(cls, data: JsonDict, source: object) -> SpaceAdapter:
        """Return the adapter that `to_dict` described, or raise a `DataError` that names the source."""
        try:
            mean, scale = (None if data[k] is None else np.array(data[k], np.float64) for k in ("mean", "scale"))
            columns = None if data["columns"] is None else tuple(map(int, data["columns"]))
            adapter = cls(space_from_dict(data["observations"]), space_from_dict(data["actions"]), columns, mean, scale)
            check_supported_space(adapter.observations, adapter.actions, str(source))
            arrays = [x for x in (mean, scale) if x is not None]
            if len(arrays) == 1 or any(
                x.shape != adapter.learner_observation_space.shape or not np.isfinite(x).all() for x in arrays
            ):
                raise ValueError("mean and scale do not fit the observations")
            if columns is not None and not all(0 <= c < adapter.observation_space.shape[0] for c in columns):
                raise ValueError("columns do not fit the observations")
        except (KeyError, TypeError, ValueError, AssertionError, OverflowError, UsageError) as error:
            raise DataError(
                f"{source}: the saved observation or action space is invalid ({error}); save the policy again"
            ) from error
        return adapter


def check_supported_space(observations: Space[Any], actions: Space[Any], name: str) -> None:
    """Raise a `UsageError` with a remedy if policies do not support the observations or actions."""
    if is_image(observations):
        size = int(np.prod(observations.shape or ()))
        if size > MAX_IMAGE_SIZE:
            raise UsageError(
                f"{name} has images of {size:,} numbers, but at most {MAX_IMAGE_SIZE:,} are supported: wrap "
                "it in gymnasium.wrappers.GrayscaleObservation and ResizeObservation"
            )
    elif not observations.is_np_flattenable:
        raise UsageError(
            f"{name} has observations of type {type(observations).__name__}, which cannot be flattened: wrap it "
            "in gymnasium.wrappers.TransformObservation so that they are a Box, Discrete, Tuple or Dict"
        )
    elif not 0 < flatdim(observations) <= MAX_VECTOR_SIZE:
        raise UsageError(
            f"{name} has observations of {flatdim(observations):,} numbers: wrap it to have at least 1 and at "
            f"most {MAX_VECTOR_SIZE:,}"
        )
    if isinstance(actions, Box):
        if actions.dtype.kind not in "fiu" or not actions.shape or not np.prod(actions.shape):
            raise UsageError(f"{name} has actions of type {actions}: wrap it to make them numeric vectors")
        return
    if isinstance(actions, MultiDiscrete | MultiBinary):
        count = (
            float(np.prod(np.float64(actions.nvec)))
            if isinstance(actions, MultiDiscrete)
            else 2.0 ** count_choices(actions)
        )
        if count > MAX_JOINT_ACTIONS:
            raise UsageError(
                f"{name} has {count:,.0f} combinations of actions, but at most {MAX_JOINT_ACTIONS:,} are "
                "supported: wrap it in gymnasium.wrappers.TransformAction with fewer choices, or with a Box"
            )
    elif not isinstance(actions, Discrete):
        raise UsageError(
            f"{name} has actions of type {type(actions).__name__}: wrap it in gymnasium.wrappers.TransformAction to "
            "make them Discrete, MultiDiscrete, MultiBinary or a Box"
        )


def count_choices(space: MultiBinary) -> int:
    """Return the number of binary choices."""
    return int(np.prod(space.shape))


def is_image(space: Space[Any]) -> bool:
    """Return whether a space has images: bytes with height, width and possibly color channels."""
    return (
        isinstance(space, Box) and space.dtype == np.uint8 and len(space.shape) in (2, 3) and min(space.shape[:2]) > 7
    )


def is_batch(space: Space[Any], observation: Any) -> bool:
    """Return whether an observation is a batch, with one more axis than the space."""
    if isinstance(space, Dict):
        name = next(iter(space.spaces))
        return is_batch(space.spaces[name], observation[name])
    if isinstance(space, Tuple):
        return is_batch(space.spaces[0], observation[0])
    return np.ndim(observation) > len(space.shape or ())


def split_batch(space: Space[Any], batch: Any) -> list[Any]:
    """Return the observations of a batch as a list."""
    if isinstance(space, Dict):
        parts = {name: split_batch(subspace, batch[name]) for name, subspace in space.spaces.items()}
        return [dict(zip(parts, row, strict=True)) for row in zip(*parts.values(), strict=True)]
    if isinstance(space, Tuple):
        parts_by_space = [split_batch(subspace, part) for subspace, part in zip(space.spaces, batch, strict=True)]
        return [*zip(*parts_by_space, strict=True)]
    return list(np.asarray(batch))


def space_to_dict(space: Space[Any]) -> JsonDict:
    """Return a space for JSON."""
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
        return {"kind": kind, "spaces": [[name, space_to_dict(subspace)] for name, subspace in space.spaces.items()]}
    if isinstance(space, Tuple):
        return {"kind": kind, "spaces": [space_to_dict(subspace) for subspace in space.spaces]}
    raise UsageError(f"a space of type {kind} cannot be saved; wrap the environment")


def bounds_to_list(bound: Array) -> Any:
    """Return bounds for JSON: one number if all are equal, and infinities as texts."""
    numbers = [float(x) for x in (bound.ravel()[:1] if np.all(bound == bound.ravel()[:1]) else bound.ravel())]
    listed = [x if np.isfinite(x) else str(x) for x in numbers]
    return listed[0] if len(listed) == 1 else listed


def bounds_from_list(bounds: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return the bounds that `bounds_to_list` described."""
    listed = bounds if isinstance(bounds, Sequence) and not isinstance(bounds, str) else [bounds]
    numbers = np.array([float(x) for x in listed])
    flat: Array = np.broadcast_to(numbers, int(np.prod(shape))) if numbers.size == 1 else numbers
    return flat.reshape(shape).astype(dtype)


def space_from_dict(data: Mapping[str, Any]) -> Space[Any]:
    """Return the space that `space_to_dict` described; invalid data raises a `ValueError` or `KeyError`."""
    kind = data["kind"]
    if kind == "Box":
        shape = tuple(map(int, data["shape"]))
        dtype = np.dtype(data["dtype"])
        if dtype.kind not in "fiub" or not 0 <= int(np.prod(shape)) <= MAX_VECTOR_SIZE:
            raise ValueError("a Box of an unsupported type or size")
        return Box(
            bounds_from_list(data["low"], shape, dtype),
            bounds_from_list(data["high"], shape, dtype),
            dtype=dtype.type,
        )
    if kind == "Discrete":
        return Discrete(int(data["n"]), start=int(data["start"]))
    if kind == "MultiDiscrete":
        return MultiDiscrete(np.array(data["nvec"], np.int64), start=np.array(data["start"], np.int64))
    if kind == "MultiBinary":
        sizes = [int(n) for n in data["shape"]]
        return MultiBinary(sizes[0] if len(sizes) == 1 else sizes)
    if kind == "Dict":
        return Dict({str(name): space_from_dict(subspace) for name, subspace in data["spaces"]})
    if kind == "Tuple":
        return Tuple([space_from_dict(subspace) for subspace in data["spaces"]])
    raise ValueError(f"unknown space {kind!r}")
