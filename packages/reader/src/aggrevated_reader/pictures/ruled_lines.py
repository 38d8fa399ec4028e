"""Ruled and squared paper, margins and frames: long straight lines, found and taken away, strokes across them kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array

RUN = 1 / 25  # of the page's width: a line shows in runs of ink at least as long
SHORTEST = 30  # pixels of a run
PIECE = 0.15  # of the page's width that a piece of a line has, at least
FULL = 0.5  # of the page's width that a line covers at least
MANY = 3  # lines that make a ruled page
BORDER = 4  # pixels from the page's border at which a single line ends, on both sides, if it is no fraction's bar
DARKER = 1.25  # how much darker than a line the pen is, if the shades tell them apart
SMALL = 0.35  # of the usual size of pieces: what is smaller may be a rest
END = 15  # pixels of a line's end that may be left over
GAP = 12  # pixels of a line between two strokes that are one stroke
POINTS = 20_000  # of the ink at most, that the tilt is found from
TILTS = 35.0  # degrees either way
SHARP = 2.5  # how much sharper than usual the lines must be at the right tilt


@dataclass(frozen=True)
class _Line:
    """Where a line is."""

    rows: slice
    left: int
    right: int
    thick: int


def remove_ruled_lines(ink: Array, depth: Array) -> tuple[Array, int]:
    """The ink without long lines across and down the page, and how many they were; `depth` says how dark it is."""
    # both before one is taken away: that cuts the other
    across = _RuledLines.of(ink)
    down = _RuledLines.of(ink.T)
    pen = depth[ink & ~across.runs & ~down.runs.T]
    darkest = float(np.percentile(pen, 75)) if len(pen) else 0.0
    left = across.remove_from(ink, depth, darkest)
    left = down.remove_from(left.T, depth.T, darkest).T
    return np.ascontiguousarray(left), len(across.lines) + len(down.lines)


def count_line_remnants(before: Array, after: Array) -> int:
    """How many small pieces are left where lines were taken away: strokes that ran along them, or the lines' rests."""
    from scipy import ndimage

    labels, count = ndimage.label(after, np.ones((3, 3)))
    gone = ndimage.binary_dilation(before & ~after, np.ones((3, 3)))
    sizes = np.array([max(part.stop - part.start for part in box) for box in ndimage.find_objects(labels)])
    beside = np.bincount(labels[gone], minlength=count + 1)[1:] > 0
    return int((beside & (sizes < SMALL * np.percentile(sizes, 75))).sum()) if count else 0


def estimate_line_tilt(ink: Array) -> float:
    """By how many degrees long lines go down to the right; 0 if there are none that one could tell."""
    y, x = np.nonzero(ink)
    if len(y) < 200:
        return 0.0
    chosen = slice(None, None, -(-len(y) // POINTS))
    y = y[chosen].astype(np.float32)
    x = x[chosen].astype(np.float32)
    coarse = np.arange(-TILTS, TILTS + 0.1, 1.0)
    sharp = np.array([_measure_sharpness(x, y, tilt, 4.0) for tilt in coarse])
    best = float(coarse[sharp.argmax()])
    fine = np.arange(best - 1.0, best + 1.05, 0.1)
    sharpest = np.array([_measure_sharpness(x, y, tilt, 2.0) for tilt in fine])
    usual = np.median([_measure_sharpness(x, y, tilt, 2.0) for tilt in coarse[::5]])
    return float(fine[sharpest.argmax()]) if sharpest.max() > SHARP * usual else 0.0


def _measure_sharpness(x: Array, y: Array, tilt: float, bin: float) -> float:
    """How unevenly the points fall on lines of that tilt."""
    angle = np.radians(tilt)
    at = (y * np.float32(np.cos(angle)) - x * np.float32(np.sin(angle))) / np.float32(bin)
    counts = np.bincount((at - at.min()).astype(np.int32))
    return float((counts.astype(float) ** 2).sum()) / len(x)


@dataclass(frozen=True)
class _RuledLines:
    """The lines across a page."""

    runs: Array  # bool [height, width]: where they are, if they are lines
    lines: list[_Line]

    @classmethod
    def of(cls, ink: Array) -> _RuledLines:
        width = ink.shape[1]
        thick = ink | np.roll(ink, 1, axis=0) | np.roll(ink, -1, axis=0)  # one that is not quite level has long runs
        runs = _apply_opening(thick, max(SHORTEST, int(RUN * width)))
        return cls(runs, _find_lines(runs & ink, width))

    def remove_from(self, ink: Array, depth: Array, darkest: float) -> Array:
        """The ink without the lines; the pen, where it does not run along them, is so dark."""
        if not self.lines:
            return ink
        left = ink.copy()
        tall = _measure_run_heights(ink)
        for line in self.lines:
            rows = line.rows
            rule = self.runs[rows] & ink[rows] & (tall[rows] <= line.thick + 2)
            shade = float(np.percentile(depth[rows][rule], 75)) if rule.any() else 0.0
            if darkest > DARKER * shade:  # the pen is seen on the line, even along it
                left[rows] &= ~(self.runs[rows] & (depth[rows] < (shade + darkest) / 2))
            else:
                left[rows] &= ~rule | _find_bridges(np.asarray((ink[rows] & ~rule).any(axis=0)))
            _drop_ends(left, line)
        return left


def _drop_ends(ink: Array, line: _Line) -> None:
    """Take away what is left of a line at its ends: flat pieces that lie in its rows."""
    from scipy import ndimage

    rows = slice(max(line.rows.start - 3, 0), line.rows.stop + 3)
    labels, _ = ndimage.label(ink[rows], np.ones((3, 3)))
    for label, (down, across) in enumerate(ndimage.find_objects(labels), 1):
        inside = down.start > 0 and down.stop < len(labels) and down.stop - down.start <= line.thick + 3
        if inside and (across.stop < line.left + END or across.start > line.right - END):
            ink[rows][labels == label] = False


def _find_bridges(kept: Array) -> Array:
    """Short gaps between what is kept along a line, bool [width]: there a stroke runs along it."""
    from scipy import ndimage

    closed: Array = ndimage.binary_closing(np.pad(kept, GAP), np.ones(GAP))[GAP:-GAP]
    return closed


def _find_lines(runs: Array, width: int) -> list[_Line]:
    """The lines that the runs make up: many that cover much of the page, or single ones from border to border."""
    from scipy import ndimage

    labels, _ = ndimage.label(runs, np.ones((3, 3)))
    found = ndimage.find_objects(labels)
    pieces = [(box[0].start, box[0].stop, box[1].start, box[1].stop) for box in found]
    bands: list[list[tuple[int, int, int, int]]] = []
    for piece in sorted(pieces):
        near = [band for band in bands if any(piece[0] < other[1] + 4 and other[0] < piece[1] + 4 for other in band)]
        if near:
            near[-1].append(piece)
        else:
            bands.append([piece])
    full = [band for band in bands if _measure_coverage(band, width) >= FULL * width]
    if len(full) < MANY:
        full = [
            band for band in full
            if min(piece[2] for piece in band) <= BORDER and max(piece[3] for piece in band) >= width - BORDER
        ]  # fmt: skip
    return [_make_line(runs, band) for band in full]


def _measure_coverage(band: list[tuple[int, int, int, int]], width: int) -> int:
    """How much of the page the long pieces of a line cover: strokes one below the other are none."""
    return sum(right - left for _, _, left, right in band if right - left >= PIECE * width)


def _make_line(runs: Array, band: list[tuple[int, int, int, int]]) -> _Line:
    rows = slice(min(piece[0] for piece in band), max(piece[1] for piece in band))
    columns = runs[rows].sum(axis=0)
    left = min(piece[2] for piece in band)
    right = max(piece[3] for piece in band)
    return _Line(rows, left, right, int(np.median(columns[columns > 0])) if columns.any() else 1)


def _apply_opening(ink: Array, length: int) -> Array:
    """Where ink is part of a run of at least `length` pixels across: bool like `ink`."""
    before = np.cumsum(np.pad(ink, ((0, 0), (1, 0))), axis=1, dtype=np.int32)
    if ink.shape[1] < length:
        return np.zeros_like(ink)
    starts = before[:, length:] - before[:, :-length] == length
    begun = np.cumsum(np.pad(starts, ((0, 0), (length, length - 1))), axis=1, dtype=np.int32)
    opened: Array = begun[:, length:] > begun[:, :-length]
    return opened


def _measure_run_heights(ink: Array) -> Array:
    """For every pixel of ink, how tall the run of ink is that it is part of: int [height, width]."""
    up = np.zeros(ink.shape, np.int32)
    down = np.zeros(ink.shape, np.int32)
    for row in range(len(ink)):
        up[row] = np.where(ink[row], (up[row - 1] if row else 0) + 1, 0)
    for row in reversed(range(len(ink))):
        down[row] = np.where(ink[row], (down[row + 1] if row + 1 < len(ink) else 0) + 1, 0)
    return up + down - 1
