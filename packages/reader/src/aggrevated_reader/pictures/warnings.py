"""Warnings about a segmented picture: reasons why it may not be the algebra that was written."""

from collections.abc import Sequence

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.parsing.pages.page import Strokes, compute_boxes
from aggrevated_reader.pictures.layout import find_lines
from aggrevated_reader.pictures.symbol_grouping import compute_median_symbol_size

MANY = 150  # symbols: pages of algebra in the data have fewer
PROSE = 25  # symbols from which on algebra has some signs
SIGNS = 0.04  # minimum share of flat symbols such as `-` `=` and bars
SPREAD = 0.75  # standard deviation of the logarithm of sizes
WIDE = 2.2  # median widths: such a symbol, neither flat nor over others, may be two that touch
TANGLED = 10  # mean number of strokes of traced symbols
BURR = 0.08  # maximum length of burrs in symbols


def find_warnings(ink: Sequence[Strokes]) -> tuple[str, ...]:
    """Return the reasons why these symbols, in reading order, may be misread, each as a clause."""
    if not ink:
        return ()
    boxes = compute_boxes([np.concatenate(strokes) for strokes in ink]) / compute_median_symbol_size(ink)
    size = boxes[:, 2:] - boxes[:, :2]
    flat = size[:, 1] < 0.45 * size[:, 0]
    doubts = [
        _describe_symbol_count(len(ink)),
        _describe_prose(ink, flat),
        _describe_size_spread(size, flat),
        _describe_touching(boxes, flat),
        _describe_tangles(ink, compute_median_symbol_size(ink)),
    ]
    return tuple(doubt for doubt in doubts if doubt)


def _describe_symbol_count(count: int) -> str:
    return f"it has {count} symbols, far more than a page of algebra" if count > MANY else ""


def _describe_prose(ink: Sequence[Strokes], flat: Array) -> str:
    """Return a warning about text, which has hardly any flat sign, and long lines."""
    if len(ink) < PROSE or flat.mean() >= SIGNS:
        return ""
    longest = max(map(len, find_lines(ink)))
    return f"it looks like text: hardly a sign among {len(ink)} symbols" if longest > 6 else ""


def _describe_size_spread(size: Array, flat: Array) -> str:
    """Return a warning about very different sizes of symbols, without signs and dots."""
    sizes = size.max(axis=1)[~flat]
    sizes = sizes[sizes > 0.3]
    if len(sizes) < 3 or float(np.std(np.log(sizes))) < SPREAD:
        return ""
    return "its symbols are of very different sizes, as in a drawing"


def _describe_touching(boxes: Array, flat: Array) -> str:
    """Return a warning about symbols as wide as two with nothing in them, which may be two."""
    width = boxes[:, 2] - boxes[:, 0]
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    inside = (middle[:, None] > boxes[:, :2]) & (middle[:, None] < boxes[:, 2:])
    over = np.asarray(inside.all(axis=2))  # [inner, outer]
    np.fill_diagonal(over, False)
    median_width = float(np.median(width[~flat])) if (~flat).any() else 1.0
    wide_count = int(((width > max(WIDE * median_width, 1.3)) & ~flat & ~over.any(axis=0)).sum())
    return f"{wide_count} of its symbols are so wide that they may be several that touch" if wide_count else ""


def _describe_tangles(ink: Sequence[Strokes], unit: float) -> str:
    """Return a warning about many crossings; the tiny lines of rough edges do not count."""
    counts = [sum(np.ptp(stroke, axis=0).max() > BURR * unit for stroke in strokes) for strokes in ink]
    return "its lines cross much more often than those of symbols" if np.mean(counts) > TANGLED else ""
