"""Simulation of the pen: the shapes of a writer's symbols before the layout of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.parsing.pages.algebra import OPERATORS, ROOT_SIGN
from aggrevated_reader.pages.batched_rng import BatchedRng
from aggrevated_reader.pages.glyphs import KNEE, Way, list_ways
from aggrevated_reader.pages.layout import AXIS
from aggrevated_reader.pages.writers import Writer

_DOTS = frozenset(".,·")
_TALL = frozenset("<>≤≥≠±÷")
# Short or straight symbols, which a hand writes with smaller errors.
_STEADY = {"-": 0.5, "―": 0.5, "=": 0.65, "/": 0.6, "+": 0.8, "1": 0.85, "(": 0.85, ")": 0.85, ".": 0.35, "·": 0.35}
_MIDDLE = np.array([0.3, AXIS])  # center of rotations
_FASTENED = frozenset("ij=÷!±≤≥")  # parts of these never touch, so lifts between them stay


@dataclass(frozen=True)
class Path:
    """The path of the pen over a page."""

    points: Array  # [P, 2]
    owners: Array  # int [P]: the symbol of each point
    starts: Array  # bool [P]: where a stroke begins
    knees: Array  # [n]: where the bar of a `√` begins

    @property
    def count(self) -> int:
        """The number of symbols."""
        return len(self.knees)

    def compute_boxes(self) -> Array:
        """Return the box of each symbol, [n, 4]: left, bottom, right, top."""
        first = np.searchsorted(self.owners, np.arange(self.count))
        return np.hstack([np.minimum.reduceat(self.points, first), np.maximum.reduceat(self.points, first)])

    def move_symbols(self, layout: Array) -> Path:
        """Return the path with each symbol transformed by `compute_layout`'s result [n, 5]."""
        across, up, x, y, bar = layout[self.owners].T
        beyond = np.where(bar != across, np.maximum(self.points[:, 0] - self.knees[self.owners], 0.0), 0.0)
        moved = across * (self.points[:, 0] - beyond) + bar * beyond + x, up * self.points[:, 1] + y
        return replace(self, points=np.stack(moved, axis=1))


def shape_symbols(labels: Sequence[str], hand: Writer, draw: np.random.Generator, dice: BatchedRng) -> Path:
    """Return the path of the symbols in this handwriting, all at the origin."""
    kinds = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    preferred = {label: _sample_own_way(label, hand, draw, dice) for label in kinds}
    drawn = [_sample_instance(label, preferred[label], hand, draw, dice) for label in labels]
    points, starts = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    owners = np.repeat(np.arange(len(labels)), [len(curve) for curve, _ in drawn])
    path = Path(points, owners, starts, np.full(len(labels), KNEE))
    of_kind = np.array([kinds[label] for label in labels])
    steady = np.array([_STEADY.get(label, 1.0) for label in labels])
    path = _round_corners(_apply_waves(path, of_kind, steady, hand, draw), hand.rounding)
    return _apply_size_and_slant(_apply_end_errors(path, steady, hand, draw), labels, hand, draw)


def _sample_instance(
    label: str, preferred: tuple[Way, Array], hand: Writer, draw: np.random.Generator, dice: BatchedRng
) -> tuple[Array, Array]:
    """Sample the curve of one symbol [P, 2] and where its strokes begin, bool [P]."""
    way, passed = preferred if dice.sample_bool(hand.faithful) else _sample_own_way(label, hand, draw, dice)
    passed = passed + hand.wobble * _STEADY.get(label, 1.0) * sample_smooth_noise(len(passed), draw)
    curve = way.curve @ passed
    begins = _sample_stroke_starts(way, label, hand, dice)
    if dice.sample_bool(hand.retraces):  # the pen writes over the symbol once more, with a small shift
        curve = np.concatenate([curve, curve + 0.02 * dice.sample_deviation()])
        begins = np.concatenate([begins, begins])
    return curve, begins


def _sample_own_way(label: str, hand: Writer, draw: np.random.Generator, dice: BatchedRng) -> tuple[Way, Array]:
    """Sample a way to write a symbol, and the points that the pen of this writer passes on it."""
    way = dice.pick(list_ways(label))
    return way, way.points + hand.own * _STEADY.get(label, 1.0) * sample_smooth_noise(len(way.points), draw)


def sample_smooth_noise(count: int, draw: np.random.Generator) -> Array:
    """Sample noise [count, 2] of variance 1 that is similar for neighbors, as errors of a hand are."""
    noise = draw.standard_normal((count + 2, 2))
    smooth: Array = (noise[:-2] + noise[1:-1] + noise[2:]) * 0.57735
    return smooth


def _sample_stroke_starts(way: Way, label: str, hand: Writer, dice: BatchedRng) -> Array:
    """Sample where strokes begin, bool [P]: some lifts are left out, and some strokes are broken in two."""
    begins = np.diff(way.strokes, prepend=-1) > 0
    if label not in _FASTENED and way.strokes[-1] and dice.sample_bool(hand.joins):
        begins[1:] = False
    if dice.sample_bool(hand.breaks):
        begins[dice.count(0, len(begins) - 1)] = True
    return begins


def _apply_waves(path: Path, kinds: Array, steady: Array, hand: Writer, draw: np.random.Generator) -> Path:
    """Return the path with each symbol bent by two waves of its kind and two waves of its own."""
    around = path.points - _MIDDLE
    moved = path.points.copy()
    for owners, by in ((kinds[path.owners], hand.own_ripple), (path.owners, hand.ripple)):
        count = int(owners.max()) + 1
        waves = draw.normal(0.0, 4.0, (count, 2, 4))
        phases = draw.uniform(0.0, 2 * np.pi, (count, 4))
        angles = np.einsum("pi,pij->pj", around, waves[owners]) + phases[owners]
        moved += by * steady[path.owners, None] * np.sin(angles).reshape(-1, 2, 2).sum(axis=1)
    return replace(path, points=moved)


def _find_stroke_ends(starts: Array) -> tuple[Array, Array]:
    """Return the first and the last point of each stroke."""
    firsts = np.flatnonzero(starts)
    return firsts, np.append(firsts[1:], len(starts)) - 1


def _round_corners(path: Path, times: int) -> Path:
    """Return the path with every inner point of strokes averaged with its neighbors, `times` times."""
    points = path.points.copy()
    inner = np.ones(len(path.points), bool)
    inner[np.concatenate(_find_stroke_ends(path.starts))] = False
    at = np.flatnonzero(inner)
    for _ in range(times):
        points[at] = (points[at - 1] + 2 * points[at] + points[at + 1]) / 4
    return replace(path, points=points)


def _apply_end_errors(path: Path, steady: Array, hand: Writer, draw: np.random.Generator) -> Path:
    """Return the path with strokes that run on, have hooks at their ends, or end too soon."""
    points = path.points.copy()
    firsts, lasts = _find_stroke_ends(path.starts)
    has_two_points = lasts > firsts
    firsts = firsts[has_two_points]
    lasts = lasts[has_two_points]
    for ends, before in ((firsts, firsts + 1), (lasts, lasts - 1)):
        along = points[ends] - points[before]
        along /= np.hypot(*along.T)[:, None] + 1e-9
        points[ends] += along * hand.overshoot * np.abs(draw.standard_normal((len(ends), 1)))
        hooks = hand.hook * steady[path.owners[ends], None] * (draw.random((len(ends), 1)) < hand.hooks)
        points[ends] += hooks * (draw.standard_normal((len(ends), 2)) - along)
    keep = np.ones(len(points), bool)
    keep[lasts[draw.random(len(lasts)) < hand.early_lifts]] = False
    return Path(points[keep], path.owners[keep], path.starts[keep], path.knees)


def _apply_size_and_slant(path: Path, labels: Sequence[str], hand: Writer, draw: np.random.Generator) -> Path:
    """Return the path with each symbol slanted, rotated, stretched and scaled."""
    n = path.count
    sizes = np.array([_get_size(label, hand) for label in labels]) * np.exp(hand.uneven * draw.standard_normal(n))
    wide, tall = np.exp(hand.stretch * draw.standard_normal((2, n))) * sizes
    angle = hand.turn * draw.standard_normal(n) * np.array([label != ROOT_SIGN for label in labels])
    c = np.cos(angle)
    s = np.sin(angle)
    letters = np.array([label.isalpha() for label in labels])
    x, y = (path.points - _MIDDLE).T
    x = hand.aspect * np.where(letters, 1.12, 1.0)[path.owners] * x + hand.slant * y
    at = path.owners
    turned = np.stack([wide[at] * (c[at] * x - s[at] * y), tall[at] * (s[at] * x + c[at] * y)], axis=1)
    axis = np.array([hand.axis if label in OPERATORS else AXIS * _get_size(label, hand) for label in labels])
    turned[:, 1] += axis[at]
    knees = wide * (hand.aspect * (KNEE - _MIDDLE[0]) + hand.slant * (1.05 - AXIS))
    return replace(path, points=turned, knees=knees)


def _get_size(label: str, hand: Writer) -> float:
    if label in _DOTS:
        return hand.dots
    if label in _TALL:
        return hand.operators * hand.inequalities * (1.15 if label == "÷" else 1.0)
    if label in OPERATORS and label != "/":
        return hand.operators
    if label.isalpha():
        return hand.capitals if label.isupper() else hand.letters
    return 1.12 if label == "/" else 1.0
