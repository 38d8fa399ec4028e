"""An environment's native observations and actions, for experts that were made for the environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, Space
from gymnasium.spaces.utils import unflatten

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UserCodeError
from aggrevated.core.spaces import SpaceAdapter, split_batch
from aggrevated.core.user_code import NUMBERS
from aggrevated.simulators import Simulator
from aggrevated.simulators.checked import observe_and_check


@dataclass(frozen=True)
class EnvironmentView:
    """Observations and actions of the environment that a simulator wraps.

    A simulator without a `space_adapter` is its own environment. If the simulator has a method
    `native_observations(states)`, observations come from it and are not rounded to float32.
    """

    simulator: Simulator

    @property
    def space_adapter(self) -> SpaceAdapter:
        """Return the adapter between the environment's spaces and the simulator's."""
        adapter = getattr(self.simulator, "space_adapter", None)
        if isinstance(adapter, SpaceAdapter):
            return adapter
        return SpaceAdapter(self.simulator.observation_space, self.simulator.action_space)

    def observations(self, states: Array) -> list[Any]:
        """Return copies of the environment's observations in the states [n, ...]."""
        native_observations = getattr(self.simulator, "native_observations", None)
        space = self.space_adapter.observations
        if callable(native_observations):
            observations = native_observations(states)
            return observations if isinstance(observations, list) else split_batch(space, observations)
        if isinstance(space, Box):
            return list(self.batch(states))
        return [unflatten(space, row) for row in observe_and_check(self.simulator, states).reshape(len(states), -1)]

    def batch(self, states: Array) -> Array:
        """Return the environment's observations as one array [n, ...], flat [n, O] if they are not a Box."""
        space = self.space_adapter.observations
        if not isinstance(space, Box):
            return observe_and_check(self.simulator, states).reshape(len(states), -1)
        if callable(getattr(self.simulator, "native_observations", None)):
            return np.stack([np.asarray(observation) for observation in self.observations(states)])
        return np.array(observe_and_check(self.simulator, states).reshape(len(states), *space.shape), space.dtype)

    def to_native_actions(self, actions: Array) -> list[Any]:
        """Return the simulator's actions [n] or [n, A] as the environment takes them."""
        return list(self.space_adapter.to_native_actions(actions))

    def to_simulator_actions(self, part: str, native_actions: Sequence[Any]) -> Array:
        """Return the environment's actions as the simulator's, [n] or [n, A].

        Raises:
            UserCodeError: an action is not in the environment's action space; names the first.
        """
        adapter = self.space_adapter
        space = adapter.actions
        rows = [check_environment_action(part, space, action, row) for row, action in enumerate(native_actions)]
        if not rows:
            shape = (0, *(adapter.action_space.shape or ()))
            return np.zeros(shape, np.int64 if has_discrete_actions(adapter) else np.float32)
        try:
            return adapter.to_learner_actions(np.stack(rows))
        except ValueError as error:
            row = next(i for i, action in enumerate(rows) if not is_environment_action(adapter, action))
            problem = f"chose action {native_actions[row]} of {space}"
            raise UserCodeError(part, problem, "fix its act", row=row) from error


def has_discrete_actions(adapter: SpaceAdapter) -> bool:
    """Return whether the simulator's actions are discrete."""
    return isinstance(adapter.action_space, Discrete)


def is_environment_action(adapter: SpaceAdapter, action: Array) -> bool:
    """Return whether an action of the right shape is in the environment's action space."""
    try:
        adapter.to_learner_actions(action[None])
    except ValueError:
        return False
    return True


def check_environment_action(part: str, space: Space[Any], value: Any, row: int) -> Array:
    """Return one action as an array of the space's shape, or raise a `UserCodeError`."""
    shape = space.shape or ()
    try:
        action = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        raise UserCodeError(part, f"gave an action that is not an array ({error})", "fix its act", row=row) from error
    if action.dtype.kind not in NUMBERS:
        remedy = f"an action is one of {space}: fix its act"
        raise UserCodeError(part, f"gave {type(value).__name__} as an action", remedy, row=row)
    if action.shape != shape and action.shape != (*shape, 1) and action.shape != (1, *shape):
        remedy = f"it must be of shape {shape}: fix its act"
        raise UserCodeError(part, f"gave an action of shape {action.shape}", remedy, row=row)
    if not np.isfinite(action).all():
        raise UserCodeError(part, f"gave an action that is not finite ({value})", "fix its act", row=row)
    return action.reshape(shape)
