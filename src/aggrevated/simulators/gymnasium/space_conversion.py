"""Which actions are legal, as environments say it."""

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

MaskSource = Callable[[Environment, Any, Any], Any]  # from environment, observation and info to a mask; None: no word


def mask_from_info(env: Environment, observation: Any, info: Any) -> Any:
    """`info["action_mask"]`, as Gymnasium's own do."""
    return info.get("action_mask") if isinstance(info, Mapping) else None


def mask_from_method(env: Environment, observation: Any, info: Any) -> Any:
    """`env.action_masks()`, as for sb3-contrib."""
    return env.get_wrapper_attr("action_masks")() if env.has_wrapper_attr("action_masks") else None


def mask_from_observation(env: Environment, observation: Any, info: Any) -> Any:
    """`observation["action_mask"]`, as for PettingZoo and RLlib."""
    return observation.get("action_mask") if isinstance(observation, Mapping) else None


def find_mask_source(env: Environment, observation: Any, info: Any) -> MaskSource | None:
    """How an environment that was just reset says which actions are legal; None where it does not."""
    tried = (mask_from_info, mask_from_method, mask_from_observation)
    return next((way for way in tried if way(env, observation, info) is not None), None)


def read_mask(mask: Any, actions: int, name: str) -> Array | None:
    """[A] bool: which of the actions may be taken; None: all.

    A mask for each of several choices is a mask of all their combinations.
    """
    if mask is None:
        return None
    try:
        if isinstance(mask, tuple | list) and all(np.ndim(one) == 1 for one in mask):
            mask = reduce(np.logical_and.outer, [np.asarray(one, bool) for one in mask])
        legal = np.array(mask, bool).ravel()
    except (ValueError, TypeError):
        legal = np.zeros(0, bool)
    if len(legal) != actions:
        remedy = f"let it be {actions} times True or False, or a tuple of one mask for each choice"
        raise UserCodeError(name, f"gave an action_mask of shape {np.shape(mask)}", remedy)
    return legal


UNLIMITED = 1000  # H of an environment that never cuts its episodes


class ConvertedObservation(NamedTuple):
    """What an environment shows."""

    observation: Array  # [O], or a picture, in the environment's own type
    action_mask: Array | None  # [A] bool; None: all actions are


@dataclass(frozen=True)
class EnvironmentAdapter:
    """One environment's name, horizon and spaces; the only place where environments are reset and stepped."""

    source: EnvironmentSource
    name: str
    horizon: int
    space_adapter: SpaceAdapter
    seeding: SeedingMode
    telling: MaskSource | None  # how it says which actions are legal
    notes: tuple[str, ...]  # what is unusual about it

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Of an observation as it is kept."""
        return self.space_adapter.observation_space.shape

    @cached_property
    def actions(self) -> int:
        """A, of a finite set."""
        space = self.space_adapter.action_space
        return int(space.n) if isinstance(space, Discrete) else 0

    def make_reset_environment(self) -> Environment:
        """A new environment without its time limit, reset: before that, some can neither be stepped nor be set."""
        env = unwrap_time_limit(make_environment(self.source))
        call_user_code(self.name, "reset", lambda: reset_environment(env, 0, self.seeding))
        return env

    def reset(self, env: Environment, seed: int) -> ConvertedObservation:
        """What it shows at first."""
        given = call_user_code(self.name, "reset", lambda: reset_environment(env, seed, self.seeding))
        if not isinstance(given, tuple) or len(given) != 2:
            raise UserCodeError(self.name, f"gave {describe_value(given)} as a reset", "give (observation, info)")
        return ConvertedObservation(self.convert_observation(given[0]), self.action_mask(env, *given))

    def advance(self, env: Environment, action: Any) -> tuple[ConvertedObservation, float, bool]:
        """(what it shows, cost, done) of one step."""
        given = call_user_code(self.name, "step", lambda: env.step(action))
        if not isinstance(given, tuple) or len(given) != 5:
            parts = "(observation, reward, terminated, truncated, info)"
            raise UserCodeError(self.name, f"gave {describe_value(given)} as a step", f"give {parts}")
        observation, reward, terminated, truncated, info = given
        if type(reward) is not float:
            reward = call_user_code(self.name, "step, whose reward must be a number", lambda: float(reward))
        if type(terminated) is bool and type(truncated) is bool:
            done = terminated or truncated
        else:
            done = call_user_code(
                self.name, "step, whose ends must be True or False", lambda: bool(terminated or truncated)
            )
        cost = 0.0 - reward
        if isfinite(cost):
            return (
                ConvertedObservation(self.convert_observation(observation), self.action_mask(env, observation, info)),
                cost,
                done,
            )
        return (
            ConvertedObservation(np.zeros(self.shape, np.float32), None),
            cost,
            True,
        )  # it diverged: what it shows then is nobody's

    def to_native_actions(self, actions: list[Any]) -> Array:
        """Our actions as the environment takes them, [n, ...]."""
        return self.space_adapter.to_native_actions(np.array(actions)) if actions else np.zeros(0)

    def action_mask(self, env: Environment, observation: Any, info: Any) -> Array | None:
        """Which actions are."""
        told = self.telling
        if told is None:
            return None
        return read_mask(
            call_user_code(self.name, "masks", lambda: told(env, observation, info)), self.actions, self.name
        )

    def convert_observation(self, observation: Any) -> Array:
        """What it shows, as a vector or picture of its own; a `PartError` where that is not of its space."""
        space = self.space_adapter.observations
        array = (
            self._convert_box(space, observation) if isinstance(space, Box) else self._flatten_observation(observation)
        )
        if np.isfinite(array).all():
            return array
        place = int(np.argmin(np.isfinite(array)))
        what = f"gave an observation that is not finite (number {place} is {array.ravel()[place]})"
        raise UserCodeError(self.name, what, "check what its step and reset return")

    def _convert_box(self, space: Box, observation: Any) -> Array:
        if type(observation) is np.ndarray and observation.shape == self.shape and observation.dtype.kind == "f":
            return observation.copy()  # the environment may go on to use its own
        shape = np.shape(observation)
        if shape != space.shape and int(np.prod(shape)) == int(np.prod(space.shape)) and shape != ():
            observation = np.reshape(observation, space.shape)  # a row more or less is no fault
        array = check_numeric_array(self.name, "an observation", observation, space.shape, REMEDY)
        return array.reshape(self.shape).copy()

    def _flatten_observation(self, observation: Any) -> Array:
        space = self.space_adapter.observations
        try:
            if isinstance(space, Discrete) and not 0 <= int(observation) - int(space.start) < int(space.n):
                raise ValueError(f"{observation} is none of {space}")
            array = self.space_adapter.to_vector(observation)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            said = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise UserCodeError(self.name, f"gave an observation that is not of its space ({said})", REMEDY) from error
        return check_numeric_array(self.name, "an observation", array, self.shape, REMEDY)


REMEDY = "make what it returns fit its observation_space"


def describe_value(given: object) -> str:
    """What it is, in words."""
    return f"a tuple of {len(given)}" if isinstance(given, tuple) else type(given).__name__


def make_environment_adapter(source: EnvironmentSource, horizon: int | None, name: str | None) -> EnvironmentAdapter:
    """What can be known of an environment by making it; a `UsageError` where it cannot be used."""
    env = make_environment(source)
    other = make_environment(source)
    name = name or (env.spec.id if env.spec is not None else type(env.unwrapped).__name__)
    if env.unwrapped is other.unwrapped:
        raise UsageError(f"{name}: the function returned the same environment twice; let it make a new one each time")
    said = []
    if horizon is None:
        horizon = read_time_limit(env)
        if horizon is None:
            horizon = UNLIMITED
            said.append(
                f"it says no time limit: episodes that do not end by themselves are cut after {UNLIMITED:,} steps"
            )
    if horizon < 1:
        raise UsageError(f"{name} needs a horizon: give the number of steps, 1 or more, after which episodes are cut")
    for space in ("observation_space", "action_space"):
        if getattr(env, space, None) is None:
            raise UsageError(f"{name} has no {space}; give it one")
    check_supported_space(env.observation_space, env.action_space, name)
    seeding = detect_seeding_mode(env, name)
    if seeding.value:
        said.append(seeding.value)
    first = call_user_code(name, "reset", lambda: reset_environment(env, 0, seeding))
    told = None
    if isinstance(first, tuple) and len(first) == 2 and not isinstance(env.action_space, Box):
        told = call_user_code(name, "masks", lambda: find_mask_source(env, *first))
    if told is not None:
        said.append("it says which actions are legal")
    translation = SpaceAdapter(env.observation_space, env.action_space)
    env.close()
    other.close()
    return EnvironmentAdapter(source, name, horizon, translation, seeding, told, tuple(said))
