"""Layout of symbols on a page: from tokens and the boxes of their ink to the scale and position of each.

Lengths are in heights of a digit; x points to the right, y *upwards* from the baseline of the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.parsing.pages.algebra import CLOSING, OPENING, OPERATORS, RELATIONS, Fraction, Raised, Root, Token
from aggrevated_reader.pages.batched_rng import BatchedRng
from aggrevated_reader.pages.expressions import count_symbols
from aggrevated_reader.pages.writers import Writer

AXIS = 0.4  # height of operators and bars
Box = tuple[float, float, float, float]  # left, bottom, right, top


@dataclass(frozen=True)
class Placed:
    """Transform of the ink of symbol `number` to (across · x + x₀, up · y + y₀)."""

    number: int
    across: float  # scale of x
    up: float  # scale of y
    x: float  # shift x₀
    y: float  # shift y₀
    bar: float  # scale of x beyond the knee of `√`

    def transform(self, scale: float, x: float, y: float) -> Placed:
        """Return the transform followed by a scaling and a shift."""
        across = self.across * scale
        up = self.up * scale
        bar = self.bar * scale
        return Placed(self.number, across, up, self.x * scale + x, self.y * scale + y, bar)


@dataclass(frozen=True)
class Block:
    """Symbols in their positions relative to each other, and the box around them."""

    symbols: tuple[Placed, ...]
    box: Box

    def transform(self, scale: float, x: float, y: float) -> Block:
        """Return the block scaled and then shifted."""
        left, bottom, right, top = (scale * side for side in self.box)
        box = left + x, bottom + y, right + x, top + y
        return Block(tuple(symbol.transform(scale, x, y) for symbol in self.symbols), box)


def merge_blocks(blocks: Sequence[Block]) -> Block:
    """Return one block with the symbols of all."""
    left, bottom, right, top = zip(*(block.box for block in blocks), strict=True)
    symbols = tuple(symbol for block in blocks for symbol in block.symbols)
    return Block(symbols, (min(left), min(bottom), max(right), max(top)))


@dataclass(frozen=True)
class _Bracketed:
    """Content of a pair of brackets."""

    inside: tuple[_Item, ...]


_Item = Token | _Bracketed


def compute_layout(
    lines: Sequence[Sequence[Token]], boxes: Sequence[Box], knees: Sequence[float], writer: Writer, dice: BatchedRng
) -> Array:
    """Return the layout of a page: across, up, x, y and bar of each symbol in reading order, [n, 5].

    Args:
        lines: The tokens of each line.
        boxes: The boxes of the symbols' ink, in reading order.
        knees: Where the bar of each `√` begins, in reading order.
        writer: The style of the writer.
        dice: Source of random numbers.
    """
    page = _Layout(boxes, knees, writer, dice)
    blocks = [page.make_row(_group_brackets(line)) for line in lines]
    starts = page.sample_indents(lines, blocks)
    floor = 0.0
    symbols: list[Placed] = []
    for block, start in zip(blocks, starts, strict=True):
        left, _, _, top = block.box
        lower = block.transform(1.0, start - left, floor - top)
        floor = lower.box[1] - writer.leading * (0.7 + 0.6 * dice.sample_fraction())
        symbols += lower.symbols
    return np.array([(p.across, p.up, p.x, p.y, p.bar) for p in sorted(symbols, key=lambda p: p.number)])


def _group_brackets(tokens: Iterable[Token]) -> tuple[_Item, ...]:
    """Return the tokens with each bracketed part as one item."""
    open_rows: list[list[_Item]] = [[]]
    for token in tokens:
        if isinstance(token, str) and token in OPENING:
            open_rows.append([])
        elif isinstance(token, str) and token in CLOSING:
            inside = open_rows.pop()
            open_rows[-1].append(_Bracketed(tuple(inside)))
        else:
            open_rows[-1].append(token)
    (row,) = open_rows
    return tuple(row)


def _get_spacing_level(item: _Item) -> int:
    return (item in OPERATORS) + (item in RELATIONS) if isinstance(item, str) else 0


class _Layout:
    """Layout of rows and the structures in them; methods take the next symbols in reading order."""

    def __init__(self, boxes: Sequence[Box], knees: Sequence[float], writer: Writer, dice: BatchedRng) -> None:
        self.boxes = boxes
        self.knees = knees
        self.writer = writer
        self.dice = dice
        self.numbers = count()

    def make_row(self, items: Sequence[_Item]) -> Block:
        """Return the items side by side on an uneven baseline."""
        blocks: list[Block] = []
        right = height = 0.0
        before: _Item | None = None
        base: Block | None = None  # the base of exponents and indices
        for item in items:
            if isinstance(item, Raised) and base is not None:
                block = self.make_script(item, base)
            else:
                height = 0.8 * height + self.writer.drift * self.dice.sample_deviation()
                block = self.make_item(item)
                left = right + (
                    self.sample_gap(max(_get_spacing_level(before), _get_spacing_level(item)))
                    if before is not None
                    else 0.0
                )
                block = block.transform(1.0, left - block.box[0], height + self.writer.slope * left)
                base = block
            blocks.append(block)
            right = max(right, block.box[2])
            before = item
        return merge_blocks(blocks)

    def sample_gap(self, air: int = 0) -> float:
        """Sample the gap to the next symbol; it is wider at an operator (1) or a relation (2)."""
        writer = self.writer
        dice = self.dice
        gap = writer.spacing * max(-0.4, 1.0 + writer.irregular * dice.sample_deviation())
        return gap * (1.0, writer.airy, writer.airy * writer.parted)[air]

    def make_item(self, item: _Item) -> Block:
        match item:
            case str():
                return self.make_symbol()
            case _Bracketed(inside):
                return self.make_brackets(inside)
            case Fraction(above, below):
                return self.make_fraction(above, below)
            case Root(under, index):
                return self.make_root(under, index)
            case Raised(inside):
                return self.make_row(_group_brackets(inside)).transform(self.writer.exponents, 0.0, 0.8)

    def make_symbol(self) -> Block:
        number = next(self.numbers)
        return Block((Placed(number, 1.0, 1.0, 0.0, 0.0, 1.0),), self.boxes[number])

    def fit_symbol(self, number: int, bottom: float, top: float, across: float) -> Block:
        """Return a symbol that reaches from `bottom` to `top`."""
        left, low, right, high = self.boxes[number]
        up = (top - bottom) / max(high - low, 1e-6)
        box = left * across, bottom, right * across, top
        return Block((Placed(number, across, up, 0.0, bottom - up * low, across),), box)

    def make_brackets(self, inside: Sequence[_Item]) -> Block:
        """Return brackets about as tall as their content, and never flat."""
        dice = self.dice
        writer = self.writer
        opening = next(self.numbers)
        inner = self.make_row(inside)
        closing = next(self.numbers)
        _, low, _, high = inner.box
        low = min(low, 0.1)
        high = max(high, 0.75)
        nested = any(
            isinstance(item, _Bracketed) for item in inside
        )  # brackets around brackets are only slightly taller
        taller = writer.brackets**0.3 if nested else writer.brackets
        blocks: list[Block] = []
        for number in (opening, closing):
            height = (high - low) * taller * (1.0 + 0.12 * dice.sample_deviation())
            middle = (low + high) / 2 + 0.06 * dice.sample_deviation()
            wide = (height / 1.2) ** 0.5
            blocks.append(self.fit_symbol(number, middle - height / 2, middle + height / 2, wide))
        gaps = [0.7 * self.sample_gap() for _ in blocks]
        inner = inner.transform(1.0, blocks[0].box[2] + gaps[0] - inner.box[0], 0.0)
        last = blocks[1].transform(1.0, inner.box[2] + gaps[1] - blocks[1].box[0], 0.0)
        return merge_blocks([blocks[0], inner, last])

    def make_script(self, item: Raised, base: Block) -> Block:
        """Return an exponent or index at the right of its base."""
        writer = self.writer
        dice = self.dice
        _, low, right, high = base.box
        small = self.make_row(_group_brackets(item.symbols))
        scale = writer.exponents * (1.0 + 0.12 * dice.sample_deviation())
        height = scale * (small.box[3] - small.box[1])
        x = right + 0.10 + 0.16 * dice.sample_deviation() - scale * small.box[0]
        if item.lowered:
            y = min(low, 0.0) + 0.12 * (1.0 + dice.sample_deviation()) - 0.55 * height - scale * small.box[1]
        else:
            y = max(high, 0.5) + writer.raised + 0.12 * dice.sample_deviation() - 0.2 * height - scale * small.box[1]
        return small.transform(scale, x, y)

    def make_fraction(self, above: Sequence[Token], below: Sequence[Token]) -> Block:
        """Return a bar at the axis with the numerator centered above and the denominator below."""
        writer = self.writer
        dice = self.dice
        over = self.make_row(_group_brackets(above))
        number = next(self.numbers)
        under = self.make_row(_group_brackets(below))
        over, under = (block.transform(writer.parts, 0.0, 0.0) for block in (over, under))
        longer = max(block.box[2] - block.box[0] for block in (over, under))
        long = max(0.35, longer * writer.bars * (1.0 + 0.12 * dice.sample_deviation()) + 0.3 * dice.sample_fraction())
        bar = self.make_bar(number, long)
        left, low, right, high = bar.box
        for block, edge, side, way in ((over, high, 1, 1.0), (under, low, 3, -1.0)):
            middle = (left + right) / 2 + 0.11 * long * dice.sample_deviation()
            gap = writer.apart * (0.2 + 1.2 * dice.sample_fraction())
            shift = middle - (block.box[0] + block.box[2]) / 2, edge + way * gap - block.box[side]
            bar = merge_blocks([bar, block.transform(1.0, *shift)])
        return bar

    def make_bar(self, number: int, length: float) -> Block:
        """Return the bar of a fraction."""
        left, low, right, high = self.boxes[number]
        across = length / max(right - left, 1e-6)
        up = across**0.5  # longer bars are relatively flatter
        half = up * (high - low) / 2
        symbol = Placed(number, across, up, 0.0, AXIS - up * (low + high) / 2, across)
        return Block((symbol,), (left * across, AXIS - half, right * across, AXIS + half))

    def make_root(self, under: Sequence[Token], index: Sequence[Token]) -> Block:
        """Return the sign with a bar over its radicand, and with its index in front."""
        dice = self.dice
        small = self.make_row(_group_brackets(index)) if index else None
        number = next(self.numbers)
        inner = self.make_row(_group_brackets(under))
        left, low, _, high = inner.box
        top = max(high, 0.7) + 0.06 + 0.15 * dice.sample_fraction()
        bottom = min(low, 0.1) + 0.08 * dice.sample_deviation()
        across = 0.8 + 0.3 * dice.sample_fraction()
        knee = across * self.knees[number]
        inner = inner.transform(1.0, knee + 0.05 + 0.12 * dice.sample_fraction() - left, 0.0)
        sign = self.make_sign(
            number, across, bottom, top, max(knee + 0.2, inner.box[2] + 0.15 * dice.sample_deviation())
        )
        if small is None:
            return merge_blocks([sign, inner])
        small = small.transform(0.8 * self.writer.exponents, 0.0, 0.0)
        shift = 0.5 * knee - small.box[2], (bottom + top) / 2 + 0.05 - small.box[1]
        return merge_blocks([small.transform(1.0, *shift), sign, inner])

    def make_sign(self, number: int, across: float, bottom: float, top: float, end: float) -> Block:
        """Return a `√` whose bar ends at x = `end`."""
        hook = self.fit_symbol(number, bottom, top, across)
        knee = self.knees[number]
        bar = (end - across * knee) / max(self.boxes[number][2] - knee, 0.05)
        return Block((replace(hook.symbols[0], bar=bar),), (hook.box[0], bottom, end, top))

    def sample_indents(self, lines: Sequence[Sequence[Token]], blocks: Sequence[Block]) -> list[float]:
        """Sample where each line begins."""
        writer = self.writer
        dice = self.dice
        free = [0.25 * dice.sample_deviation() for _ in lines]
        if not writer.aligned:
            return free
        columns = [self.find_column(line, block) for line, block in zip(lines, blocks, strict=True)]
        return [0.3 * shift + columns[0] - column for shift, column in zip(free, columns, strict=True)]

    def find_column(self, line: Sequence[Token], block: Block) -> float:
        """Return the distance from a line's left to its first relation, or else to its first symbol."""
        index = next((i for i, token in enumerate(line) if isinstance(token, str) and token in RELATIONS), 0)
        number = min(symbol.number for symbol in block.symbols) + count_symbols(line[:index])
        symbol = next(symbol for symbol in block.symbols if symbol.number == number)
        return symbol.x + symbol.across * self.boxes[number][0] - block.box[0]
