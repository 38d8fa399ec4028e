"""Grouping of strokes and pieces of ink into symbols by geometry.

A part is certainly one piece: a stroke of a pen, or connected ink in a picture. Parts that touch are one
symbol, and so are parts that one of the `RULES` joins. All lengths are in units of
`compute_median_symbol_size`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError
from aggrevated.parsing.pages.page import Strokes, compute_boxes

MAX_PARTS = 500
MAX_NEIGHBOURS = 25  # near pairs per part
MAX_POINTS = 300  # of a part, to measure distances

# Tuned on the writers of CROHME's training data and on generated hands.
DOT = 0.33  # of the median of the longer sides: smaller parts are ignored in the size of symbols
STEP = 1 / 30  # between the points that distances are measured at
TOUCH = 0.1  # maximum distance of touching parts; MEET for parts side by side
MEET = 0.06
LOW = 0.8  # maximum height of strokes of a small letter: `a` `m` `x`
NEXT = 0.4  # overlap as a share of the narrower width, below which a part may be the next symbol
BESIDE = 0.2  # overlap as a share of the narrower width, below which parts are side by side
NEAR = 0.13  # maximum distance of parts that nearly touch
ARC = 1.0  # maximum length of an open arc in widths and heights: a 3 or a 0 is longer
OPEN = 0.2  # minimum difference between the heights of its ends
REACHED = 0.2  # maximum distance of a stroke that ends at another
FAR = 1.2  # minimum distance of parts that are never one symbol


def group_strokes(parts: Sequence[Strokes]) -> list[list[int]]:
    """Return the parts of each symbol, as lists of indices in the order of each symbol's first part.

    Args:
        parts: The strokes of each part.

    Raises:
        DataError: There are more than MAX_PARTS parts, or they overlap too much.
    """
    if len(parts) > MAX_PARTS:
        raise DataError(f"{len(parts):,} strokes are not a page of algebra; give at most {MAX_PARTS}")
    if not parts:
        return []
    unit = compute_median_symbol_size(parts)
    outlines = [_sample_outline(part, unit) for part in parts]
    alone = _Shapes.of(outlines)
    touching = _find_components(
        len(parts), (pair for pair in _find_near_pairs(alone.boxes, TOUCH) if _is_touching(alone, *pair))
    )
    shapes = _Shapes.of([np.concatenate([outlines[part] for part in group]) for group in touching])
    joined = _find_components(
        len(touching), (pair for pair in shapes.find_near_pairs() if any(rule(shapes, *pair) for rule in RULES))
    )
    return [sorted(part for group in symbol for part in touching[group]) for symbol in joined]


def compute_median_symbol_size(ink: Sequence[Strokes]) -> float:
    """Return the size of a symbol: the median of the longer sides, without those of dots."""
    boxes = compute_boxes([np.concatenate(strokes) for strokes in ink])
    sizes = (boxes[:, 2:] - boxes[:, :2]).max(axis=1)
    return max(float(np.median(sizes[sizes >= DOT * np.median(sizes)])), 1e-9)


def _sample_outline(strokes: Strokes, unit: float) -> Array:
    """Return evenly spaced points along the pen's path, dense enough for distances, in units, [points, 2]."""
    points = np.concatenate([_resample_stroke(stroke / unit) for stroke in strokes])
    return points[:: -(-len(points) // MAX_POINTS)]


def _resample_stroke(stroke: Array) -> Array:
    """Return points of a stroke at distances of STEP, or of more if there would be too many points."""
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(stroke, axis=0).T))])
    if along[-1] <= STEP:
        return stroke[:1]
    at = np.linspace(0.0, along[-1], min(int(along[-1] / STEP) + 2, MAX_POINTS))
    return np.stack([np.interp(at, along, stroke[:, 0]), np.interp(at, along, stroke[:, 1])], axis=1)


def _is_touching(s: _Shapes, a: int, b: int) -> bool:
    """Return whether two parts touch; parts side by side, as hasty neighbors, must be closer."""
    if s.bar[a] != s.bar[b] and _is_fraction(s, a if s.bar[a] else b):
        return False
    if s.measure_overlap(a, b) < NEXT and not s.straight[[a, b]].any() and s.size[[a, b], 1].min() > LOW:
        a, b = (a, b) if s.boxes[a, 0] < s.boxes[b, 0] else (b, a)  # two digits, or an x as `)(`
        return s.measure_distance(a, b) < TOUCH and _measure_bulge(s.points[a]) > 0 and _measure_bulge(-s.points[b]) > 0
    return s.measure_distance(a, b) < (TOUCH if s.measure_overlap(a, b) > BESIDE else MEET)


def _find_near_pairs(boxes: Array, reach: float) -> list[tuple[int, int]]:
    """Return the pairs whose boxes are less than `reach` apart."""
    pairs = np.argwhere(np.triu(np.maximum(*_compute_gaps(boxes)) < reach, 1))
    if len(pairs) > MAX_NEIGHBOURS * len(boxes):
        raise DataError("its strokes lie all over each other: that is not a page of algebra; write side by side")
    return [(int(a), int(b)) for a, b in pairs]


def _compute_gaps(boxes: Array) -> tuple[Array, Array]:
    """Return the horizontal and vertical gaps between boxes, [n, n] each; negative if they overlap."""
    left, top, right, bottom = boxes.T
    across = np.maximum(left[:, None], left) - np.minimum(right[:, None], right)
    return across, np.maximum(top[:, None], top) - np.minimum(bottom[:, None], bottom)


def _measure_distance(a: Array, b: Array) -> float:
    """Return the distance between the two nearest points."""
    squared = (a[:, :1] - b[:, 0]) ** 2 + (a[:, 1:] - b[:, 1]) ** 2
    return float(np.sqrt(squared.min()))


def _find_components(count: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Return the sets of 0 … count − 1 that the pairs connect."""
    parent = list(range(count))

    def find_root(one: int) -> int:
        while parent[one] != one:
            parent[one] = one = parent[parent[one]]
        return one

    for a, b in pairs:
        first, second = sorted((find_root(a), find_root(b)))
        parent[second] = first
    sets: dict[int, list[int]] = {}
    for one in range(count):
        sets.setdefault(find_root(one), []).append(one)
    return list(sets.values())


# Rules that join parts that do not touch.


@dataclass(frozen=True)
class _Shapes:
    """Features of n parts that the rules use."""

    points: list[Array]  # each [points, 2]
    boxes: Array  # [n, 4]
    size: Array  # [n, 2]: width, height
    across: Array  # [n, n]: horizontal gaps
    down: Array  # [n, n]: vertical gaps
    straight: Array  # bool [n]: a line without bends
    bar: Array  # bool [n]: a straight line that runs across rather than down
    dot: Array  # bool [n]: a dot or another short stroke

    @classmethod
    def of(cls, points: list[Array]) -> _Shapes:
        boxes = compute_boxes(points)
        size = boxes[:, 2:] - boxes[:, :2]
        width, height = size.T
        straight = np.array([_measure_bend(stroke_points) < 0.02 for stroke_points in points])
        bar = (width > 0.15) & (width > np.where(straight, 0.8, 3.0) * height)
        return cls(points, boxes, size, *_compute_gaps(boxes), straight, bar, size.max(axis=1) < 0.4)

    def find_near_pairs(self) -> list[tuple[int, int]]:
        """Return all pairs that a rule may join, in both orders."""
        pairs = _find_near_pairs(self.boxes, FAR)
        return [*pairs, *((b, a) for a, b in pairs)]

    def measure_overlap(self, a: int, b: int) -> float:
        """Return the share of the narrower part that stands above or below the other; 1 is all of it."""
        return -float(self.across[a, b]) / max(float(min(self.size[a, 0], self.size[b, 0])), 0.1)

    def measure_distance(self, a: int, b: int) -> float:
        return _measure_distance(self.points[a], self.points[b])


def _measure_bend(points: Array) -> float:
    """Return how far points scatter about a line: the variance across it divided by that along it."""
    if len(points) < 3:
        return 0.0
    small, large = np.linalg.eigvalsh(np.cov(points.T))
    return float(small / max(large, 1e-12))


def _is_stacked(s: _Shapes, a: int, b: int) -> bool:
    """Return whether two parts above each other are one symbol: `=` `≤` `±` `y`."""
    overlap = s.measure_overlap(a, b)
    if overlap < (0.25 if s.bar[a] else 0.6):
        return False
    if s.bar[a] and s.bar[b]:
        return bool(s.down[a, b] < 0.85 and s.size[[a, b], 0].max() < 3 * s.size[[a, b], 0].min())
    if s.bar[a]:
        wider = s.size[a, 0] > 2.2 * max(s.size[b, 0], 0.3)  # as the foot of a 1
        return not _is_fraction(s, a) and s.measure_distance(a, b) < (0.15 if wider else 0.7)
    if s.bar[b]:  # the pair in reverse order decides
        return False
    return s.measure_distance(a, b) < (1.5 * NEAR if overlap > 0.75 else NEAR)


def _is_fraction(s: _Shapes, bar: int) -> bool:
    """Return whether there are symbols other than bars and dots close to the bar, both above and below."""
    left, top, right, bottom = s.boxes[bar]
    middle = (s.boxes[:, 1] + s.boxes[:, 3]) / 2
    reach = 0.7 if right - left < 1.0 else 1.2  # few minus signs are that wide
    over = s.across[bar] < -np.minimum(0.1, s.size[:, 0] / 2)  # a 1 is narrow
    close = over & (s.down[bar] < reach) & ~s.bar & ~s.dot
    above = (s.boxes[:, 3] < bottom + 0.15) & (middle < top)
    below = (s.boxes[:, 1] > top - 0.15) & (middle > bottom)
    return bool((close & above).any() and (close & below).any())


def _is_dotted(s: _Shapes, a: int, b: int) -> bool:
    """Return whether a dot belongs to a symbol below it, a bar, or another dot: `i` `j` `÷` `:`."""
    if not s.dot[a] or s.down[a, b] < 0:
        return False
    if s.bar[b] and not s.dot[b]:  # `÷` has a dot on both sides: other dots at a bar belong to an i or are points
        close = s.dot & (s.across[b] < 0.1) & (s.down[b] < 0.75) & (s.down[b] > 0)
        other = (s.boxes[:, 1] - s.boxes[b, 1]) * (s.boxes[a, 1] - s.boxes[b, 1]) < 0
        return bool(close[a] and (close & other).any())
    if s.dot[b]:
        return bool(s.across[a, b] < 0.1 and s.down[a, b] < 0.75)
    above = s.boxes[a, 3] < s.boxes[b, 1]
    return bool(above and s.across[a, b] < 0.35 and s.down[a, b] < 1.0 and s.size[b, 0] < 1.2)


def _is_exclamation_mark(s: _Shapes, a: int, b: int) -> bool:
    """Return whether a dot is below a straight vertical line: `!`."""
    upright = s.straight[b] and s.size[b, 1] > 2 * s.size[b, 0] and s.size[b, 1] > 0.5
    below = s.boxes[a, 1] > s.boxes[b, 3]
    return bool(s.dot[a] and upright and below and s.across[a, b] < 0.05 and s.down[a, b] < 0.8)


def _is_capped(s: _Shapes, a: int, b: int) -> bool:
    """Return whether a flat bar continues to the right from the top of a symbol: `5`."""
    flat = s.bar[a] and s.size[a, 1] < 0.3 and s.size[b, 1] > 0.5
    high = abs(s.boxes[a, [1, 3]].mean() - s.boxes[b, 1]) < 0.35
    onward = s.boxes[b, 0] < s.boxes[a, 0] < s.boxes[b, 2] + 0.05 < s.boxes[a, 2] + 0.05
    return bool(flat and high and onward and s.measure_distance(a, b) < 0.3)


def _has_upright(s: _Shapes, a: int, b: int) -> bool:
    """Return whether a vertical stroke is on the right and lower, `4`, or on the left and taller, `k`."""
    if s.size[a, 1] < 1.5 * s.size[a, 0] or s.down[a, b] > -0.1:
        return False
    left, top, _, bottom = s.boxes[a] - s.boxes[b]
    four = _measure_bend(s.points[a]) < 0.06 and left > 0 and top > 0.05 and bottom > 0.1
    k = s.straight[a] and left < 0 and top < -0.3 and abs(bottom) < 0.25
    return bool((four or k) and s.measure_distance(a, b) < REACHED)


def _is_bridged(s: _Shapes, a: int, b: int) -> bool:
    """Return whether a bar leads from one upright stroke to another: `H`."""
    if not s.bar[a] or not s.straight[b] or s.size[b, 1] < 2 * max(s.size[b, 0], s.size[a, 1]):
        return False
    level = np.abs(s.boxes[:, 1::2] - s.boxes[b, 1::2]).max(axis=1) < 0.4
    other = s.straight & level & (s.size[:, 1] > 2 * s.size[:, 0]) & (s.down[a] < -0.5 * s.size[a, 1])
    across = s.boxes[:, [0, 2]].mean(axis=1) - s.boxes[a, [0, 2]].mean()
    other &= across * across[b] < 0
    return s.measure_distance(a, b) < REACHED and any(
        s.measure_distance(a, int(c)) < REACHED for c in np.flatnonzero(other)
    )


def _is_back_to_back(s: _Shapes, a: int, b: int) -> bool:
    """Return whether two low arcs nearly meet back to back: `x` as `)(`; brackets are slimmer or taller."""
    level = np.abs(s.boxes[a, 1::2] - s.boxes[b, 1::2]).max() < 0.4
    slim = bool((s.size[[a, b], 0] < 0.3 * s.size[[a, b], 1]).all())
    low = s.size[[a, b], 1].max() < (1.2 if slim else 1.4)
    is_left = s.boxes[a, 0] < s.boxes[b, 0] and s.across[a, b] > -0.4
    if not level or not low or not is_left or s.measure_distance(a, b) > (0.12 if slim else 0.35):
        return False
    return _measure_bulge(s.points[a]) > 0.2 and _measure_bulge(-s.points[b]) > 0.2


def _measure_bulge(points: Array) -> float:
    """Return how far the right side of a line like `)` exceeds both its ends, in widths, or 0."""
    x, y = points.T
    height = max(float(np.ptp(y)), 1e-9)
    length = float(np.hypot(*np.diff(points, axis=0).T).sum())
    off = np.abs(y - (y.min() + y.max()) / 2) / height  # distance from the middle, 0 to ½
    width = max(float(np.ptp(x)), 1e-9)
    if off[int(x.argmax())] > 0.4 or length > ARC * (height + 2 * width) or abs(y[0] - y[-1]) < OPEN * height:
        return 0.0
    return float(x.max() - max(x[0], x[-1])) / width


RULES: tuple[Callable[[_Shapes, int, int], bool], ...] = (
    _is_stacked,
    _is_dotted,
    _is_exclamation_mark,
    _is_capped,
    _has_upright,
    _is_bridged,
    _is_back_to_back,
)
