"""Leveling of handwriting that is tilted, by the tilt at which its lines are sharpest."""

from collections.abc import Sequence

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.parsing.pages.page import Strokes
from aggrevated_reader.pictures.symbol_grouping import compute_median_symbol_size

MOST = 35.0  # maximum tilt in degrees, in both directions
LEAST = 5.0  # minimum tilt in degrees: smaller slopes belong to the handwriting
FEWEST = 5  # minimum number of parts
LONG = 3.5  # minimum length of lines in symbols
CLEARER = 1.25  # minimum ratio of the sharpness at the tilt to that of the level page
BINS = 4.0  # per height of a symbol
POINTS = 3_000  # maximum number of points
WIDEST = 500.0  # maximum width of a page in symbols: wider ones have dust


def estimate_tilt(parts: Sequence[Strokes]) -> float:
    """Return by how many degrees the lines go down to the right; 0 if nearly level or too short to decide."""
    if len(parts) < FEWEST:
        return 0.0
    points = np.concatenate([stroke for part in parts for stroke in part]) / compute_median_symbol_size(parts)
    points = points[:: -(-len(points) // POINTS)]
    if np.ptp(points, axis=0).max() > WIDEST:
        return 0.0
    tilts = np.arange(-MOST, MOST + 0.1, 1.0)
    sharp = np.array([_measure_sharpness(points, tilt) for tilt in tilts])
    best = float(tilts[sharp.argmax()])
    if abs(best) < LEAST or sharp.max() < CLEARER * sharp[len(tilts) // 2]:
        return 0.0
    if abs(best) == MOST or np.ptp(points @ [np.cos(np.radians(best)), np.sin(np.radians(best))]) < LONG:
        return 0.0
    fine = np.arange(best - 1.5, best + 1.6, 0.25)
    return float(fine[np.argmax([_measure_sharpness(points, tilt) for tilt in fine])])


def make_deskew_matrix(tilt: float) -> Array:
    """Return the matrix [2, 2] that levels a page with that tilt in degrees, as points @ matrix.T."""
    c = np.cos(np.radians(tilt))
    s = np.sin(np.radians(tilt))
    return np.array([[c, s], [-s, c]])


def rotate_strokes(parts: Sequence[Strokes], turn: Array) -> list[Strokes]:
    """Return the strokes, rotated about the origin by a matrix [2, 2]."""
    return [tuple(stroke @ turn.T for stroke in part) for part in parts]


def _measure_sharpness(points: Array, tilt: float) -> float:
    """Return how unevenly the ink falls on lines of that tilt in degrees."""
    angle = np.radians(tilt)
    down = (points[:, 1] * np.cos(angle) - points[:, 0] * np.sin(angle)) * BINS
    counts = np.bincount((down - down.min()).astype(np.int64))
    smooth = np.convolve(counts, (1, 2, 1))
    return float((smooth**2.0).sum()) / len(points)
