"""What symbols are called: the classes of a head, kept with its weights as bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from aggrevated.core.arrays import Array

CLASSES = 160  # there is room for
BYTES = 16  # of a name in UTF-8
UNKNOWN = -1  # the class of a name that is none of them


def choose_class_names(symbols: Iterable[str], classes: int = CLASSES, longest: int = BYTES) -> tuple[str, ...]:
    """The names that occur and can be printed, sorted; if there are too many, or too long ones, the most frequent that
    fit."""
    counted = Counter(symbols)
    fit = [name for name, _ in counted.most_common() if 0 < len(name.encode()) <= longest and name.isprintable()]
    return tuple(sorted(fit[:classes]))


def names_to_bytes(names: Sequence[str], classes: int = CLASSES, longest: int = BYTES) -> Tensor:
    """uint8 [classes, longest], zeros where there is no name."""
    table = np.zeros((classes, longest), np.uint8)
    for row, name in zip(table, names, strict=False):
        data = name.encode()
        row[: len(data)] = np.frombuffer(data, np.uint8)
    return torch.from_numpy(table)


def names_from_bytes(table: Tensor) -> tuple[str, ...]:
    """The names that `encoded` was given; a `ValueError` where bytes are none, or nothing to be printed."""
    rows = (bytes(row).rstrip(b"\0") for row in table.numpy())
    names = tuple(row.decode() for row in rows if row)
    if not all(name.isprintable() for name in names):
        raise ValueError("a name in it cannot be printed")
    return names


def encode_labels(symbols: Sequence[str], names: Sequence[str]) -> Array:
    """int64 [n]: the class of each symbol, UNKNOWN where it has none."""
    places = {name: place for place, name in enumerate(names)}
    return np.array([places.get(symbol, UNKNOWN) for symbol in symbols], np.int64)
