"""Which pieces of ink are one symbol: from geometry alone.

A part is what is surely one piece: a stroke of a pen, or what hangs together in a picture. Parts that touch are one
symbol, and so are those that one of the `RULES` joins. All lengths are in units of `unit_of`, about one symbol's size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError
from aggrevated.parsing.pages.page import Strokes, compute_boxes

MAX_PARTS = 500
MAX_NEIGHBOURS = 25  # near pairs of parts, by part
MAX_POINTS = 300  # of a part, when distances are measured

# Tuned on the writers of CROHME's training data and on generated hands.
DOT = 0.33  # of the median of the longer sides: what is smaller, says nothing about the others' size
STEP = 1 / 30  # between the points at which distances are measured
TOUCH = 0.1  # what is nearer, touches; for parts that stand side by side, MEET
MEET = 0.06
LOW = 0.8  # symbols that are lower may be two strokes of a small letter: `a` `m` `x`
NEXT = 0.4  # of the narrower one's width that stands above or below the other: less may be the next symbol
BESIDE = 0.2  # of the narrower one's width that stands above or below the other: less is side by side
NEAR = 0.13  # what nearly touches
ARC = 1.0  # the length of an open arc in widths and heights, at most: a 3 or a 0 is longer
OPEN = 0.2  # between the heights of its ends, at least
REACHED = 0.2  # by a stroke that is to end at another
FAR = 1.2  # what is farther apart, is never one symbol


def group_strokes(parts: Sequence[Strokes]) -> list[list[int]]:
    """Which parts make up each symbol: lists of their places, in the order of each one's first part."""
    if len(parts) > MAX_PARTS:
        raise DataError(f"{len(parts):,} strokes are no page of algebra; give at most {MAX_PARTS}")
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
    """The size of a symbol: the median of the longer sides, without those of dots."""
    boxes = compute_boxes([np.concatenate(strokes) for strokes in ink])
    sizes = (boxes[:, 2:] - boxes[:, :2]).max(axis=1)
    return max(float(np.median(sizes[sizes >= DOT * np.median(sizes)])), 1e-9)


def _sample_outline(strokes: Strokes, unit: float) -> Array:
    """[points, 2]: evenly along the pen's path, dense enough to measure distances, in units."""
    points = np.concatenate([_resample_stroke(stroke / unit) for stroke in strokes])
    return points[:: -(-len(points) // MAX_POINTS)]


def _resample_stroke(stroke: Array) -> Array:
    """The points of a stroke at distances of STEP, or more if it would take too many."""
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(stroke, axis=0).T))])
    if along[-1] <= STEP:
        return stroke[:1]
    at = np.linspace(0.0, along[-1], min(int(along[-1] / STEP) + 2, MAX_POINTS))
    return np.stack([np.interp(at, along, stroke[:, 0]), np.interp(at, along, stroke[:, 1])], axis=1)


def _is_touching(s: _Shapes, a: int, b: int) -> bool:
    """Whether two parts touch; those side by side, which neighbours in haste are too, only where they meet."""
    if s.bar[a] != s.bar[b] and _is_fraction(s, a if s.bar[a] else b):
        return False
    if s.measure_overlap(a, b) < NEXT and not s.straight[[a, b]].any() and s.size[[a, b], 1].min() > LOW:
        a, b = (a, b) if s.boxes[a, 0] < s.boxes[b, 0] else (b, a)  # two digits, unless they are an x as `)(`
        return s.measure_distance(a, b) < TOUCH and _measure_bulge(s.points[a]) > 0 and _measure_bulge(-s.points[b]) > 0
    return s.measure_distance(a, b) < (TOUCH if s.measure_overlap(a, b) > BESIDE else MEET)


def _find_near_pairs(boxes: Array, reach: float) -> list[tuple[int, int]]:
    """The pairs whose boxes are at most `reach` apart; a page of algebra has few."""
    pairs = np.argwhere(np.triu(np.maximum(*_compute_gaps(boxes)) < reach, 1))
    if len(pairs) > MAX_NEIGHBOURS * len(boxes):
        raise DataError("its strokes lie all over each other: that is no page of algebra; write side by side")
    return [(int(a), int(b)) for a, b in pairs]


def _compute_gaps(boxes: Array) -> tuple[Array, Array]:
    """[n, n] each: the gap between two boxes across and down the page; negative where they overlap."""
    left, top, right, bottom = boxes.T
    across = np.maximum(left[:, None], left) - np.minimum(right[:, None], right)
    return across, np.maximum(top[:, None], top) - np.minimum(bottom[:, None], bottom)


def _measure_distance(a: Array, b: Array) -> float:
    """The distance between the nearest two of the points."""
    squared = (a[:, :1] - b[:, 0]) ** 2 + (a[:, 1:] - b[:, 1]) ** 2
    return float(np.sqrt(squared.min()))


def _find_components(count: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """The sets of 0 … count − 1 that the pairs connect."""
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
        boxes = compute_boxes(points)
        size = boxes[:, 2:] - boxes[:, :2]
        width, height = size.T
        straight = np.array([_measure_bend(one) < 0.02 for one in points])
        bar = (width > 0.15) & (width > np.where(straight, 0.8, 3.0) * height)
        return cls(points, boxes, size, *_compute_gaps(boxes), straight, bar, size.max(axis=1) < 0.4)

    def find_near_pairs(self) -> list[tuple[int, int]]:
        """All pairs that a rule may join, both ways round."""
        pairs = _find_near_pairs(self.boxes, FAR)
        return [*pairs, *((b, a) for a, b in pairs)]

    def measure_overlap(self, a: int, b: int) -> float:
        """How much of the narrower one stands above or below the other: 1 is all of it."""
        return -float(self.across[a, b]) / max(float(min(self.size[a, 0], self.size[b, 0])), 0.1)

    def measure_distance(self, a: int, b: int) -> float:
        return _measure_distance(self.points[a], self.points[b])


def _measure_bend(points: Array) -> float:
    """How far the points scatter about one line: the variance across it, in that along it."""
    if len(points) < 3:
        return 0.0
    small, large = np.linalg.eigvalsh(np.cov(points.T))
    return float(small / max(large, 1e-12))


def _is_stacked(s: _Shapes, a: int, b: int) -> bool:
    """Nothing stands above anything else in a line of algebra unless it is a part of it: `=` `≤` `±` `y`."""
    overlap = s.measure_overlap(a, b)
    if overlap < (0.25 if s.bar[a] else 0.6):
        return False
    if s.bar[a] and s.bar[b]:
        return bool(s.down[a, b] < 0.85 and s.size[[a, b], 0].max() < 3 * s.size[[a, b], 0].min())
    if s.bar[a]:
        wider = s.size[a, 0] > 2.2 * max(s.size[b, 0], 0.3)  # but the foot of a 1 is
        return not _is_fraction(s, a) and s.measure_distance(a, b) < (0.15 if wider else 0.7)
    if s.bar[b]:  # asked the other way round
        return False
    return s.measure_distance(a, b) < (1.5 * NEAR if overlap > 0.75 else NEAR)


def _is_fraction(s: _Shapes, bar: int) -> bool:
    """Whether something other than bars and dots stands close to the bar both above and below."""
    left, top, right, bottom = s.boxes[bar]
    middle = (s.boxes[:, 1] + s.boxes[:, 3]) / 2
    reach = 0.7 if right - left < 1.0 else 1.2  # few minus signs are as wide
    over = s.across[bar] < -np.minimum(0.1, s.size[:, 0] / 2)  # a 1 is hardly wide
    close = over & (s.down[bar] < reach) & ~s.bar & ~s.dot
    above = (s.boxes[:, 3] < bottom + 0.15) & (middle < top)
    below = (s.boxes[:, 1] > top - 0.15) & (middle > bottom)
    return bool((close & above).any() and (close & below).any())


def _is_dotted(s: _Shapes, a: int, b: int) -> bool:
    """A dot above a symbol, perhaps a little beside it, or close to a bar or another dot: `i` `j` `÷` `:`."""
    if not s.dot[a] or s.down[a, b] < 0:
        return False
    if s.bar[b] and not s.dot[b]:  # a division has a dot on either side: other dots by a bar are of an i, or points
        close = s.dot & (s.across[b] < 0.1) & (s.down[b] < 0.75) & (s.down[b] > 0)
        other = (s.boxes[:, 1] - s.boxes[b, 1]) * (s.boxes[a, 1] - s.boxes[b, 1]) < 0
        return bool(close[a] and (close & other).any())
    if s.dot[b]:
        return bool(s.across[a, b] < 0.1 and s.down[a, b] < 0.75)
    above = s.boxes[a, 3] < s.boxes[b, 1]
    return bool(above and s.across[a, b] < 0.35 and s.down[a, b] < 1.0 and s.size[b, 0] < 1.2)


def _is_exclamation_mark(s: _Shapes, a: int, b: int) -> bool:
    """A dot below a straight line down: `!`."""
    upright = s.straight[b] and s.size[b, 1] > 2 * s.size[b, 0] and s.size[b, 1] > 0.5
    below = s.boxes[a, 1] > s.boxes[b, 3]
    return bool(s.dot[a] and upright and below and s.across[a, b] < 0.05 and s.down[a, b] < 0.8)


def _is_capped(s: _Shapes, a: int, b: int) -> bool:
    """A flat bar that goes on to the right from the top of a symbol: `5`."""
    flat = s.bar[a] and s.size[a, 1] < 0.3 and s.size[b, 1] > 0.5
    high = abs(s.boxes[a, [1, 3]].mean() - s.boxes[b, 1]) < 0.35
    onward = s.boxes[b, 0] < s.boxes[a, 0] < s.boxes[b, 2] + 0.05 < s.boxes[a, 2] + 0.05
    return bool(flat and high and onward and s.measure_distance(a, b) < 0.3)


def _has_upright(s: _Shapes, a: int, b: int) -> bool:
    """A stroke straight down on the right that begins and ends lower, `4`, or on the left and only taller, `k`."""
    if s.size[a, 1] < 1.5 * s.size[a, 0] or s.down[a, b] > -0.1:
        return False
    left, top, _, bottom = s.boxes[a] - s.boxes[b]
    four = _measure_bend(s.points[a]) < 0.06 and left > 0 and top > 0.05 and bottom > 0.1
    k = s.straight[a] and left < 0 and top < -0.3 and abs(bottom) < 0.25
    return bool((four or k) and s.measure_distance(a, b) < REACHED)


def _is_bridged(s: _Shapes, a: int, b: int) -> bool:
    """A bar from one upright stroke to another, `H`."""
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
    """Two low arcs whose backs nearly meet: `x` as `)(`. Brackets are slimmer, taller or farther apart."""
    level = np.abs(s.boxes[a, 1::2] - s.boxes[b, 1::2]).max() < 0.4
    slim = bool((s.size[[a, b], 0] < 0.3 * s.size[[a, b], 1]).all())
    low = s.size[[a, b], 1].max() < (1.2 if slim else 1.4)
    beside = s.boxes[a, 0] < s.boxes[b, 0] and s.across[a, b] > -0.4
    if not level or not low or not beside or s.measure_distance(a, b) > (0.12 if slim else 0.35):
        return False
    return _measure_bulge(s.points[a]) > 0.2 and _measure_bulge(-s.points[b]) > 0.2


def _measure_bulge(points: Array) -> float:
    """How far both ends of a line like `)` stay behind what is farthest to the right, in widths; else 0."""
    x, y = points.T
    height = max(float(np.ptp(y)), 1e-9)
    length = float(np.hypot(*np.diff(points, axis=0).T).sum())
    off = np.abs(y - (y.min() + y.max()) / 2) / height  # from the middle, up to ½
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
