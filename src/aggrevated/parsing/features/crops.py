"""Symbols as the parser sees them: 40 × 40 pixels, centred and scaled, the pen equally thick in all of them."""

from collections.abc import Sequence

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.parsing.pages.page import Strokes

SIDE = 40  # pixels
MARGIN = 4.0  # pixels that the pen's centre keeps from the border
PEN = 1.25  # radius of the pen, pixels; at most 1.5, as a dab covers 5 × 5 pixels
STEP = 0.5  # pixels between dabs of the pen at most: the outline is then right to 0.03 pixels
CHUNK = 1 << 14  # dabs at a time: memory stays small however long the strokes


def draw_crops(ink: Sequence[Strokes]) -> Array:
    """The crop of each symbol, uint8 [n, 40, 40]: 0 is paper, 255 is ink, between them the pen's edge."""
    starts, ends, owners = _split_segments(ink)
    dabs = np.maximum(np.ceil(np.hypot(*(ends - starts).T) / STEP).astype(np.int64), 1)  # [segments], each at least 1
    nearest = np.full(len(ink) * SIDE * SIDE, 9.0, np.float32)  # squared distance of each pixel from the pen's path
    first = np.cumsum(dabs) - dabs
    total = int(dabs.sum())
    for begin in range(0, total, CHUNK):
        dab = np.arange(begin, min(begin + CHUNK, total))
        segment = np.searchsorted(first, dab, side="right") - 1
        part = ((dab - first[segment] + 1) / dabs[segment])[:, None]
        _draw_dab(nearest, starts[segment] + part * (ends - starts)[segment], owners[segment])
    covered = np.clip(PEN + 0.5 - np.sqrt(nearest), 0.0, 1.0)
    return np.rint(255 * covered).astype(np.uint8).reshape(-1, SIDE, SIDE)


def fit_to_crop(strokes: Strokes) -> Strokes:
    """The strokes of one symbol in the crop's coordinates: its box's centre at the crop's, as large as fits."""
    points = np.concatenate(strokes)
    placed = _fit_to_crop(points, np.zeros(len(points), np.int64))
    return tuple(np.split(placed, np.cumsum([len(stroke) for stroke in strokes])[:-1]))


def _split_segments(ink: Sequence[Strokes]) -> tuple[Array, Array, Array]:
    """Where each piece of the pen's path starts and ends, [segments, 2] in the crop, and whose it is, [segments].

    A stroke of n points has n pieces: its first point on its own, so that a dot leaves ink, and n − 1 lines.
    """
    strokes = [stroke for strokes in ink for stroke in strokes]
    if not strokes:
        return np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0, np.int64)
    lengths = np.array([len(stroke) for stroke in strokes])
    of_stroke = np.repeat(np.arange(len(ink)), [len(strokes) for strokes in ink])
    owners = np.repeat(of_stroke, lengths)
    firsts = np.cumsum(lengths) - lengths
    ends = _fit_to_crop(np.concatenate(strokes), owners)
    starts = np.concatenate([ends[:1], ends[:-1]])
    starts[firsts] = ends[firsts]
    return starts, ends, owners


def _fit_to_crop(points: Array, owners: Array) -> Array:
    """Points [n, 2] in the coordinates of their owners' crops: the middle of the owner's box in the middle of the crop,
    its longer side as long as fits."""
    symbols, first = np.unique(owners, return_index=True)
    low = np.minimum.reduceat(points, first, axis=0)
    high = np.maximum.reduceat(points, first, axis=0)
    scale = (SIDE - 1 - 2 * MARGIN) / np.maximum((high - low).max(axis=1), 1e-9)
    own = np.searchsorted(symbols, owners)
    fitted: Array = (points - ((low + high) / 2)[own]) * scale[own][:, None] + (SIDE - 1) / 2
    return fitted


_REACH = np.arange(-2, 3)


def _draw_dab(nearest: Array, centres: Array, owners: Array) -> None:
    """Lower the squared distances of the 5 × 5 pixels around each dab to those from its centre."""
    pixel = np.rint(centres).astype(np.int64)  # [dabs, 2]; the margin keeps the 5 × 5 inside the crop
    offset = (pixel - centres).astype(np.float32)[:, :, None] + _REACH.astype(np.float32)  # [dabs, 2, 5]
    across = offset[:, 0] ** 2
    down = offset[:, 1] ** 2
    at = (owners * SIDE + pixel[:, 1]) * SIDE + pixel[:, 0]  # [dabs]
    around = (_REACH[:, None] * SIDE + _REACH).ravel()  # [25]
    squared = (down[:, :, None] + across[:, None, :]).reshape(-1, 25)
    np.minimum.at(nearest, (at[:, None] + around).ravel(), squared.ravel())


def warp_crop(strokes: Strokes, generator: np.random.Generator, strength: float = 1.0) -> Strokes:
    """The symbol as the same hand might have written it another time, for training.

    Rotation (6° standard deviation), shear, stretching, and a smooth elastic displacement of two waves in each
    direction, about 2 % of the symbol's size; all times `strength`. The crop takes away what is mere size.
    """
    points = np.concatenate(strokes)
    low = points.min(axis=0)
    high = points.max(axis=0)
    middle = (low + high) / 2
    size = max(float((high - low).max()), 1e-9)
    angle, shear, *stretch = strength * generator.normal(0.0, (0.10, 0.12, 0.10, 0.10))
    c = np.cos(angle)
    s = np.sin(angle)
    affine = np.array([[1.0, 0.0], [shear, 1.0]]) @ np.array([[c, s], [-s, c]]) * np.exp(stretch)
    unit = (points - middle) / size  # [points, 2], within ± ½
    waves = generator.normal(0.0, 4.0, (2, 4))
    phases = generator.uniform(0.0, 2 * np.pi, 4)
    ripple = np.sin(unit @ waves + phases).reshape(-1, 2, 2).sum(axis=1)
    moved = (unit @ affine + 0.02 * strength * ripple) * size + middle
    return tuple(np.split(moved, np.cumsum([len(stroke) for stroke in strokes])[:-1]))
