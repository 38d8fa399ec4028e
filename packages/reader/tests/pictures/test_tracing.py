"""Tracing pixels to strokes: known pictures, and random ones without lost or repeated pixels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggrevated.core.errors import DataError
from aggrevated_reader.pictures.thinning import skeletonize
from aggrevated_reader.pictures.tracing import trace_strokes

PICTURES = {  # and how many points the strokes have
    "####": [4],
    "#..#": [1, 1],
    "##\n.#": [3],
    "#..\n.#.\n..#": [3],
    ".#.\n#.#\n.#.": [5],  # a ring ends where it begins
    "..#..\n..#..\n#####\n..#..\n..#..": [3, 3, 3, 3],
    "#...#\n.#.#.\n..#..\n..#..": [3, 3, 2],
}


def parse_pixels(text: str) -> np.ndarray:
    return np.array([[pixel == "#" for pixel in row] for row in text.split("\n")])


@pytest.mark.parametrize("text", PICTURES)
def test_trace_strokes_runs_between_ends_and_crossings(text: str) -> None:
    line = parse_pixels(text)
    (strokes,) = trace_strokes(line, line.astype(int), np.array([1]))
    assert sorted(map(len, strokes)) == sorted(PICTURES[text])


def test_trace_strokes_smooths_stairs_and_keeps_ends() -> None:
    line = np.zeros((20, 20), bool)
    for k in range(18):
        line[k // 2, k] = True
    ((stroke,),) = trace_strokes(line, line.astype(int), np.array([1]), scale=3.0)
    assert sorted(map(tuple, stroke[[0, -1]].tolist())) == [(0.0, 0.0), (51.0, 24.0)]
    off = stroke[:, 1] - stroke[:, 0] / 2  # distance from the straight line, of which 3 · ¼ is the nearest
    assert np.ptp(off[3:-3]) < 0.4 * 3


def test_trace_strokes_separates_labels() -> None:
    line = parse_pixels("##.##\n.....\n#####")
    labels = np.array([[1, 1, 0, 2, 2], [0] * 5, [3] * 5])
    assert [[len(s) for s in strokes] for strokes in trace_strokes(line, labels, np.array([1, 3]))] == [[2], [5]]


@settings(deadline=None)
@given(st.integers(0, 10_000), st.floats(0.05, 0.6))
def test_trace_strokes_covers_every_pixel(seed: int, dense: float) -> None:
    line = skeletonize(np.random.default_rng(seed).random((12, 14)) < dense)
    if not line.any():
        return
    (strokes,) = trace_strokes(line, line.astype(int), np.array([1]))
    drawn = np.rint(np.concatenate(strokes)).astype(int)
    near = np.abs(drawn[:, None] - np.argwhere(line)[None, :, ::-1]).max(axis=2).min(axis=0)
    assert near.max() <= 1  # smoothing moves a point by less than a pixel
    assert len(np.concatenate(strokes)) <= 5 * line.sum()


def test_trace_strokes_rejects_too_long_lines() -> None:
    with pytest.raises(DataError, match="it has lines of more than 100,000 pixels: that is not a page of algebra"):
        trace_strokes(np.ones((400, 400), bool), np.ones((400, 400), int), np.array([1]))
