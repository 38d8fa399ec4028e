"""Names of the classes of symbols, stored with a policy's weights as bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from aggrevated.core.arrays import Array

CLASSES = 160  # maximum number of classes
BYTES = 16  # maximum length of a name in UTF-8
UNKNOWN = -1  # class of all other names


def choose_class_names(symbols: Iterable[str], classes: int = CLASSES, longest: int = BYTES) -> tuple[str, ...]:
    """Return the printable names of at most `longest` bytes, sorted; of too many, the most frequent ones."""
    counted = Counter(symbols)
    fit = [name for name, _ in counted.most_common() if 0 < len(name.encode()) <= longest and name.isprintable()]
    return tuple(sorted(fit[:classes]))


def names_to_bytes(names: Sequence[str], classes: int = CLASSES, longest: int = BYTES) -> Tensor:
    """Return the names as uint8 [classes, longest], with zeros for missing names."""
    table = np.zeros((classes, longest), np.uint8)
    for row, name in zip(table, names, strict=False):
        data = name.encode()
        row[: len(data)] = np.frombuffer(data, np.uint8)
    return torch.from_numpy(table)


def names_from_bytes(table: Tensor) -> tuple[str, ...]:
    """Return the names from the bytes that `names_to_bytes` made.

    Raises:
        ValueError: The bytes are not UTF-8, or a name is not printable.
    """
    rows = (bytes(row).rstrip(b"\0") for row in table.numpy())
    names = tuple(row.decode() for row in rows if row)
    if not all(name.isprintable() for name in names):
        raise ValueError("a name in it cannot be printed")
    return names


def encode_labels(symbols: Sequence[str], names: Sequence[str]) -> Array:
    """Return the class of each symbol, int64 [n], UNKNOWN for symbols without one."""
    classes = {name: number for number, name in enumerate(names)}
    return np.array([classes.get(symbol, UNKNOWN) for symbol in symbols], np.int64)
