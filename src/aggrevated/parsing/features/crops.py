"""Crops of symbols: images of 40 × 40 pixels, centered and scaled, drawn with a pen of constant width."""

from collections.abc import Sequence

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.parsing.pages.page import Strokes

SIDE = 40  # pixels
MARGIN = 4.0  # smallest distance of the pen's center from the border, pixels
PEN = 1.25  # radius of the pen, pixels; at most 1.5, since a dab covers 5 × 5 pixels
STEP = 0.5  # largest distance between dabs of the pen, pixels; the error of the outline is then 0.03 pixels
CHUNK = 1 << 14  # dabs drawn at a time, which limits the memory


def draw_crops(ink: Sequence[Strokes]) -> Array:
    """Draw the crop of each symbol.

    Args:
        ink: strokes of each of n symbols.

    Returns:
        Gray levels, uint8 [n, 40, 40]: 0 is paper, 255 is ink.
    """
    starts, ends, owners = _split_segments(ink)
    dabs = np.maximum(np.ceil(np.hypot(*(ends - starts).T) / STEP).astype(np.int64), 1)  # [segments]
    nearest = np.full(len(ink) * SIDE * SIDE, 9.0, np.float32)  # squared distance to the pen's path, by pixel
    first = np.cumsum(dabs) - dabs
    total = int(dabs.sum())
    for begin in range(0, total, CHUNK):
        dab = np.arange(begin, min(begin + CHUNK, total))
        segment = np.searchsorted(first, dab, side="right") - 1
        fraction = ((dab - first[segment] + 1) / dabs[segment])[:, None]
        _draw_dab(nearest, starts[segment] + fraction * (ends - starts)[segment], owners[segment])
    covered = np.clip(PEN + 0.5 - np.sqrt(nearest), 0.0, 1.0)
    return np.rint(255 * covered).astype(np.uint8).reshape(-1, SIDE, SIDE)


def fit_to_crop(strokes: Strokes) -> Strokes:
    """Return the strokes of one symbol in the coordinates of its crop, in pixels."""
    points = np.concatenate(strokes)
    scaled = _fit_to_crop(points, np.zeros(len(points), np.int64))
    return tuple(np.split(scaled, np.cumsum([len(stroke) for stroke in strokes])[:-1]))


def _split_segments(ink: Sequence[Strokes]) -> tuple[Array, Array, Array]:
    """Return starts and ends of the pen's segments in crops [segments, 2], and their symbols [segments].

    A stroke of n points has n segments: its first point alone, so that a dot leaves ink, and n − 1 lines.
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
    """Return points [n, 2] in the coordinates of the crops of their symbols `owners` [n].

    The box of a symbol is centered in its crop, and its longer side is scaled to the crop's side without
    margins.
    """
    symbols, first = np.unique(owners, return_index=True)
    low = np.minimum.reduceat(points, first, axis=0)
    high = np.maximum.reduceat(points, first, axis=0)
    scale = (SIDE - 1 - 2 * MARGIN) / np.maximum((high - low).max(axis=1), 1e-9)
    symbol_index = np.searchsorted(symbols, owners)
    scaled: Array = (points - ((low + high) / 2)[symbol_index]) * scale[symbol_index][:, None] + (SIDE - 1) / 2
    return scaled


_REACH = np.arange(-2, 3)


def _draw_dab(nearest: Array, centers: Array, owners: Array) -> None:
    """Lower the squared distances of the 5 × 5 pixels around each dab to the distances from its center."""
    pixel = np.rint(centers).astype(np.int64)  # [dabs, 2]; the margin has room for 5 × 5 pixels
    offset = (pixel - centers).astype(np.float32)[:, :, None] + _REACH.astype(np.float32)  # [dabs, 2, 5]
    across = offset[:, 0] ** 2
    down = offset[:, 1] ** 2
    at = (owners * SIDE + pixel[:, 1]) * SIDE + pixel[:, 0]  # [dabs]
    around = (_REACH[:, None] * SIDE + _REACH).ravel()  # [25]
    squared = (down[:, :, None] + across[:, None, :]).reshape(-1, 25)
    np.minimum.at(nearest, (at[:, None] + around).ravel(), squared.ravel())


def warp_crop(strokes: Strokes, generator: np.random.Generator, strength: float = 1.0) -> Strokes:
    """Return a randomly warped copy of a symbol, for augmentation.

    The warp is a rotation (6° standard deviation), a shear, a stretch and a smooth elastic displacement of
    two waves in each direction, about 2 % of the symbol's size. Crops remove differences in size.

    Args:
        strokes: strokes of the symbol.
        generator: source of random numbers.
        strength: factor of all warps; 0 leaves the symbol unchanged.

    Returns:
        The warped strokes.
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
