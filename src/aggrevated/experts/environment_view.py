"""An environment's own observations and actions, for experts that know nothing of our states and numbers."""

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
    """What the environment behind a simulator shows and takes; of one that has no `translation` it is the simulator's.

    A simulator with a method `native_observations(states)` is asked by that: numbers that its `observe` rounds to
    float32 are then exact.
    """

    simulator: Simulator

    @property
    def space_adapter(self) -> SpaceAdapter:
        """Between the environment's spaces and ours."""
        found = getattr(self.simulator, "space_adapter", None)
        if isinstance(found, SpaceAdapter):
            return found
        return SpaceAdapter(self.simulator.observation_space, self.simulator.action_space)

    def observations(self, states: Array) -> list[Any]:
        """What the environment shows in each of the states [n, ...]: copies."""
        own = getattr(self.simulator, "native_observations", None)
        space = self.space_adapter.observations
        if callable(own):
            given = own(states)
            return given if isinstance(given, list) else split_batch(space, given)
        if isinstance(space, Box):
            return list(self.batch(states))
        return [unflatten(space, row) for row in observe_and_check(self.simulator, states).reshape(len(states), -1)]

    def batch(self, states: Array) -> Array:
        """The same as one array [n, ...], where observations are a Box; else as flat vectors [n, O]."""
        space = self.space_adapter.observations
        if not isinstance(space, Box):
            return observe_and_check(self.simulator, states).reshape(len(states), -1)
        if callable(getattr(self.simulator, "native_observations", None)):
            return np.stack([np.asarray(one) for one in self.observations(states)])
        return np.array(observe_and_check(self.simulator, states).reshape(len(states), *space.shape), space.dtype)

    def taken(self, actions: Array) -> list[Any]:
        """Our actions [n] or [n, A] as the environment takes them."""
        return list(self.space_adapter.to_native_actions(actions))

    def ours(self, part: str, given: Sequence[Any]) -> Array:
        """Actions as the environment takes them as ours, [n] or [n, A]; a `PartError` at the first that is none."""
        translation = self.space_adapter
        space = translation.actions
        rows = [check_environment_action(part, space, one, row) for row, one in enumerate(given)]
        if not rows:
            return np.zeros(
                (0, *(translation.action_space.shape or ())),
                np.int64 if has_discrete_actions(translation) else np.float32,
            )
        try:
            return translation.to_learner_actions(np.stack(rows))
        except ValueError as error:
            row = next(i for i, one in enumerate(rows) if not is_environment_action(translation, one))
            raise UserCodeError(part, f"chose action {given[row]} of {space}", "mend its act", row=row) from error


def has_discrete_actions(translation: SpaceAdapter) -> bool:
    """Whether our actions are a finite set."""
    return isinstance(translation.action_space, Discrete)


def is_environment_action(translation: SpaceAdapter, action: Array) -> bool:
    """Whether an action of the right shape is one of the environment's."""
    try:
        translation.to_learner_actions(action[None])
    except ValueError:
        return False
    return True


def check_environment_action(part: str, space: Space[Any], given: Any, row: int) -> Array:
    """One action, of numbers and of the environment's shape."""
    shape = space.shape or ()
    try:
        action = np.asarray(given)
    except (ValueError, TypeError, RuntimeError) as error:
        raise UserCodeError(part, f"gave an action that is no array ({error})", "mend its act", row=row) from error
    if action.dtype.kind not in NUMBERS:
        remedy = f"an action is one of {space}: mend its act"
        raise UserCodeError(part, f"gave {type(given).__name__} as an action", remedy, row=row)
    if action.shape != shape and action.shape != (*shape, 1) and action.shape != (1, *shape):
        remedy = f"it must be of shape {shape}: mend its act"
        raise UserCodeError(part, f"gave an action of shape {action.shape}", remedy, row=row)
    if not np.isfinite(action).all():
        raise UserCodeError(part, f"gave an action that is not finite ({given})", "mend its act", row=row)
    return action.reshape(shape)
