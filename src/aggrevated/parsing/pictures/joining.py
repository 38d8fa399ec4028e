"""Which pieces of ink are one symbol: from geometry alone.

A part is what is surely one piece: a stroke of a pen, or what hangs together in a picture. Parts that touch are one
symbol, and so are those that one of the `RULES` joins. All lengths are in units of `unit_of`, about one symbol's size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from aggrevated.arrays import Array
from aggrevated.errors import DataError
from aggrevated.parsing.pages.page import Strokes, boxes_of

MAX_PARTS = 500
MAX_NEIGHBOURS = 25  # near pairs of parts, by part
MAX_POINTS = 300  # of a part, when distances are measured

# Tuned on the writers of CROHME's training data and on generated hands.
STEP = 1 / 30  # between the points at which distances are measured
TOUCH = 0.09  # what is nearer, touches
NEAR = 0.2  # what nearly touches
FAR = 1.2  # what is farther apart, is never one symbol


def groups(parts: Sequence[Strokes]) -> list[list[int]]:
    """Which parts make up each symbol: lists of their places, in the order of each one's first part."""
    if len(parts) > MAX_PARTS:
        raise DataError(f"{len(parts):,} strokes are no page of algebra; give at most {MAX_PARTS}")
    if not parts:
        return []
    unit = unit_of(parts)
    outlines = [_outline(part, unit) for part in parts]
    near = _near(boxes_of(outlines), TOUCH)
    touching = _united(len(parts), ((a, b) for a, b in near if _apart(outlines[a], outlines[b]) < TOUCH))
    shapes = _Shapes.of([np.concatenate([outlines[part] for part in group]) for group in touching])
    joined = _united(len(touching), (pair for pair in shapes.near() if any(rule(shapes, *pair) for rule in RULES)))
    return [sorted(part for group in symbol for part in touching[group]) for symbol in joined]


def unit_of(ink: Sequence[Strokes]) -> float:
    """The size of a symbol: the median of the longer sides."""
    boxes = boxes_of([np.concatenate(strokes) for strokes in ink])
    return max(float(np.median((boxes[:, 2:] - boxes[:, :2]).max(axis=1))), 1e-9)


def _outline(strokes: Strokes, unit: float) -> Array:
    """[points, 2]: evenly along the pen's path, dense enough to measure distances, in units."""
    points = np.concatenate([_evenly(stroke / unit) for stroke in strokes])
    return points[:: -(-len(points) // MAX_POINTS)]


def _evenly(stroke: Array) -> Array:
    """The points of a stroke at distances of STEP, or more if it would take too many."""
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(stroke, axis=0).T))])
    if along[-1] <= STEP:
        return stroke[:1]
    at = np.linspace(0.0, along[-1], min(int(along[-1] / STEP) + 2, MAX_POINTS))
    return np.stack([np.interp(at, along, stroke[:, 0]), np.interp(at, along, stroke[:, 1])], axis=1)


def _near(boxes: Array, reach: float) -> list[tuple[int, int]]:
    """The pairs whose boxes are at most `reach` apart; a page of algebra has few."""
    pairs = np.argwhere(np.triu(np.maximum(*_gaps(boxes)) < reach, 1))
    if len(pairs) > MAX_NEIGHBOURS * len(boxes):
        raise DataError("its strokes lie all over each other: that is no page of algebra; write side by side")
    return [(int(a), int(b)) for a, b in pairs]


def _gaps(boxes: Array) -> tuple[Array, Array]:
    """[n, n] each: the gap between two boxes across and down the page; negative where they overlap."""
    left, top, right, bottom = boxes.T
    across = np.maximum(left[:, None], left) - np.minimum(right[:, None], right)
    return across, np.maximum(top[:, None], top) - np.minimum(bottom[:, None], bottom)


def _apart(a: Array, b: Array) -> float:
    """The distance between the nearest two of the points."""
    squared = (a[:, :1] - b[:, 0]) ** 2 + (a[:, 1:] - b[:, 1]) ** 2
    return float(np.sqrt(squared.min()))


def _united(count: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """The sets of 0 … count − 1 that the pairs connect."""
    parent = list(range(count))

    def root(one: int) -> int:
        while parent[one] != one:
            parent[one] = one = parent[parent[one]]
        return one

    for a, b in pairs:
        first, second = sorted((root(a), root(b)))
        parent[second] = first
    sets: dict[int, list[int]] = {}
    for one in range(count):
        sets.setdefault(root(one), []).append(one)
    return list(sets.values())


# The rules by which parts that do not touch are one symbol.


@dataclass(frozen=True)
class _Shapes:
    """What the rules know of n parts."""

    points: list[Array]  # each [points, 2]
    boxes: Array  # [n, 4]
    size: Array  # [n, 2]: width, height
    across: Array  # [n, n]: gaps
    down: Array
    straight: Array  # bool [n]: a line without bends
    bar: Array  # bool [n]: a straight line that runs across rather than down
    dot: Array  # bool [n]: a dot, or a stroke as short

    @classmethod
    def of(cls, points: list[Array]) -> _Shapes:
        boxes = boxes_of(points)
        size = boxes[:, 2:] - boxes[:, :2]
        width, height = size.T
        straight = np.array([_is_straight(one) for one in points])
        bar = (width > 0.15) & (width > np.where(straight, 0.8, 3.0) * height)
        return cls(points, boxes, size, *_gaps(boxes), straight, bar, size.max(axis=1) < 0.4)

    def near(self) -> list[tuple[int, int]]:
        """All pairs that a rule may join, both ways round."""
        pairs = _near(self.boxes, FAR)
        return [*pairs, *((b, a) for a, b in pairs)]

    def overlap(self, a: int, b: int) -> float:
        """How much of the narrower one stands above or below the other: 1 is all of it."""
        return -float(self.across[a, b]) / max(float(min(self.size[a, 0], self.size[b, 0])), 0.1)

    def apart(self, a: int, b: int) -> float:
        return _apart(self.points[a], self.points[b])


def _is_straight(points: Array) -> bool:
    """Whether the points scatter along one line: the second principal axis is a small part of the first."""
    if len(points) < 3:
        return True
    small, large = np.linalg.eigvalsh(np.cov(points.T))
    return bool(small < 0.02 * large)


def _stacked(s: _Shapes, a: int, b: int) -> bool:
    """Nothing stands above anything else in a line of algebra unless it is a part of it: `=` `≤` `±` `y`."""
    overlap = s.overlap(a, b)
    if overlap < (0.25 if s.bar[a] else 0.6):
        return False
    if s.bar[a] and s.bar[b]:
        return bool(s.down[a, b] < 0.85 and s.size[[a, b], 0].max() < 3 * s.size[[a, b], 0].min())
    if s.bar[a] and not _is_fraction(s, a):
        return s.apart(a, b) < 0.7
    return s.apart(a, b) < (1.5 * NEAR if overlap > 0.75 else NEAR)


def _is_fraction(s: _Shapes, bar: int) -> bool:
    """Whether something other than bars and dots stands close to the bar both above and below."""
    close = (s.across[bar] < -0.1) & (s.down[bar] < 0.7) & ~s.bar & ~s.dot
    above = s.boxes[:, 3] < s.boxes[bar, 1] + 0.1
    below = s.boxes[:, 1] > s.boxes[bar, 3] - 0.1
    return bool((close & above).any() and (close & below).any())


def _dotted(s: _Shapes, a: int, b: int) -> bool:
    """A dot above a symbol, perhaps a little beside it, or close to a bar or another dot: `i` `j` `÷` `:`."""
    if not s.dot[a] or s.down[a, b] < 0:
        return False
    if s.bar[b] or s.dot[b]:
        return bool(s.across[a, b] < 0.1 and s.down[a, b] < 0.75)
    above = s.boxes[a, 3] < s.boxes[b, 1]
    return bool(above and s.across[a, b] < 0.35 and s.down[a, b] < 1.0 and s.size[b, 0] < 1.2)


def _capped(s: _Shapes, a: int, b: int) -> bool:
    """A flat bar that goes on to the right from the top of a symbol: `5`."""
    flat = s.bar[a] and s.size[a, 1] < 0.3 and s.size[b, 1] > 0.5
    high = abs(s.boxes[a, [1, 3]].mean() - s.boxes[b, 1]) < 0.35
    onward = s.boxes[b, 0] < s.boxes[a, 0] < s.boxes[b, 2] + 0.05 < s.boxes[a, 2] + 0.05
    return bool(flat and high and onward and s.apart(a, b) < 1.5 * NEAR)


def _upright(s: _Shapes, a: int, b: int) -> bool:
    """A stroke straight down on the right that begins and ends lower, `4`, or on the left and only taller, `k`."""
    if not s.straight[a] or s.size[a, 1] < 1.5 * s.size[a, 0] or s.down[a, b] > -0.1:
        return False
    left, top, _, bottom = s.boxes[a] - s.boxes[b]
    four = left > 0 and top > 0.05 and bottom > 0.1
    k = left < 0 and top < -0.3 and abs(bottom) < 0.25
    return bool((four or k) and s.apart(a, b) < NEAR)


def _back_to_back(s: _Shapes, a: int, b: int) -> bool:
    """Two low arcs whose backs nearly meet: `x` as `)(`. Brackets are slimmer."""
    level = np.abs(s.boxes[a, 1::2] - s.boxes[b, 1::2]).max() < 0.4
    slim = (s.size[[a, b], 0] < 0.3 * s.size[[a, b], 1]).all()
    low = s.size[[a, b], 1].max() < 1.4 and s.across[a, b] > -0.3
    if not level or not low or slim or s.apart(a, b) > 1.5 * NEAR:
        return False
    return _bulge(s.points[a]) > 0.1 and _bulge(-s.points[b]) > 0.1


def _bulge(points: Array) -> float:
    """How far the middle of an arc like `)` stands out to the right beyond both ends, in its own heights; else 0."""
    x, y = points.T
    height = max(float(np.ptp(y)), 1e-9)
    quarter = np.minimum(np.floor(4 * (y - y.min()) / height), 3)
    top, middle, bottom = x[quarter == 0], x[(quarter == 1) | (quarter == 2)], x[quarter == 3]
    if min(map(len, (top, middle, bottom))) == 0 or np.std(middle) > 0.18 * height:  # two sides, such as those of a 0
        return 0.0
    return float(middle.mean() - max(top.mean(), bottom.mean())) / height


RULES: tuple[Callable[[_Shapes, int, int], bool], ...] = (_stacked, _dotted, _capped, _upright, _back_to_back)
