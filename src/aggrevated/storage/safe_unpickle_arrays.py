"""NumPy's numbers in a pickle that is not run: made of their bytes, if they are what they say."""

from __future__ import annotations

import re
from math import prod
from typing import Any

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.errors import DataError
from aggrevated.storage.safe_unpickle import UnresolvedObject

TYPES = re.compile(r"f[248]|[iu][1248]|b1", re.ASCII)
PLACES = {f"numpy.{core}.{file}" for core in ("_core", "core") for file in ("multiarray", "numeric")}


def array_from_pickle(value: Any) -> Array:
    """The array, or number, that an inert value stands for; a `DataError` if it stands for none."""
    try:
        if isinstance(value, bool | int | float):
            return np.asarray(float(value))
        if isinstance(value, UnresolvedObject) and value.module in PLACES:
            if value.name == "_frombuffer":
                data, dtype, shape, order = value.arguments
                return _array(data, dtype, shape, order)
            if value.name == "_reconstruct":
                _, shape, dtype, fortran, data = value.state
                return _array(data, dtype, shape, "F" if fortran else "C")
            if value.name == "scalar":
                dtype, data = value.arguments
                return _array(data, dtype, (), "C")
    except (IndexError, OverflowError, TypeError, ValueError) as error:
        raise DataError("it holds an array that is not what it says") from error
    raise DataError("it holds something else where an array should be")


def number_from_pickle(value: Any) -> float:
    """The one number that it stands for."""
    array = array_from_pickle(value)
    if array.ndim:
        raise DataError("it holds an array where a number should be")
    return float(array)


def _array(raw: Any, kind: Any, shape: Any, order: Any) -> Array:
    data, dtype, sizes = _bytes(raw), _dtype(kind), tuple(shape)
    if not all(type(n) is int and 0 <= n <= len(data) for n in sizes) or len(sizes) > 8:
        raise ValueError("no shape")
    if prod(sizes) * dtype.itemsize != len(data):
        raise ValueError("too many bytes, or too few")
    return np.frombuffer(data, dtype).reshape(sizes, order="F" if order == "F" else "C").astype(dtype.newbyteorder("="))


def _bytes(raw: Any) -> bytes | bytearray:
    """Bytes, which old protocols write as text."""
    if isinstance(raw, UnresolvedObject) and (raw.module, raw.name) == ("_codecs", "encode"):
        raw = raw.arguments[0].encode("latin-1") if type(raw.arguments[0]) is str else None
    if not isinstance(raw, bytes | bytearray):
        raise ValueError("no bytes")
    return raw


def _dtype(kind: Any) -> np.dtype[Any]:
    """Of numbers, and nothing else."""
    if not isinstance(kind, UnresolvedObject) or (kind.module, kind.name) != ("numpy", "dtype"):
        raise ValueError("no type")
    name, order = kind.arguments[0], kind.state[1] if isinstance(kind.state, tuple) else "="
    if type(name) is not str or not TYPES.fullmatch(name) or order not in ("<", ">", "|", "="):
        raise ValueError("a type of something else than numbers")
    return np.dtype(f"{order}{name}")
