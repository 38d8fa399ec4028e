"""Conversion between a Gymnasium environment's spaces, masks and rewards and the simulator's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError, UserCodeError
from aggrevated.core.spaces import SpaceAdapter, check_supported_space
from aggrevated.core.user_code import call_user_code, check_numeric_array
from aggrevated.simulators.gymnasium.make import (
    Environment,
    EnvironmentSource,
    SeedingMode,
    detect_seeding_mode,
    make_environment,
    read_time_limit,
    reset_environment,
    unwrap_time_limit,
)

MaskSource = Callable[[Environment, Any, Any], Any]  # from (environment, observation, info) to a mask or None


def mask_from_info(env: Environment, observation: Any, info: Any) -> Any:
    """Return `info["action_mask"]`, as in Gymnasium; None where there is none."""
    return info.get("action_mask") if isinstance(info, Mapping) else None


def mask_from_method(env: Environment, observation: Any, info: Any) -> Any:
    """Return `env.action_masks()`, as in sb3-contrib; None where there is none."""
    return env.get_wrapper_attr("action_masks")() if env.has_wrapper_attr("action_masks") else None


def mask_from_observation(env: Environment, observation: Any, info: Any) -> Any:
    """Return `observation["action_mask"]`, as in PettingZoo and RLlib; None where there is none."""
    return observation.get("action_mask") if isinstance(observation, Mapping) else None


def find_mask_source(env: Environment, observation: Any, info: Any) -> MaskSource | None:
    """Return how an environment that was just reset provides action masks; None where it provides none."""
    sources = (mask_from_info, mask_from_method, mask_from_observation)
    return next((source for source in sources if source(env, observation, info) is not None), None)


def read_mask(mask: Any, actions: int, name: str) -> Array | None:
    """Return an environment's mask as bool [A]; None where all actions are legal.

    Several masks, one per sub-action, become a mask of all combinations.

    Args:
        mask: the environment's mask, a tuple of masks, or None.
        actions: A, the number of actions.
        name: name of the environment.

    Raises:
        UserCodeError: the mask does not have A entries.
    """
    if mask is None:
        return None
    try:
        if isinstance(mask, tuple | list) and all(np.ndim(part) == 1 for part in mask):
            mask = reduce(np.logical_and.outer, [np.asarray(part, bool) for part in mask])
        legal = np.array(mask, bool).ravel()
    except (ValueError, TypeError):
        legal = np.zeros(0, bool)
    if len(legal) != actions:
        remedy = f"return {actions} booleans, or a tuple with one mask per sub-action"
        raise UserCodeError(name, f"gave an action_mask of shape {np.shape(mask)}", remedy)
    return legal


UNLIMITED = 1000  # H of an environment that declares no time limit


class ConvertedObservation(NamedTuple):
    """An observation and action mask in the simulator's format."""

    observation: Array  # [O] or an image, in the environment's own type
    action_mask: Array | None  # bool [A]; None: all actions are legal


@dataclass(frozen=True)
class EnvironmentAdapter:
    """An adapter of one environment, through which it is reset and stepped.

    Attributes:
        source: what makes new environments.
        name: name in messages and files.
        horizon: H, the number of steps after which an episode is cut.
        space_adapter: conversion of observations and actions.
        seeding: how the environment receives seeds.
        mask_source: how it provides action masks; None where it provides none.
        notes: sentences on what is unusual about the environment.
    """

    source: EnvironmentSource
    name: str
    horizon: int
    space_adapter: SpaceAdapter
    seeding: SeedingMode
    mask_source: MaskSource | None
    notes: tuple[str, ...]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of a converted observation."""
        return self.space_adapter.observation_space.shape

    @cached_property
    def actions(self) -> int:
        """A, the number of discrete actions; 0 where actions are vectors."""
        space = self.space_adapter.action_space
        return int(space.n) if isinstance(space, Discrete) else 0

    def make_reset_environment(self) -> Environment:
        """Return a new environment without its time limit, reset so that it can be stepped or restored."""
        env = unwrap_time_limit(make_environment(self.source))
        call_user_code(self.name, "reset", lambda: reset_environment(env, 0, self.seeding))
        return env

    def reset(self, env: Environment, seed: int) -> ConvertedObservation:
        """Reset an environment with a seed and return its first observation."""
        returned = call_user_code(self.name, "reset", lambda: reset_environment(env, seed, self.seeding))
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise UserCodeError(
                self.name, f"returned {describe_value(returned)} from reset", "return (observation, info)"
            )
        return ConvertedObservation(self.convert_observation(returned[0]), self.action_mask(env, *returned))

    def advance(self, env: Environment, action: Any) -> tuple[ConvertedObservation, float, bool]:
        """Step an environment and return (observation, cost, done); a diverged step is done."""
        returned = call_user_code(self.name, "step", lambda: env.step(action))
        if not isinstance(returned, tuple) or len(returned) != 5:
            remedy = "return (observation, reward, terminated, truncated, info)"
            raise UserCodeError(self.name, f"returned {describe_value(returned)} from step", remedy)
        observation, reward, terminated, truncated, info = returned
        if type(reward) is not float:
            reward = call_user_code(self.name, "step, whose reward must be a number", lambda: float(reward))
        if type(terminated) is bool and type(truncated) is bool:
            done = terminated or truncated
        else:
            done = call_user_code(
                self.name,
                "step, whose terminated and truncated must be booleans",
                lambda: bool(terminated or truncated),
            )
        cost = 0.0 - reward
        if isfinite(cost):
            return (
                ConvertedObservation(self.convert_observation(observation), self.action_mask(env, observation, info)),
                cost,
                done,
            )
        return ConvertedObservation(np.zeros(self.shape, np.float32), None), cost, True

    def to_native_actions(self, actions: list[Any]) -> Array:
        """Return the simulator's actions as the environment takes them, [n, ...]."""
        return self.space_adapter.to_native_actions(np.array(actions)) if actions else np.zeros(0)

    def action_mask(self, env: Environment, observation: Any, info: Any) -> Array | None:
        """Return which actions are legal, bool [A]; None: all."""
        mask_source = self.mask_source
        if mask_source is None:
            return None
        mask = call_user_code(self.name, "masks", lambda: mask_source(env, observation, info))
        return read_mask(mask, self.actions, self.name)

    def convert_observation(self, observation: Any) -> Array:
        """Return an observation as a new vector or image, or raise a `UserCodeError`."""
        space = self.space_adapter.observations
        array = (
            self._convert_box(space, observation) if isinstance(space, Box) else self._flatten_observation(observation)
        )
        if np.isfinite(array).all():
            return array
        index = int(np.argmin(np.isfinite(array)))
        problem = f"gave an observation that is not finite (number {index} is {array.ravel()[index]})"
        raise UserCodeError(self.name, problem, "check its step and its reset")

    def _convert_box(self, space: Box, observation: Any) -> Array:
        if type(observation) is np.ndarray and observation.shape == self.shape and observation.dtype.kind == "f":
            return observation.copy()  # the environment may reuse its array
        shape = np.shape(observation)
        if shape != space.shape and int(np.prod(shape)) == int(np.prod(space.shape)) and shape != ():
            observation = np.reshape(observation, space.shape)  # accept axes of length 1
        array = check_numeric_array(self.name, "an observation", observation, space.shape, REMEDY)
        return array.reshape(self.shape).copy()

    def _flatten_observation(self, observation: Any) -> Array:
        space = self.space_adapter.observations
        try:
            if isinstance(space, Discrete) and not 0 <= int(observation) - int(space.start) < int(space.n):
                raise ValueError(f"{observation} is not in {space}")
            array = self.space_adapter.to_vector(observation)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            message = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise UserCodeError(
                self.name, f"gave an observation that is not in its space ({message})", REMEDY
            ) from error
        return check_numeric_array(self.name, "an observation", array, self.shape, REMEDY)


REMEDY = "return observations that fit its observation_space"


def describe_value(value: object) -> str:
    """Return the type of a value, and the length of a tuple."""
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else type(value).__name__


def make_environment_adapter(source: EnvironmentSource, horizon: int | None, name: str | None) -> EnvironmentAdapter:
    """Return the adapter of an environment, after making and resetting it.

    Args:
        source: what makes new environments.
        horizon: H in steps; None: the environment's own time limit, or 1,000 where it declares none.
        name: name in messages; None: the environment's id or class.

    Raises:
        UsageError: the environment cannot be used.
        UserCodeError: its `reset` failed.
    """
    env = make_environment(source)
    other = make_environment(source)
    name = name or (env.spec.id if env.spec is not None else type(env.unwrapped).__name__)
    if env.unwrapped is other.unwrapped:
        raise UsageError(f"{name}: the function returned the same environment twice; return a new one from each call")
    notes = []
    if horizon is None:
        horizon = read_time_limit(env)
        if horizon is None:
            horizon = UNLIMITED
            notes.append(
                f"it declares no time limit: episodes that do not end by themselves are cut after {UNLIMITED:,} steps"
            )
    if horizon < 1:
        raise UsageError(f"{name} needs a horizon: pass the number of steps, 1 or more, after which episodes are cut")
    for space in ("observation_space", "action_space"):
        if getattr(env, space, None) is None:
            raise UsageError(f"{name} has no {space}; set the attribute in its constructor")
    check_supported_space(env.observation_space, env.action_space, name)
    seeding = detect_seeding_mode(env, name)
    if seeding.value:
        notes.append(seeding.value)
    first = call_user_code(name, "reset", lambda: reset_environment(env, 0, seeding))
    mask_source = None
    if isinstance(first, tuple) and len(first) == 2 and not isinstance(env.action_space, Box):
        mask_source = call_user_code(name, "masks", lambda: find_mask_source(env, *first))
    if mask_source is not None:
        notes.append("it provides action masks")
    space_adapter = SpaceAdapter(env.observation_space, env.action_space)
    env.close()
    other.close()
    return EnvironmentAdapter(source, name, horizon, space_adapter, seeding, mask_source, tuple(notes))
