"""Reading order in two dimensions: radicands of roots, numerators and denominators, then lines, then scripts.

The order is that of MathML: index, root sign, radicand; numerator, bar, denominator; base, index, exponent.
Lines go from top to bottom, each from left to right, and columns follow one another. All lengths are in units
of `compute_median_symbol_size`, about the size of a symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from aggrevated.parsing.pages.page import Strokes, compute_boxes
from aggrevated_reader.pictures.symbol_grouping import compute_median_symbol_size

# Tuned on the writers of CROHME's training data and on generated hands.
FLAT = 0.4  # maximum height of a bar in widths
CLOSE = 0.9  # maximum gap between a fraction's bar and the nearest ink; LOOSE for a bar as wide as WIDE
LOOSE = 1.1
WIDE = 1.2
STACKED = 0.3  # maximum vertical gap between the blocks of one numerator
STEP = 0.9  # maximum misfit of a symbol that continues a line
SHARED = 0.3  # maximum overlap of two parts of a line, as a share of the shorter one
MEETING = 1.5  # maximum misfit of two parts of a line where they meet
LOCAL = 3  # symbols at the end of a line that decide whether another symbol continues it
GUTTER = 4.0  # minimum gap between columns
COLUMNS = 12  # gaps that are examined


def sort_reading_order(ink: Sequence[Strokes]) -> list[int]:
    """Return the indices of the symbols in reading order."""
    return [symbol for line in find_lines(ink) for symbol in line]


def find_lines(ink: Sequence[Strokes]) -> list[list[int]]:
    """Return the indices of each line's symbols in reading order, column by column, from top to bottom."""
    return [line for column in find_columns(ink) for line in column]


def find_columns(ink: Sequence[Strokes]) -> list[list[list[int]]]:
    """Return the lines of each column, as indices of symbols."""
    if not ink:
        return []
    boxes = compute_boxes([np.concatenate(strokes) for strokes in ink]) / compute_median_symbol_size(ink)
    blocks = [_Block((index,), *box) for index, box in enumerate(boxes.tolist())]
    return [
        [list(_list_members(line)) for line in _split_lines(column)]
        for column in _split_columns(_merge_fractions(_merge_roots(blocks)))
    ]


@dataclass(frozen=True)
class _Block:
    """Unit of reading: a symbol, a fraction, or a root with its radicand."""

    members: tuple[int, ...]  # indices of symbols, in reading order
    left: float
    top: float
    right: float
    bottom: float
    axis: float = float("nan")  # y of a fraction's bar, which is the fraction's middle

    @property
    def across(self) -> float:
        return (self.left + self.right) / 2

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2 if np.isnan(self.axis) else self.axis

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top


def _list_members(blocks: Sequence[_Block]) -> tuple[int, ...]:
    return tuple(member for block in blocks for member in block.members)


def _merge_blocks(blocks: Sequence[_Block], members: Sequence[_Block], axis: float) -> _Block:
    """Return one block around `blocks`, whose symbols are read in the order of `members`."""
    left = min(b.left for b in blocks)
    top = min(b.top for b in blocks)
    right = max(b.right for b in blocks)
    bottom = max(b.bottom for b in blocks)
    return _Block(_list_members(members), left, top, right, bottom, axis)


def _read(blocks: list[_Block]) -> list[_Block]:
    """Return the blocks of a part, such as a numerator, in reading order."""
    return [block for line in _split_lines(blocks) for block in line]


# Roots and fractions, from the innermost on.


def _merge_roots(blocks: list[_Block]) -> list[_Block]:
    """Return the blocks with every root and its radicand merged."""
    for root in sorted(blocks, key=lambda block: block.width * block.height):
        under = [b for b in blocks if b is not root and _is_inside(b, root)]
        if under:
            merged = _merge_blocks([root], [root, *_read(_merge_fractions(under))], float("nan"))
            blocks = [merged if b is root else b for b in blocks if b not in under]
    return blocks


def _is_inside(block: _Block, root: _Block) -> bool:
    """Return whether most of the block lies in the root's box, to the right of the root's tick."""
    across = min(block.right, root.right) - max(block.left, root.left)
    down = min(block.bottom, root.bottom) - max(block.top, root.top)
    is_mostly_inside = across > 0.8 * block.width and down > 0.7 * block.height and block.width < 0.8 * root.width
    return is_mostly_inside and block.top > root.top and block.left > root.left + 0.1


def _merge_fractions(blocks: list[_Block]) -> list[_Block]:
    """Return the blocks with every fraction merged; inner fractions have shorter bars."""
    for bar in sorted(blocks, key=lambda block: block.width):
        if bar.height > FLAT * bar.width or bar not in blocks:
            continue
        above = _stack(blocks, bar, lambda block, axis: axis - block.bottom)
        below = _stack(blocks, bar, lambda block, axis: block.top - axis)
        if above and below:
            fraction = _merge_blocks([*above, bar, *below], [*_read(above), bar, *_read(below)], bar.middle)
            merged = {*above, *below}
            blocks = [fraction if b is bar else b for b in blocks if b not in merged]
    return blocks


def _stack(blocks: list[_Block], bar: _Block, gap: Callable[[_Block, float], float]) -> list[_Block]:
    """Return the blocks above or below the bar, by the `gap` to a height, and not beyond a longer bar."""
    candidates = [b for b in blocks if b is not bar and _is_over(b, bar) and gap(b, bar.middle) > -0.35 * b.height]
    ends = [gap(b, bar.middle) for b in candidates if b.height <= FLAT * b.width and b.width > bar.width]
    candidates = [b for b in candidates if gap(b, bar.middle) < min(ends, default=np.inf)]
    reach = CLOSE if bar.width < WIDE else LOOSE
    stack = [b for b in candidates if gap(b, bar.middle) < reach]
    grown = bool(stack)
    while grown:
        more = [b for b in candidates if b not in stack and any(_measure_gap(b, other) < STACKED for other in stack)]
        stack = stack + more
        grown = bool(more)
    return stack


def _is_over(block: _Block, bar: _Block) -> bool:
    """Return whether the block stands above or below the bar."""
    return bar.left - 0.2 < block.across < bar.right + 0.2 and abs(block.middle - bar.middle) > 0.1


def _measure_gap(a: _Block, b: _Block) -> float:
    """Return the vertical gap between two blocks; negative if they overlap vertically."""
    return max(a.top, b.top) - min(a.bottom, b.bottom)


# Columns and lines.


def _split_columns(blocks: list[_Block], most: int = COLUMNS) -> list[list[_Block]]:
    """Return the blocks of each column; columns have a wide gap between them and several lines each.

    At most `most` gaps are examined, which is enough for real pages.
    """
    ordered = sorted(blocks, key=lambda block: block.left)
    right = np.maximum.accumulate([block.right for block in ordered])
    gaps = [cut for cut in range(1, len(ordered)) if ordered[cut].left - right[cut - 1] > GUTTER]
    for tried, cut in enumerate(gaps[:most], 1):
        before = ordered[:cut]
        after = ordered[cut:]
        if len(_split_lines(before)) > 1 and len(_split_lines(after)) > 1:
            return [before, *_split_columns(after, most - tried)]
    return [blocks]


def _split_lines(blocks: list[_Block]) -> list[list[_Block]]:
    """Return the blocks of each line in reading order."""
    lines: list[list[_Block]] = []
    for block in sorted(blocks, key=lambda block: block.across):
        misfits = [min(_measure_misfit(block, end) for end in line[-LOCAL:]) for line in lines]
        if misfits and min(misfits) < STEP:
            lines[int(np.argmin(misfits))].append(block)
        else:
            lines.append([block])
    lines = _merge_lines(lines)
    slope = _estimate_slope(lines)
    lines.sort(key=lambda line: float(np.mean([b.middle - slope * b.across for b in line])))
    return [_sort_line(line) for line in lines]


def _merge_lines(lines: list[list[_Block]]) -> list[list[_Block]]:
    """Return the lines with those merged that fill each other's gaps, as exponents and their bases do."""
    for upper in range(len(lines)):
        for lower in range(upper):
            if _is_one_line(lines[upper], lines[lower]):
                remaining = [line for index, line in enumerate(lines) if index not in (upper, lower)]
                return _merge_lines([*remaining, sorted(lines[lower] + lines[upper], key=lambda block: block.across)])
    return lines


def _is_one_line(a: list[_Block], b: list[_Block]) -> bool:
    """Return whether two lines hardly overlap horizontally and are close where they meet."""
    shared = sum(max(min(x.right, y.right) - max(x.left, y.left), 0.0) for x in a for y in b)
    if shared > SHARED * min(sum(x.width for x in a), sum(y.width for y in b)):
        return False
    gaps = sorted((max(y.left - x.right, x.left - y.right), _measure_misfit(x, y)) for x in a for y in b)
    return min(misfit for _, misfit in gaps[:2]) < MEETING


def _sort_line(line: list[_Block]) -> list[_Block]:
    """Return the blocks of a line in reading order; a block above another comes after it, as exponents do."""
    line = sorted(line, key=lambda block: block.across)
    for index in range(1, len(line)):
        left, right = line[index - 1 : index + 1]
        shared = min(left.right, right.right) - max(left.left, right.left)
        if left.bottom < right.top and right.left < left.left + 0.05 and shared > 0.5 * min(left.width, right.width):
            line[index - 1 : index + 1] = right, left
    return line


def _measure_misfit(block: _Block, end: _Block) -> float:
    """Return how badly a block continues a line's end, from the gaps between their middles and edges."""
    return abs(block.middle - end.middle) / 2 + 1.5 * max(_measure_gap(block, end), 0.0)


def _estimate_slope(lines: list[list[_Block]]) -> float:
    """Return the common downward slope of all lines, by least squares."""
    middles = [np.array([[b.across, b.middle] for b in line]) for line in lines]
    across, down = np.concatenate([middle - middle.mean(axis=0) for middle in middles]).T
    return float(across @ down) / max(float(across @ across), 1e-9)
