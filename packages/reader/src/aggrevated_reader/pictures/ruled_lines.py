"""Removal of the lines of ruled and squared paper, margins and frames; strokes across them stay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array

RUN = 1 / 25  # minimum length of a run of a line, as a share of the page's width
SHORTEST = 30  # minimum length of a run in pixels
PIECE = 0.15  # minimum length of a piece of a line, as a share of the page's width
FULL = 0.5  # minimum coverage of a line, as a share of the page's width
MANY = 3  # minimum number of lines of a ruled page
BORDER = 4  # pixels within which a single line reaches both borders; shorter ones may be bars of fractions
DARKER = 1.25  # minimum ratio of the pen's depth to a line's, from which on depth separates them
SMALL = 0.35  # maximum size of a remnant, relative to the 75th percentile of pieces
END = 15  # pixels of a line's end that may be left over
GAP = 12  # maximum gap in pixels between two pieces of one stroke along a line
POINTS = 20_000  # maximum number of points to estimate the tilt from
TILTS = 35.0  # maximum tilt in degrees, in both directions
SHARP = 2.5  # minimum ratio of the sharpness at the tilt to the median sharpness


@dataclass(frozen=True)
class _Line:
    """Position of a line."""

    rows: slice
    left: int
    right: int
    thick: int


def remove_ruled_lines(ink: Array, depth: Array) -> tuple[Array, int]:
    """Remove long lines across and down the page.

    Args:
        ink: Where there is ink, bool [height, width].
        depth: The contrast of each pixel with the paper, [height, width].

    Returns:
        The ink without the lines, and the number of lines.
    """
    # find both before removing one, which cuts the other
    across = _RuledLines.of(ink)
    down = _RuledLines.of(ink.T)
    pen = depth[ink & ~across.runs & ~down.runs.T]
    darkest = float(np.percentile(pen, 75)) if len(pen) else 0.0
    left = across.remove_from(ink, depth, darkest)
    left = down.remove_from(left.T, depth.T, darkest).T
    return np.ascontiguousarray(left), len(across.lines) + len(down.lines)


def count_line_remnants(before: Array, after: Array) -> int:
    """Return the number of small pieces at removed lines: strokes along the lines, or remnants."""
    from scipy import ndimage

    labels, count = ndimage.label(after, np.ones((3, 3)))
    removed = ndimage.binary_dilation(before & ~after, np.ones((3, 3)))
    sizes = np.array([max(part.stop - part.start for part in box) for box in ndimage.find_objects(labels)])
    is_at_line = np.bincount(labels[removed], minlength=count + 1)[1:] > 0
    return int((is_at_line & (sizes < SMALL * np.percentile(sizes, 75))).sum()) if count else 0


def estimate_line_tilt(ink: Array) -> float:
    """Return by how many degrees long lines go down to the right; 0 if there are no clear lines."""
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
    median_sharpness = np.median([_measure_sharpness(x, y, tilt, 2.0) for tilt in coarse[::5]])
    return float(fine[sharpest.argmax()]) if sharpest.max() > SHARP * median_sharpness else 0.0


def _measure_sharpness(x: Array, y: Array, tilt: float, bin: float) -> float:
    """Return how unevenly the points fall on lines of that tilt in degrees."""
    angle = np.radians(tilt)
    at = (y * np.float32(np.cos(angle)) - x * np.float32(np.sin(angle))) / np.float32(bin)
    counts = np.bincount((at - at.min()).astype(np.int32))
    return float((counts.astype(float) ** 2).sum()) / len(x)


@dataclass(frozen=True)
class _RuledLines:
    """Lines across a page."""

    runs: Array  # bool [height, width]: long runs of ink, which may be lines
    lines: list[_Line]

    @classmethod
    def of(cls, ink: Array) -> _RuledLines:
        width = ink.shape[1]
        thick = ink | np.roll(ink, 1, axis=0) | np.roll(ink, -1, axis=0)  # so that slightly tilted lines have long runs
        runs = _apply_opening(thick, max(SHORTEST, int(RUN * width)))
        return cls(runs, _find_lines(runs & ink, width))

    def remove_from(self, ink: Array, depth: Array, darkest: float) -> Array:
        """Return the ink without the lines; `darkest` is the depth of the pen away from them."""
        if not self.lines:
            return ink
        left = ink.copy()
        tall = _measure_run_heights(ink)
        for line in self.lines:
            rows = line.rows
            rule = self.runs[rows] & ink[rows] & (tall[rows] <= line.thick + 2)
            shade = float(np.percentile(depth[rows][rule], 75)) if rule.any() else 0.0
            if darkest > DARKER * shade:  # the pen is visible on the line, even along it
                left[rows] &= ~(self.runs[rows] & (depth[rows] < (shade + darkest) / 2))
            else:
                left[rows] &= ~rule | _find_bridges(np.asarray((ink[rows] & ~rule).any(axis=0)))
            _drop_ends(left, line)
        return left


def _drop_ends(ink: Array, line: _Line) -> None:
    """Remove the remnants of a line at its ends: flat pieces in its rows."""
    from scipy import ndimage

    rows = slice(max(line.rows.start - 3, 0), line.rows.stop + 3)
    labels, _ = ndimage.label(ink[rows], np.ones((3, 3)))
    for label, (down, across) in enumerate(ndimage.find_objects(labels), 1):
        inside = down.start > 0 and down.stop < len(labels) and down.stop - down.start <= line.thick + 3
        if inside and (across.stop < line.left + END or across.start > line.right - END):
            ink[rows][labels == label] = False


def _find_bridges(has_ink: Array) -> Array:
    """Return short gaps between strokes along a line, bool [width], which a stroke along it fills."""
    from scipy import ndimage

    closed: Array = ndimage.binary_closing(np.pad(has_ink, GAP), np.ones(GAP))[GAP:-GAP]
    return closed


def _find_lines(runs: Array, width: int) -> list[_Line]:
    """Return the lines of the runs: many that cover much of the page, or single ones between its borders."""
    from scipy import ndimage

    labels, _ = ndimage.label(runs, np.ones((3, 3)))
    boxes = ndimage.find_objects(labels)
    spans = [(box[0].start, box[0].stop, box[1].start, box[1].stop) for box in boxes]
    bands: list[list[tuple[int, int, int, int]]] = []
    for span in sorted(spans):
        near = [band for band in bands if any(span[0] < other[1] + 4 and other[0] < span[1] + 4 for other in band)]
        if near:
            near[-1].append(span)
        else:
            bands.append([span])
    full = [band for band in bands if _measure_coverage(band, width) >= FULL * width]
    if len(full) < MANY:
        full = [
            band for band in full
            if min(span[2] for span in band) <= BORDER and max(span[3] for span in band) >= width - BORDER
        ]  # fmt: skip
    return [_make_line(runs, band) for band in full]


def _measure_coverage(band: list[tuple[int, int, int, int]], width: int) -> int:
    """Return the total width of a line's long pieces; strokes above each other do not count."""
    return sum(right - left for _, _, left, right in band if right - left >= PIECE * width)


def _make_line(runs: Array, band: list[tuple[int, int, int, int]]) -> _Line:
    rows = slice(min(span[0] for span in band), max(span[1] for span in band))
    columns = runs[rows].sum(axis=0)
    left = min(span[2] for span in band)
    right = max(span[3] for span in band)
    return _Line(rows, left, right, int(np.median(columns[columns > 0])) if columns.any() else 1)


def _apply_opening(ink: Array, length: int) -> Array:
    """Return where ink is part of a horizontal run of at least `length` pixels, with the shape of `ink`."""
    before = np.cumsum(np.pad(ink, ((0, 0), (1, 0))), axis=1, dtype=np.int32)
    if ink.shape[1] < length:
        return np.zeros_like(ink)
    starts = before[:, length:] - before[:, :-length] == length
    begun = np.cumsum(np.pad(starts, ((0, 0), (length, length - 1))), axis=1, dtype=np.int32)
    opened: Array = begun[:, length:] > begun[:, :-length]
    return opened


def _measure_run_heights(ink: Array) -> Array:
    """Return for every pixel of ink the height of its vertical run of ink, int [height, width]."""
    up = np.zeros(ink.shape, np.int32)
    down = np.zeros(ink.shape, np.int32)
    for row in range(len(ink)):
        up[row] = np.where(ink[row], (up[row - 1] if row else 0) + 1, 0)
    for row in reversed(range(len(ink))):
        down[row] = np.where(ink[row], (down[row + 1] if row + 1 < len(ink) else 0) + 1, 0)
    return up + down - 1
