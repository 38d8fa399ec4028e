"""The one name for NumPy arrays in signatures; shapes stand in the docstrings, in the order [K, T, ...]."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def running_from_the_end(values: Array) -> Array:
    """Σ_{i ≥ t} values[:, i], as [K, T]: what is still to come at t, t included."""
    return np.cumsum(values[:, ::-1], axis=1)[:, ::-1]
