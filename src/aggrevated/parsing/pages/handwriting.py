"""Generator of handwriting: every symbol as pen strokes, in the hand of a writer.

The number of a writer determines the hand: slant, proportion, size, roundness, overshoot, spacing, drift of
the baseline, the preferred template of each symbol, and its deviation from the template. The seed of a page
determines the variation between instances of a symbol.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError, UsageError
from aggrevated.parsing.pages.algebra import parse_heads
from aggrevated.parsing.pages.exercises import SYMBOLS, sample_solution
from aggrevated.parsing.pages.page import Page, Strokes

# Templates: points of the pen's path in hundredths of a digit's height, x to the right, y *upward* from the
# baseline; small letters are about 60 high. `*` marks a sharp corner, `|` lifts the pen.
TEMPLATES: dict[str, tuple[str, ...]] = {
    "0": (
        "32,99 12,86 2,50 10,12 30,0 50,12 58,50 50,88 30,100",
        "42,94 22,97 4,66 5,22 26,0 50,12 57,52 46,90 26,101 16,93",
    ),
    "1": ("24,100 23,50 21,0", "4,70 18,84 30,100* 29,50 28,0", "6,74 28,100* 28,50 28,0 | 4,0 28,0 54,1"),
    "2": (
        "4,76 14,94 34,100 51,84 45,58 24,28 2,2* 28,3 58,2",
        "6,80 20,98 42,97 51,78 38,46 16,14 4,4 10,17 22,14 40,1 60,8",
    ),
    "3": (
        "6,88 24,100 45,92 46,68 22,54* 46,47 55,24 38,2 16,0 2,13",
        "4,98 28,97 52,98* 38,78 24,60* 46,54 56,30 42,5 20,-1 2,10",
    ),
    "4": (
        "16,98 10,70 3,40* 30,41 60,42 | 44,72 42,36 40,-4",
        "42,100 24,70 1,33* 30,33 62,34 | 43,100 42,50 41,-2",
        "10,96 8,60 14,44 32,44 52,54 | 52,98 48,50 45,-4",
    ),
    "5": (
        "14,98 11,76 8,56* 28,65 50,52 54,24 36,2 14,0 0,12 | 14,98 34,97 56,99",
        "56,97 36,97 14,96* 11,76 8,54* 30,63 53,48 53,20 33,0 12,1 0,13",
    ),
    "6": (
        "46,98 22,80 6,46 6,17 24,0 46,9 53,32 36,51 17,44 6,22",
        "36,101 15,68 4,30 14,3 36,1 49,20 42,40 24,42 7,24",
    ),
    "7": (
        "2,96 28,97 56,97* 40,60 24,0",
        "2,96 28,97 56,97* 40,60 24,0 | 14,50 34,51 54,53",
        "5,80 5,97* 30,95 58,98* 40,62 28,28 26,0",
    ),
    "8": (
        "50,86 32,100 11,86 18,64 40,46 53,22 31,0 6,16 16,44 40,62 51,82",
        "30,54 12,70 15,92 33,100 48,88 45,66 30,54 8,38 5,12 27,0 52,11 51,38 30,54",
    ),
    "9": (
        "51,80 34,99 10,90 5,66 22,50 43,60 52,90* 51,50 47,0",
        "50,84 32,100 8,88 7,64 27,52 47,68 53,88 54,48 42,8 20,-1 5,10",
    ),
    "+": ("0,40 30,41 62,40 | 31,72 31,40 30,8", "30,74 30,40 29,8* 16,24 2,39* 32,41 63,42"),
    "-": ("0,40 28,41 56,40", "0,38 26,43 54,39"),
    "×": ("6,64 30,39 54,14 | 53,66 30,40 6,12", "6,62 28,40 50,17* 51,38 54,62* 30,38 7,13"),
    "/": ("46,106 23,48 0,-12", "44,104 26,50 2,-10"),
    "=": ("0,54 28,54 57,55 | 0,28 28,28 56,28", "0,55 30,57 58,56 | 5,30 28,28 53,28"),
    "(": ("27,108 10,86 2,47 10,8 28,-14", "21,110 8,78 5,47 8,16 20,-12"),
    ")": ("0,108 17,86 25,47 17,8 -1,-14", "2,110 15,78 18,47 15,16 3,-12"),
    "a": (
        "47,48 32,60 11,52 2,28 11,3 30,5 44,26 49,58* 47,20 53,2 65,7",
        "8,50 24,61 42,54 46,30 46,2 | 45,35 22,35 4,19 11,2 30,2 45,17",
        "45,48 28,60 7,46 3,17 20,0 40,14 47,44 | 49,60 47,24 54,0",
    ),
    "b": (
        "8,104 7,50 7,3* 10,34 30,57 51,40 48,9 26,-1 8,8",
        "5,22 22,66 27,96 16,104 9,80 8,16 25,0 47,11 47,40 28,48 12,34",
    ),
    "c": ("47,47 30,60 9,48 3,20 18,0 49,10", "44,46 45,56* 25,60 6,41 6,12 28,-1 50,12"),
    "d": (
        "46,46 26,59 6,43 4,14 22,0 43,16 50,62 51,104* 49,40 51,8 61,1",
        "46,43 26,57 5,38 7,7 27,0 46,20 | 49,104 48,50 48,0",
    ),
    "e": ("5,29 28,30 46,38 41,55 24,60 7,45 5,16 24,0 51,12", "45,52 27,61 10,51 14,37 28,33* 8,26 4,9 24,-1 49,10"),
    "k": (
        "8,104 8,50 7,0 | 46,60 28,42 9,26* 28,22 51,0",
        "4,22 22,72 26,98 15,103 9,70 7,0* 12,40 32,58 43,44 14,30* 30,20 52,0",
    ),
    "m": (
        "1,54 8,58* 8,30 8,0* 12,42 26,59 36,46 36,0* 40,42 54,59 65,46 65,8 74,1",
        "2,0 8,36 16,59 27,44 29,0* 34,42 46,59 57,44 58,0",
    ),
    "n": ("2,55 9,58* 9,30 9,0* 13,42 30,59 45,46 46,10 55,1", "6,60 7,30 7,0* 14,46 29,59 43,44 43,0"),
    "p": ("8,60 8,10 6,-40* 9,34 26,60 48,48 46,14 26,-1 8,11", "9,60 8,10 7,-38 | 8,46 28,61 48,45 43,12 22,0 8,13"),
    "r": ("2,54 9,59* 9,30 9,0* 12,38 26,56 45,54", "8,60 8,30 8,0 | 8,36 24,56 43,58"),
    "s": ("43,51 25,61 8,49 20,35 41,21 36,3 16,-1 1,10", "40,56 22,60 8,47 22,32 37,17 27,0 2,5"),
    "t": ("22,94 22,50 23,14 35,0 49,9 | 2,60 22,61 45,62", "23,94 22,46 22,0 | 1,64 24,64 46,66"),
    "u": ("4,59 4,22 15,0 35,8 46,58* 46,16 57,1", "3,59 6,14 23,-1 42,12 47,59"),
    "v": ("2,58 12,28 22,0* 34,30 45,60", "1,52 11,57 18,28 24,0* 34,34 44,56 55,56"),
    "w": ("0,58 8,28 15,0* 23,24 31,46* 38,24 46,0* 54,28 62,59", "2,57 4,14 16,0 28,14 32,48* 34,14 46,0 60,16 62,59"),
    "x": (
        "3,50 14,60 25,46 26,14 15,0 1,8 | 54,52 42,60 29,46 28,14 40,0 55,9",
        "1,50 11,59 27,32 42,2 56,9 | 52,61 28,32 2,-1",
        "4,54 11,60 28,32 44,1 54,4 | 53,57 44,59 28,32 12,1 2,3",
    ),
    "y": ("4,59 8,32 22,20 38,30 47,60* 45,12 35,-30 15,-39 2,-26", "3,59 13,36 25,14 | 47,61 26,14 5,-39"),
    "z": ("4,57 24,58 47,57* 24,28 2,2* 26,2 52,2", "4,57 24,58 47,57* 24,28 2,2* 26,2 52,2 | 10,31 26,31 43,33"),
}
OPERATORS = frozenset("+-×/=")
RARE_JOINS = frozenset("4+×xkt")  # symbols whose two strokes a quick pen may join


@dataclass(frozen=True)
class Shape:
    """One stroke of a template.

    Attributes:
        points: points of the stroke, [points, 2].
        corners: indices of the corners, with the first and the last point.
    """

    points: Array
    corners: tuple[int, ...]


@dataclass(frozen=True)
class Hand:
    """Properties of a writer's hand, equal on all pages. Lengths are in units of `size`."""

    writer: int
    size: float  # height of a digit, pixels
    slant: float  # Δx / Δy, positive to the right
    proportion: float  # width relative to the template
    letters: float  # size of letters relative to the template
    operators: float  # size of operators relative to the template
    rounding: int  # number of times that the path is smoothed
    samples: int  # points between two points of a template
    overshoot: float  # length of a stroke beyond its end
    joins: float  # probability of joining two strokes of the symbols RARE_JOINS
    spacing: float  # distance between symbols
    leading: float  # distance between lines
    slope: float  # Δy / Δx of the baseline
    drift: float  # standard deviation of the baseline from symbol to symbol
    wobble: float  # standard deviation of the points of a symbol between instances
    faithful: float  # probability of the preferred template
    aligned: bool  # whether the `=` of all lines are aligned

    @classmethod
    @cache
    def from_writer(cls, writer: int) -> Hand:
        """Return the hand of a writer, which does not depend on the page or its seed."""
        rng = np.random.default_rng([_HAND, writer])
        return cls(
            writer=writer,
            size=float(rng.uniform(28, 60)),
            slant=float(rng.normal(0.10, 0.12)),
            proportion=float(np.exp(rng.normal(0.0, 0.12))),
            letters=float(np.exp(rng.normal(0.12, 0.10))),
            operators=float(np.exp(rng.normal(-0.15, 0.12))),
            rounding=int(rng.integers(0, 4)),
            samples=int(rng.integers(5, 10)),
            overshoot=float(rng.uniform(0.0, 0.05)),
            joins=float(rng.choice([0.0, 0.03, 0.10])),
            spacing=float(rng.uniform(0.14, 0.34)),
            leading=float(rng.uniform(1.9, 2.7)),
            slope=float(rng.normal(0.0, 0.02)),
            drift=float(rng.uniform(0.005, 0.03)),
            wobble=float(rng.uniform(0.010, 0.026)),
            faithful=float(rng.uniform(0.75, 1.0)),
            aligned=bool(rng.random() < 0.25),
        )


# independent streams of random numbers
_HAND = 101
_STYLE = 102
_PAGE = 103
_SETS = 104
_DEPARTURE = 0.028  # standard deviation of a writer's shapes from the templates, in heights of a digit


@cache
def _get_templates(symbol: str) -> tuple[tuple[Shape, ...], ...]:
    return tuple(tuple(_shape(stroke) for stroke in way.split("|")) for way in TEMPLATES[symbol])


def _shape(text: str) -> Shape:
    pairs = text.split()
    corners = [i for i, pair in enumerate(pairs) if pair.endswith("*")]
    points = np.array([[float(v) for v in pair.rstrip("*").split(",")] for pair in pairs]) / 100
    return Shape(points, (0, *corners, len(pairs) - 1))


@cache
def _rank_templates(writer: int, symbol: str) -> tuple[tuple[Shape, ...], ...]:
    """Return the writer's templates of a symbol, the preferred one first."""
    rng = np.random.default_rng([_STYLE, writer, SYMBOLS.index(symbol)])
    ways = [tuple(_move_points(shape, _DEPARTURE, rng) for shape in way) for way in _get_templates(symbol)]
    return tuple(ways[i] for i in rng.permutation(len(ways)))


def _move_points(shape: Shape, by: float, rng: np.random.Generator) -> Shape:
    """Return the shape with its points moved at random, neighbors in similar directions."""
    by_point = rng.standard_normal((len(shape.points) + 2, 2))
    return Shape(shape.points + by * (by_point[:-2] + by_point[1:-1] + by_point[2:]) / np.sqrt(3), shape.corners)


def _draw_path(shape: Shape, hand: Hand, rng: np.random.Generator) -> Array:
    """Return the pen's path: a smoothed Catmull–Rom curve between corners, with overshoot, [samples, 2]."""
    curves = [
        _compute_spline(shape.points[first : last + 1], hand.samples)
        for first, last in zip(shape.corners, shape.corners[1:], strict=False)
    ]
    path = np.concatenate([*(curve[:-1] for curve in curves), curves[-1][-1:]])
    for _ in range(hand.rounding):
        path[1:-1] = (path[:-2] + 2 * path[1:-1] + path[2:]) / 4
    for end, before in ((0, 1), (-1, -2)):
        direction = path[end] - path[before]
        path[end] += direction * (hand.overshoot * abs(rng.standard_normal()) / (np.hypot(*direction) + 1e-9))
    return path


def _compute_spline(points: Array, samples: int) -> Array:
    """Return a Catmull–Rom curve through the points, [segments × samples + 1, 2]."""
    around = np.concatenate([2 * points[:1] - points[1:2], points, 2 * points[-1:] - points[-2:-1]])
    t = np.arange(samples)[:, None] / samples
    p, q, r, s = (around[i : len(around) - 3 + i, None] for i in range(4))
    curve = 0.5 * (2 * q + (r - p) * t + (2 * p - 5 * q + 4 * r - s) * t**2 + (3 * (q - r) + s - p) * t**3)
    return np.concatenate([curve.reshape(-1, 2), points[-1:]])


def write_symbol(symbol: str, writer: int, rng: np.random.Generator) -> Strokes:
    """Write one instance of a symbol.

    Args:
        symbol: symbol of `TEMPLATES`.
        writer: number of the writer.
        rng: source of random numbers.

    Returns:
        Strokes in pixels, with y downward and the baseline at y = 0.

    Raises:
        DataError: the symbol has no template.
    """
    if symbol not in TEMPLATES:
        raise DataError(f"the symbol {symbol!r} has no template; use one of {' '.join(SYMBOLS)}")
    hand = Hand.from_writer(writer)
    ways = _rank_templates(writer, symbol)
    way = ways[0] if rng.random() < hand.faithful else ways[rng.integers(len(ways))]
    paths = [_draw_path(_move_points(shape, hand.wobble, rng), hand, rng) for shape in way]
    if len(paths) == 2 and symbol in RARE_JOINS and rng.random() < hand.joins:
        paths = [np.concatenate(paths)]
    kind = hand.operators if symbol in OPERATORS else hand.letters if symbol.isalpha() else 1.0
    angle = rng.normal(0.0, 0.03)
    scale = hand.size * kind * np.exp(rng.normal(0.0, 0.05))
    c = np.cos(angle)
    s = np.sin(angle)
    lean = np.array([[hand.proportion, 0.0], [hand.slant, 1.0]])  # a row vector (x, y) times this
    turn = np.array([[c, s], [-s, c]])
    middle = np.array([0.0, 0.4])  # operators stay on the axis of the line, and symbols rotate around it
    matrix = lean @ turn * scale * np.array([1.0, -1.0])
    shift = np.array([0.0, -hand.size]) * (middle if kind == hand.operators else middle * kind)
    return tuple((path - middle) @ matrix + shift for path in paths)


def _translate_strokes(strokes: Strokes, by: Array) -> Strokes:
    return tuple(stroke + by for stroke in strokes)


def _write_line(line: str, writer: int, rng: np.random.Generator) -> list[Strokes]:
    """Write the symbols of a line from x = 0 to the right, with the gaps and the baseline of the hand."""
    hand = Hand.from_writer(writer)
    line_strokes: list[Strokes] = []
    right = 0.0
    height = 0.0
    for previous, symbol in zip(("", *line), line, strict=False):
        strokes = write_symbol(symbol, writer, rng)
        points = np.concatenate(strokes)
        gap = hand.spacing * np.exp(rng.normal(0.0, 0.25))
        if symbol in OPERATORS or previous in OPERATORS:
            gap *= 1.5
        left = right + (gap * hand.size if previous else 0.0)
        height = 0.8 * height + hand.size * rng.normal(0.0, hand.drift)
        line_strokes.append(
            _translate_strokes(strokes, np.array([left - points[:, 0].min(), height + hand.slope * left]))
        )
        right = left + np.ptp(points[:, 0])
    return line_strokes


def write_page(lines: Sequence[str], writer: int, seed: int, name: str = "") -> Page:
    """Write lines of algebra in the hand of a writer.

    Args:
        lines: lines of symbols of `TEMPLATES`.
        writer: number of the writer.
        seed: seed of the page; equal lines, writer and seed give equal bits.
        name: name of the page; empty for a name from writer and seed.

    Returns:
        The page.

    Raises:
        DataError: a line is not algebra, or a symbol has no template.
    """
    heads = parse_heads(lines)
    rng = np.random.default_rng([_PAGE, writer, seed])
    hand = Hand.from_writer(writer)
    line_strokes = [_write_line(line, writer, rng) for line in lines]
    columns = _find_equals_columns(lines, line_strokes) if hand.aligned else np.zeros(len(lines))
    ink: list[Strokes] = []
    for row, line in enumerate(line_strokes):
        indent = columns[0] - columns[row] + hand.size * rng.normal(0.0, 0.15)
        top = hand.size * (1.5 + hand.leading * row * np.exp(rng.normal(0.0, 0.05)))
        ink += [_translate_strokes(strokes, np.array([indent, top])) for strokes in line]
    left = min(stroke[:, 0].min() for strokes in ink for stroke in strokes)
    page_ink = tuple(_translate_strokes(strokes, np.array([hand.size - left, 0.0])) for strokes in ink)
    return Page(name or f"page-{writer}-{seed}", f"hand-{writer}", tuple("".join(lines)), heads, page_ink)


def _find_equals_columns(lines: Sequence[str], ink: list[list[Strokes]]) -> Array:
    """Return the x of the `=` of each line, or zeros if a line has none."""
    if not all("=" in line for line in lines):
        return np.zeros(len(lines))
    return np.array([symbols[line.index("=")][0][0, 0] for line, symbols in zip(lines, ink, strict=True)])


def generate_page_splits(
    sets: int = 400, writers: int = 40, seed: int = 0, single_writer: bool = False
) -> tuple[list[Page], list[Page], list[Page]]:
    """Generate pages for training, validation and test, 80/10/10.

    Two pages never have the same set or a common line of more than five symbols.

    Args:
        sets: number of sets of equations, one for each page.
        writers: number of writers, who are also split 80/10/10.
        seed: seed of the pages.
        single_writer: whether one hand writes all pages.

    Returns:
        Training, validation and test pages.

    Raises:
        UsageError: there are too few sets or writers to split.
    """
    if sets < 10 or (writers < 3 and not single_writer):
        raise UsageError(
            f"{sets} sets by {writers} writers cannot be split 80/10/10: ask for at least 10 sets, 3 writers"
        )
    rng = np.random.default_rng([_SETS, seed])
    lines = _sample_distinct_sets(sets, rng)
    hands = [rng.permutation(writers)[:1]] * 3 if single_writer else _split(rng.permutation(writers))
    pages = np.random.SeedSequence([_SETS, seed]).generate_state(sets, np.uint64).tolist()
    train, validation, test = (
        [write_page(lines[i], int(hand[k % len(hand)]), pages[i], f"set-{seed}-{i}") for k, i in enumerate(part)]
        for part, hand in zip(_split(np.arange(sets)), hands, strict=True)
    )
    return train, validation, test


def _split(items: Array) -> tuple[Array, Array, Array]:
    """Split items 80/10/10, with at least one item in each part."""
    tenth = max(1, round(len(items) / 10))
    return items[: -2 * tenth], items[-2 * tenth : -tenth], items[-tenth:]


def _sample_distinct_sets(count: int, rng: np.random.Generator) -> list[list[str]]:
    """Return distinct sets without common lines of more than five symbols; lines such as x=3 may repeat."""
    sets: list[list[str]] = []
    seen: set[str] = set()
    while len(sets) < count:
        lines = sample_solution(rng)
        keys = {"/".join(lines), *(line for line in lines if len(line) > 5)}
        if not keys & seen:
            sets.append(lines)
            seen |= keys
    return sets
