"""Tracing of lines one pixel wide as smooth pen strokes from end to end or crossing."""

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError
from aggrevated.parsing.pages.page import Strokes
from aggrevated_reader.pictures.thinning import AROUND

MAX_LINE = 100_000  # pixels of all lines
SMOOTHED = 2  # rounds in which every point moves half-way to the middle of its neighbors


def trace_strokes(line: Array, labels: Array, selected: Array, scale: float = 1.0) -> list[Strokes]:
    """Return the line of each label as strokes, times `scale`; a single pixel is a stroke of one point.

    Args:
        line: The pixels of the lines, bool [height, width].
        labels: The label of each pixel, int [height, width].
        selected: The labels to trace; each has at least one pixel.
        scale: Factor of the coordinates.

    Raises:
        DataError: The lines have too many pixels.
    """
    from scipy import ndimage

    if int(line.sum()) > MAX_LINE:
        raise DataError(f"it has lines of more than {MAX_LINE:,} pixels: that is not a page of algebra; give one")
    y, x = np.nonzero(line)
    pixels, lengths = _find_chains(*_find_links(line, y, x), ndimage.label(line, np.ones((3, 3)))[0][y, x])
    owner = labels[y, x][pixels[np.cumsum(lengths) - lengths]]  # label of each chain
    points = _smooth_points(np.stack([x, y], axis=1)[pixels].astype(np.float64), lengths) * float(scale)
    strokes = np.split(points, np.cumsum(lengths)[:-1])
    order = np.argsort(owner, kind="stable")
    first = np.searchsorted(owner[order], selected)
    last = np.searchsorted(owner[order], selected, side="right")
    return [tuple(strokes[k] for k in order[a:b]) for a, b in zip(first, last, strict=True)]


def _find_links(line: Array, y: Array, x: Array) -> tuple[Array, Array]:
    """Return which of the eight neighbors are linked, bool [n, 8], and the neighbors' numbers, int [n, 8].

    A diagonal link is dropped if two straight links lead round the corner.
    """
    number = np.full((line.shape[0] + 2, line.shape[1] + 2), -1)
    number[y + 1, x + 1] = np.arange(len(y))
    to = np.stack([number[y + 1 + down, x + 1 + right] for down, right in AROUND], axis=1)
    linked = to >= 0
    has_straight_neighbor = np.roll(linked, 1, axis=1) | np.roll(linked, -1, axis=1)
    linked[:, 1::2] &= ~has_straight_neighbor[:, 1::2]
    return linked, to


def _find_chains(linked: Array, to: Array, component: Array) -> tuple[Array, Array]:
    """Return the pixels of all chains, one chain after the other, and the number of pixels of each chain.

    A step is a pixel and a direction. Each step is followed by the next one of its chain up to an end or
    crossing; all successors are found at once by pointer doubling (Wyllie, 1979). Only one of a chain's two
    directions is returned.

    Args:
        linked: Which neighbors are linked, bool [n, 8].
        to: The neighbors' numbers, int [n, 8].
        component: The connected component of each pixel, [n].
    """
    degree = linked.sum(axis=1)
    ends = degree != 2
    ends[_select_ring_starts(component, ends)] = True
    step = np.flatnonzero(linked)  # as pixel · 8 + direction
    step_index = np.full(linked.size, -1)
    step_index[step] = np.arange(len(step))
    pixel = step // 8
    direction = step % 8
    target = to[pixel, direction]
    back = step_index[target * 8 + (direction + 4) % 8]
    next_step = _find_next_steps(linked, target, direction, ends, step_index)
    left = np.where(next_step == np.arange(len(step)), 0, 1)
    last = next_step
    for _ in range(max(len(step), 1).bit_length()):
        left = left + left[last]
        last = last[last]
    is_used = np.zeros(len(step), bool)  # by the last step of a chain: whether this direction is used
    first = np.flatnonzero(ends[pixel])
    is_used[last[first[first <= back[last[first]]]]] = True
    walked = np.flatnonzero(is_used[last])
    walked = walked[np.lexsort((-left[walked], last[walked]))]
    final = np.flatnonzero(left[walked] == 0)
    pixels = np.insert(pixel[walked], final + 1, target[walked[final]])
    lengths = np.diff(np.concatenate([[-1], final])) + 1
    alone = np.flatnonzero(degree == 0)
    return np.concatenate([pixels, alone]).astype(np.int64), np.concatenate([lengths, np.ones_like(alone)])


def _find_next_steps(linked: Array, target: Array, direction: Array, ends: Array, step_index: Array) -> Array:
    """Return the step that follows each one, or the step itself at the end of a chain."""
    candidates = linked[target].copy()
    candidates[np.arange(len(target)), (direction + 4) % 8] = False
    following = step_index[target * 8 + candidates.argmax(axis=1)]
    return np.where(ends[target], np.arange(len(target)), following)


def _select_ring_starts(component: Array, ends: Array) -> Array:
    """Return a pixel of every closed line without end or crossing, where it is cut open."""
    numbers, first = np.unique(component, return_index=True)
    rings: Array = first[~np.isin(numbers, component[ends])]
    return rings


def _smooth_points(points: Array, lengths: Array) -> Array:
    """Return the points of chains, moved towards the middle of their neighbors; ends stay."""
    inner = np.ones(len(points), bool)
    inner[np.cumsum(lengths) - 1] = inner[np.cumsum(lengths) - lengths] = False
    at = np.flatnonzero(inner)
    for _ in range(SMOOTHED):
        points[at] = (points[at - 1] + 2 * points[at] + points[at + 1]) / 4
    return points
