"""Simulation of the tablet: points of the pen's path at the tablet's rate, with tremor, on its grid."""

from __future__ import annotations

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.parsing.pages.page import Strokes
from aggrevated_reader.pages.pen import Path, sample_smooth_noise
from aggrevated_reader.pages.writers import Writer

FEWEST = 5  # minimum number of points of a stroke


def sample_as_tablet(path: Path, hand: Writer, draw: np.random.Generator) -> tuple[Strokes, ...]:
    """Sample the strokes of each symbol in pixels, y downwards, one digit's height from the corner."""
    points, counts = _resample_path(path, hand, draw)
    points += hand.tremor * sample_smooth_noise(len(points), draw)
    if hand.grid:
        points = np.rint(points / hand.grid) * hand.grid
    points *= np.array([1.0, -1.0])
    pixels = hand.size * (points - points.min(axis=0) + 1.0)
    ink: list[list[Array]] = [[] for _ in range(path.count)]
    owners = path.owners[path.starts].tolist()
    for owner, stroke in zip(owners, np.split(pixels, np.cumsum(counts)[:-1]), strict=True):
        ink[owner].append(stroke)
    return tuple(map(tuple, ink))


def _resample_path(path: Path, hand: Writer, draw: np.random.Generator) -> tuple[Array, Array]:
    """Return points about one step apart [M, 2], and the number of points of each stroke."""
    points = path.points
    firsts = np.flatnonzero(path.starts)
    steps = np.hypot(*np.diff(points, axis=0, prepend=points[:1]).T)
    steps[firsts] = 1.0  # a lift is as long as a digit, so that no point lies between two strokes
    along = np.cumsum(steps)
    lengths = along[np.append(firsts[1:], len(points)) - 1] - along[firsts]
    counts = np.maximum(np.rint(lengths / hand.step).astype(np.int64) + 1, FEWEST)
    stroke = np.repeat(np.arange(len(firsts)), counts)
    index = np.arange(len(stroke)) - np.repeat(np.cumsum(counts) - counts, counts)
    inner = (index > 0) & (index < counts[stroke] - 1)
    pace = index + hand.uneven_steps * inner * draw.uniform(-1.0, 1.0, len(index))
    positions = along[firsts][stroke] + lengths[stroke] * pace / (counts[stroke] - 1)
    return np.stack([np.interp(positions, along, points[:, i]) for i in range(2)], axis=1), counts
