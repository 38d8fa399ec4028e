"""A page of handwritten algebra: its symbols in reading order, their ink, and the tree that is to be found."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array

NAMELESS = "?"  # the label of a symbol that nobody has named
Strokes = tuple[Array, ...]  # each [points, 2] float64: x to the right, y downwards


@dataclass(frozen=True)
class Page:
    """One set of equations by one writer. Symbol i of n has number i + 1; 0 is ROOT."""

    name: str
    writer: str
    symbols: tuple[str, ...]  # labels, for people and statistics: the parser never sees them
    heads: Array  # int [n]: the number of each symbol's head
    ink: tuple[Strokes, ...]  # of each symbol

    def __post_init__(self) -> None:
        n = len(self.symbols)
        assert self.heads.shape == (n,) and len(self.ink) == n, (n, self.heads.shape, len(self.ink))
        assert ((self.heads >= 0) & (self.heads <= n)).all(), self.heads

    def __len__(self) -> int:
        return len(self.symbols)

    @property
    def boxes(self) -> Array:
        """[n, 4]: left, top, right, bottom of each symbol."""
        return compute_boxes([np.concatenate(strokes) for strokes in self.ink])


def compute_boxes(points: Sequence[Array]) -> Array:
    """[n, 4]: left, top, right, bottom of each set of points."""
    return np.array([[*p.min(axis=0), *p.max(axis=0)] for p in points]).reshape(-1, 4)
