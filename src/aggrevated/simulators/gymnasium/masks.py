"""Which actions are legal, as environments say it in `info["action_mask"]`."""

from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np

from aggrevated.arrays import Array
from aggrevated.errors import PartError


def mask_in(info: Any) -> Any:
    """The mask that comes with an observation, None where none does."""
    return info.get("action_mask") if isinstance(info, Mapping) else None


def legal_of(info: Any, actions: int, name: str) -> Array | None:
    """[A] bool: which of the actions may be taken; None: all.

    A mask for each of several choices is a mask of all their combinations.
    """
    mask = mask_in(info)
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
        raise PartError(name, f"gave an action_mask of shape {np.shape(mask)}", remedy)
    return legal
