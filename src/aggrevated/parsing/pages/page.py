"""Page of handwritten algebra: its symbols in reading order, their ink and the gold dependency tree."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array

NAMELESS = "?"  # label of a symbol without a name
Strokes = tuple[Array, ...]  # each [points, 2] float64: x to the right, y downwards


@dataclass(frozen=True)
class Page:
    """Set of equations by one writer. The symbol with the index i has the number i + 1; 0 is ROOT.

    Attributes:
        name: name of the page.
        writer: name of the writer.
        symbols: labels of the n symbols, for people and statistics; parsers do not use them.
        heads: number of the head of each symbol, int [n].
        ink: strokes of each symbol.
    """

    name: str
    writer: str
    symbols: tuple[str, ...]
    heads: Array
    ink: tuple[Strokes, ...]

    def __post_init__(self) -> None:
        n = len(self.symbols)
        assert self.heads.shape == (n,) and len(self.ink) == n, (n, self.heads.shape, len(self.ink))
        assert ((self.heads >= 0) & (self.heads <= n)).all(), self.heads

    def __len__(self) -> int:
        return len(self.symbols)

    @property
    def boxes(self) -> Array:
        """Return left, top, right and bottom of each symbol, [n, 4]."""
        return compute_boxes([np.concatenate(strokes) for strokes in self.ink])


def compute_boxes(points: Sequence[Array]) -> Array:
    """Return left, top, right and bottom of each array of points, [n, 4]."""
    return np.array([[*p.min(axis=0), *p.max(axis=0)] for p in points]).reshape(-1, 4)
