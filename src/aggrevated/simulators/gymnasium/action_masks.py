"""Which actions are legal, as environments say it."""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.errors import UserCodeError
from aggrevated.simulators.gymnasium.make import Environment

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
