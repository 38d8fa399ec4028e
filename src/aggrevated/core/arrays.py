"""The one name for NumPy arrays in signatures; shapes stand in the docstrings, in the order [K, T, ...]."""

from typing import Any, TypeAlias

import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
