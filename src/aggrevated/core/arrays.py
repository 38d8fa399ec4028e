"""Type alias of NumPy arrays; docstrings give the shapes, in the order [K, T, ...]."""

from typing import Any, TypeAlias

import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
