"""Ways of writing every symbol: the points that the pen passes, before a writer's deviations.

A way is a string. Points are in hundredths of a digit's height, x to the right and y *upwards* from the
baseline; small letters are about 60 high. `*` marks a sharp corner, `|` lifts the pen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated_reader.pages.glyphs import capitals, digits, greek, signs, small_letters, words

WAYS = digits.WAYS | signs.WAYS | small_letters.WAYS | capitals.WAYS | greek.WAYS | words.WAYS
KNEE = 0.40  # x at which the bar of `√` begins, in heights of a digit
SAMPLES = 6  # points of the curve from one passed point to the next


@dataclass(frozen=True)
class Way:
    """One way to write a symbol; its curve is linear in the points that the pen passes: `curve @ points`."""

    points: Array  # [C, 2]
    curve: Array  # [P, C]
    strokes: Array  # int [P]: the stroke of each point of the curve, from 0
    corners: Array  # bool [P]: sharp corners and ends


@cache
def list_ways(symbol: str) -> tuple[Way, ...]:
    """Return all ways to write a symbol."""
    return tuple(_parse_way(text) for text in WAYS[symbol])


def _parse_way(text: str) -> Way:
    strokes = [stroke.split() for stroke in text.split("|")]
    points = np.array([[float(v) for v in item.rstrip("*").split(",")] for stroke in strokes for item in stroke]) / 100
    parts = [_parse_stroke(items) for items in strokes]
    curve = np.zeros((sum(len(matrix) for matrix, _ in parts), len(points)))
    row = column = 0
    for matrix, _ in parts:
        curve[row : row + matrix.shape[0], column : column + matrix.shape[1]] = matrix
        row = row + matrix.shape[0]
        column = column + matrix.shape[1]
    numbers = np.repeat(np.arange(len(parts)), [len(matrix) for matrix, _ in parts])
    return Way(points, curve, numbers, np.concatenate([corners for _, corners in parts]))


def _parse_stroke(items: Sequence[str]) -> tuple[Array, Array]:
    """Return the matrix from points to curve, [P, C], and which points of the curve are corners, [P]."""
    last = len(items) - 1
    ends = [0, *(i for i, item in enumerate(items) if item.endswith("*") and 0 < i < last), last]
    matrices = []
    corners = []
    for first, end in pairwise(ends):
        matrix = np.zeros((SAMPLES * (end - first), len(items)))
        matrix[:, first : end + 1] = _make_catmull_rom_matrix(end - first + 1)
        matrices.append(matrix)
        corners.append(np.arange(len(matrix)) == 0)
    final = np.zeros((1, len(items)))
    final[0, last] = 1.0
    return np.concatenate([*matrices, final]), np.concatenate([*corners, [True]])


def _make_catmull_rom_matrix(count: int) -> Array:
    """Return the curve through `count` points without the last: [SAMPLES × (count − 1), count]."""
    around = np.zeros((count + 2, count))
    around[1:-1] = np.eye(count)
    # straight continuation at both ends
    around[0, :2] = (2, -1)
    around[-1, -2:] = (-1, 2)
    t = np.arange(SAMPLES)[:, None] / SAMPLES
    p, q, r, s = (around[i : count - 1 + i, None] for i in range(4))
    curve: Array = 0.5 * (2 * q + (r - p) * t + (2 * p - 5 * q + 4 * r - s) * t**2 + (3 * (q - r) + s - p) * t**3)
    return curve.reshape(-1, count)
