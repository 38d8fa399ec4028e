"""Lines one pixel wide as strokes of a pen: from end to end or crossing, without the stairs of pixels."""

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError
from aggrevated.parsing.pages.page import Strokes
from aggrevated_reader.pictures.thinning import AROUND

MAX_LINE = 100_000  # pixels of all lines together
SMOOTHED = 2  # times that every point goes half-way to the middle of its neighbours


def trace_strokes(line: Array, labels: Array, kept: Array, scale: float = 1.0) -> list[Strokes]:
    """The line of each of the `kept` labels as strokes, times `scale`; a pixel alone is a stroke of one point.

    `line` is bool [height, width], `labels` say whose each of its pixels is; every kept one has at least one.
    """
    from scipy import ndimage

    if int(line.sum()) > MAX_LINE:
        raise DataError(f"it has lines of more than {MAX_LINE:,} pixels: that is no page of algebra; give one")
    y, x = np.nonzero(line)
    pixels, lengths = _find_chains(*_find_links(line, y, x), ndimage.label(line, np.ones((3, 3)))[0][y, x])
    owner = labels[y, x][pixels[np.cumsum(lengths) - lengths]]  # of each chain
    points = _smooth_points(np.stack([x, y], axis=1)[pixels].astype(np.float64), lengths) * float(scale)
    strokes = np.split(points, np.cumsum(lengths)[:-1])
    order = np.argsort(owner, kind="stable")
    first = np.searchsorted(owner[order], kept)
    last = np.searchsorted(owner[order], kept, side="right")
    return [tuple(strokes[k] for k in order[a:b]) for a, b in zip(first, last, strict=True)]


def _find_links(line: Array, y: Array, x: Array) -> tuple[Array, Array]:
    """Which pixels are linked: bool [n, 8] for the directions of AROUND, and the neighbours' numbers, int [n, 8].

    A link across a corner is left out where two links along the sides lead round it.
    """
    number = np.full((line.shape[0] + 2, line.shape[1] + 2), -1)
    number[y + 1, x + 1] = np.arange(len(y))
    to = np.stack([number[y + 1 + down, x + 1 + right] for down, right in AROUND], axis=1)
    linked = to >= 0
    beside = np.roll(linked, 1, axis=1) | np.roll(linked, -1, axis=1)
    linked[:, 1::2] &= ~beside[:, 1::2]
    return linked, to


def _find_chains(linked: Array, to: Array, piece: Array) -> tuple[Array, Array]:
    """The pixels of all chains one after the other, and how many each has; `piece` says what hangs together, [n].

    A step is a pixel and a direction. Each is followed by the one that goes on, found for all at once by doubling
    (Wyllie, 1979), up to where a chain ends or crosses; of a chain's two ways, one is kept.
    """
    degree = linked.sum(axis=1)
    ends = degree != 2
    ends[_select_ring_starts(piece, ends)] = True
    step = np.flatnonzero(linked)  # as pixel · 8 + direction
    place = np.full(linked.size, -1)
    place[step] = np.arange(len(step))
    pixel = step // 8
    way = step % 8
    target = to[pixel, way]
    back = place[target * 8 + (way + 4) % 8]
    on = _find_next_steps(linked, target, way, ends, place)
    left = np.where(on == np.arange(len(step)), 0, 1)
    last = on
    for _ in range(max(len(step), 1).bit_length()):
        left = left + left[last]
        last = last[last]
    whole = np.zeros(len(step), bool)  # by the last step of a chain: whether this way is kept
    first = np.flatnonzero(ends[pixel])
    whole[last[first[first <= back[last[first]]]]] = True
    walked = np.flatnonzero(whole[last])
    walked = walked[np.lexsort((-left[walked], last[walked]))]
    final = np.flatnonzero(left[walked] == 0)
    pixels = np.insert(pixel[walked], final + 1, target[walked[final]])
    lengths = np.diff(np.concatenate([[-1], final])) + 1
    alone = np.flatnonzero(degree == 0)
    return np.concatenate([pixels, alone]).astype(np.int64), np.concatenate([lengths, np.ones_like(alone)])


def _find_next_steps(linked: Array, target: Array, way: Array, ends: Array, place: Array) -> Array:
    """The step that follows each one; itself, where the chain ends or crosses."""
    others = linked[target].copy()
    others[np.arange(len(target)), (way + 4) % 8] = False
    following = place[target * 8 + others.argmax(axis=1)]
    return np.where(ends[target], np.arange(len(target)), following)


def _select_ring_starts(piece: Array, ends: Array) -> Array:
    """A pixel of every piece of line that closes without an end or a crossing: there it is cut open."""
    numbers, first = np.unique(piece, return_index=True)
    rings: Array = first[~np.isin(numbers, piece[ends])]
    return rings


def _smooth_points(points: Array, lengths: Array) -> Array:
    """The points of chains, nearer to the middle of their neighbours; ends stay where they are."""
    inner = np.ones(len(points), bool)
    inner[np.cumsum(lengths) - 1] = inner[np.cumsum(lengths) - lengths] = False
    at = np.flatnonzero(inner)
    for _ in range(SMOOTHED):
        points[at] = (points[at - 1] + 2 * points[at] + points[at + 1]) / 4
    return points
