"""Reading order in two dimensions: what stands under a root, above and below a bar, then lines, then scripts.

The order is that of MathML: index, root sign, radicand; numerator, bar, denominator; base, index, exponent. Lines go
from top to bottom, each from left to right; columns one after the other. All lengths are in units of `unit_of`, about
one symbol's size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from aggrevated.parsing.pages.page import Strokes, compute_boxes
from aggrevated_reader.pictures.symbol_grouping import compute_median_symbol_size

# Tuned on the writers of CROHME's training data and on generated hands.
FLAT = 0.4  # the height of a bar in widths, at most
CLOSE = 0.9  # from a fraction's bar to the nearest ink above and below, at most; LOOSE for one as wide as WIDE
LOOSE = 1.1
WIDE = 1.2
STACKED = 0.3  # between what stands above each other in one numerator, at most
STEP = 0.9  # how badly a symbol may fit to a line's end and still go on with it
SHARED = 0.3  # of the shorter of two lines that are one may stand above or below the other
MEETING = 1.5  # how badly two lines that are one may fit where they meet
LOCAL = 3  # symbols at the end of a line that say where it has got to
GUTTER = 4.0  # between columns, at least
COLUMNS = 12  # gaps that are looked at


def sort_reading_order(ink: Sequence[Strokes]) -> list[int]:
    """The places of the symbols as they are read."""
    return [symbol for line in find_lines(ink) for symbol in line]


def find_lines(ink: Sequence[Strokes]) -> list[list[int]]:
    """The places of the symbols of each line, as they are read; column by column, in each from top to bottom."""
    return [line for column in find_columns(ink) for line in column]


def find_columns(ink: Sequence[Strokes]) -> list[list[list[int]]]:
    """The lines of each column, as places of symbols."""
    if not ink:
        return []
    boxes = compute_boxes([np.concatenate(strokes) for strokes in ink]) / compute_median_symbol_size(ink)
    blocks = [_Block((place,), *box) for place, box in enumerate(boxes.tolist())]
    return [
        [list(_list_members(line)) for line in _split_lines(column)]
        for column in _split_columns(_merge_fractions(_merge_roots(blocks)))
    ]


@dataclass(frozen=True)
class _Block:
    """What is read as one: a symbol, a fraction, a root with all that is under it."""

    members: tuple[int, ...]  # places of symbols, in reading order
    left: float
    top: float
    right: float
    bottom: float
    axis: float = float("nan")  # the height of a fraction's bar, where that is what lies on the line

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
    """One block of `blocks`, whose members are read in the order of `members`."""
    left = min(b.left for b in blocks)
    top = min(b.top for b in blocks)
    right = max(b.right for b in blocks)
    bottom = max(b.bottom for b in blocks)
    return _Block(_list_members(members), left, top, right, bottom, axis)


def _read(blocks: list[_Block]) -> list[_Block]:
    """The blocks of a part, such as a numerator, in reading order."""
    return [block for line in _split_lines(blocks) for block in line]


# Roots and fractions, from the innermost on.


def _merge_roots(blocks: list[_Block]) -> list[_Block]:
    """The blocks with every root and what is under it as one."""
    for root in sorted(blocks, key=lambda block: block.width * block.height):
        under = [b for b in blocks if b is not root and _is_inside(b, root)]
        if under:
            whole = _merge_blocks([root], [root, *_read(_merge_fractions(under))], float("nan"))
            blocks = [whole if b is root else b for b in blocks if b not in under]
    return blocks


def _is_inside(block: _Block, root: _Block) -> bool:
    """Whether most of the block lies within the root's box, and does not begin at its very left, where its tick is."""
    across = min(block.right, root.right) - max(block.left, root.left)
    down = min(block.bottom, root.bottom) - max(block.top, root.top)
    enough = across > 0.8 * block.width and down > 0.7 * block.height and block.width < 0.8 * root.width
    return enough and block.top > root.top and block.left > root.left + 0.1


def _merge_fractions(blocks: list[_Block]) -> list[_Block]:
    """The blocks with every fraction as one; inner fractions have shorter bars."""
    for bar in sorted(blocks, key=lambda block: block.width):
        if bar.height > FLAT * bar.width or bar not in blocks:
            continue
        above = _stack(blocks, bar, lambda block, axis: axis - block.bottom)
        below = _stack(blocks, bar, lambda block, axis: block.top - axis)
        if above and below:
            whole = _merge_blocks([*above, bar, *below], [*_read(above), bar, *_read(below)], bar.middle)
            gone = {*above, *below}
            blocks = [whole if b is bar else b for b in blocks if b not in gone]
    return blocks


def _stack(blocks: list[_Block], bar: _Block, gap: Callable[[_Block, float], float]) -> list[_Block]:
    """What stands above the bar, or below it, by the `gap` to a height; nothing beyond a longer bar."""
    over = [b for b in blocks if b is not bar and _is_over(b, bar) and gap(b, bar.middle) > -0.35 * b.height]
    ends = [gap(b, bar.middle) for b in over if b.height <= FLAT * b.width and b.width > bar.width]
    over = [b for b in over if gap(b, bar.middle) < min(ends, default=np.inf)]
    reach = CLOSE if bar.width < WIDE else LOOSE
    stack = [b for b in over if gap(b, bar.middle) < reach]
    grown = bool(stack)
    while grown:
        more = [b for b in over if b not in stack and any(_measure_gap(b, other) < STACKED for other in stack)]
        stack = stack + more
        grown = bool(more)
    return stack


def _is_over(block: _Block, bar: _Block) -> bool:
    """Whether the block stands above or below the bar, not beside it."""
    return bar.left - 0.2 < block.across < bar.right + 0.2 and abs(block.middle - bar.middle) > 0.1


def _measure_gap(a: _Block, b: _Block) -> float:
    """The gap between two blocks down the page; negative where they stand side by side."""
    return max(a.top, b.top) - min(a.bottom, b.bottom)


# Columns and lines.


def _split_columns(blocks: list[_Block], most: int = COLUMNS) -> list[list[_Block]]:
    """The blocks of each column: what stands on either side of a wide gap from top to bottom, in several lines each.

    Only the first few gaps are looked at, which is all that a page has.
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
    """The blocks of each line, as they are read."""
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
    """The lines, where those that fill each other's gaps are one: exponents and what they stand at."""
    for upper in range(len(lines)):
        for lower in range(upper):
            if _is_one_line(lines[upper], lines[lower]):
                rest = [line for place, line in enumerate(lines) if place not in (upper, lower)]
                return _merge_lines([*rest, sorted(lines[lower] + lines[upper], key=lambda block: block.across)])
    return lines


def _is_one_line(a: list[_Block], b: list[_Block]) -> bool:
    """Whether hardly anything of the two lines stands above each other, and they are close where they meet."""
    shared = sum(max(min(x.right, y.right) - max(x.left, y.left), 0.0) for x in a for y in b)
    if shared > SHARED * min(sum(x.width for x in a), sum(y.width for y in b)):
        return False
    gaps = sorted((max(y.left - x.right, x.left - y.right), _measure_misfit(x, y)) for x in a for y in b)
    return min(misfit for _, misfit in gaps[:2]) < MEETING


def _sort_line(line: list[_Block]) -> list[_Block]:
    """The blocks of a line as they are read: what stands above another comes after it, as exponents do."""
    line = sorted(line, key=lambda block: block.across)
    for place in range(1, len(line)):
        left, right = line[place - 1 : place + 1]
        shared = min(left.right, right.right) - max(left.left, right.left)
        if left.bottom < right.top and right.left < left.left + 0.05 and shared > 0.5 * min(left.width, right.width):
            line[place - 1 : place + 1] = right, left
    return line


def _measure_misfit(block: _Block, end: _Block) -> float:
    """How badly a block goes on from the end of a line: by how far their middles and their edges are apart."""
    return abs(block.middle - end.middle) / 2 + 1.5 * max(_measure_gap(block, end), 0.0)


def _estimate_slope(lines: list[list[_Block]]) -> float:
    """How far all lines together go down for each step to the right: their least-squares slope."""
    middles = [np.array([[b.across, b.middle] for b in line]) for line in lines]
    across, down = np.concatenate([middle - middle.mean(axis=0) for middle in middles]).T
    return float(across @ down) / max(float(across @ across), 1e-9)
