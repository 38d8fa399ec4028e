"""Conversion of a tree with names and boxes to an expression, as plain text and as LaTeX.

The head rules say which symbol is a part of which. The position of a part says what kind of part it is: an
exponent is above the middle of its base, an index below, a numerator above its bar, and a radicand inside its
root sign. A tree with parser errors still gives an expression with all its symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.parsing.pages.algebra import BAR, CLOSING, OPENING, OPERATORS, ROOT_SIGN

RAISED_DIGITS = str.maketrans("0123456789n", "⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ")  # 2·³√x, not 23·√x
RAISED = 0.2  # distance of the middles, in heights of the base, from which on a part is raised or lowered
WORDS = ("sin", "cos", "tan", "log", "lim")  # each is one symbol
SHARED = 0.3  # share of its height that a piece must have in common with a line to belong to it


@dataclass(frozen=True)
class Style:
    """Notation of structures."""

    names: Mapping[str, str]  # of symbols that are written differently from their labels
    fraction: Callable[[str, str], str]  # from numerator and denominator
    fraction_factor: Callable[[str], str]  # from a fraction that has other factors next to it
    root: Callable[[str, str], str]  # from the index, which may be empty, and the radicand
    script: Callable[[str, str], str]  # from ^ or _ and the part that is raised or lowered


def add_brackets(inner: str) -> str:
    """Return the expression in brackets, unless it is a number, a name or a single symbol."""
    return inner if len(inner) <= 1 or inner.isdigit() or inner in WORDS else f"({inner})"


PLAIN = Style(
    {BAR: "-"},
    lambda above, below: f"{add_brackets(above)}/{add_brackets(below)}",
    lambda fraction: f"({fraction})",
    lambda index, under: f"{index.translate(RAISED_DIGITS)}√{add_brackets(under)}",
    lambda sign, inner: f"{sign}{add_brackets(inner)}",
)
LATEX = Style(
    {
        BAR: "-", "{": "\\{", "}": "\\}", "×": "\\times ", "÷": "\\div ", "·": "\\cdot ", "±": "\\pm ", "≤": "\\leq ",
        "≥": "\\geq ", "≠": "\\neq ", "…": "\\ldots ", "∞": "\\infty ", "→": "\\to ", "∑": "\\sum ", "∫": "\\int ",
        "α": "\\alpha ", "β": "\\beta ", "γ": "\\gamma ", "δ": "\\delta ", "θ": "\\theta ", "λ": "\\lambda ",
        "μ": "\\mu ", "π": "\\pi ", "σ": "\\sigma ", "φ": "\\phi ", "ω": "\\omega ", "Δ": "\\Delta ",
        **{name: f"\\{name} " for name in WORDS},
    },
    lambda above, below: f"\\frac{{{above}}}{{{below}}}",
    lambda fraction: fraction,
    lambda index, under: f"\\sqrt[{index}]{{{under}}}" if index else f"\\sqrt{{{under}}}",
    lambda sign, inner: f"{sign}{{{inner}}}",
)  # fmt: skip


@dataclass(frozen=True)
class Transcript:
    """Symbols in reading order as a tree; symbol i has number i + 1, and 0 is ROOT.

    Args:
        labels: The names of the n symbols.
        heads: The head of each symbol, int [n].
        boxes: The box of each symbol, [n, 4]: left, top, right, bottom.
    """

    labels: Sequence[str]
    heads: Array  # int [n]
    boxes: Array  # [n, 4]: left, top, right, bottom

    @property
    def text(self) -> str:
        """The expression as plain text, one line for each line of the page: `x^2`, `(a+b)/c`, `√2`."""
        return self.format_as(PLAIN)

    @property
    def latex(self) -> str:
        """The expression as LaTeX for math mode, one line for each line of the page."""
        return self.format_as(LATEX)

    def format_as(self, style: Style) -> str:
        """Return the expression in a style."""
        heads = self.acyclic_heads
        rows = self.line_numbers
        # Each part is written before its head, so that deep trees need no recursion.
        written = dict.fromkeys(range(1, len(heads) + 1), "")
        for number in self.bottom_up_order:
            same_line_parts = [part for part in self.parts[number] if rows[part - 1] == rows[number - 1]]
            written[number] = self._format_symbol(number, same_line_parts, written, style)
        tops = [[n for n in line if not heads[n - 1] or rows[heads[n - 1] - 1] != rows[n - 1]] for line in self.lines]
        return "\n".join("".join(written[number] for number in line).strip() for line in tops)

    def _format_symbol(self, number: int, parts: Sequence[int], written: Mapping[int, str], style: Style) -> str:
        """Return a symbol with its parts, which are written already."""
        label = self.labels[number - 1]
        before = [n for n in parts if n < number]
        after = [n for n in parts if n > number]
        if label == BAR and (fraction := self._split_fraction(number, before, after)) is not None:
            above, below = fraction
            middle = style.fraction(join_written(above, written), join_written(below, written))
            before = drop_numbers(before, above)
            after = drop_numbers(after, below)
            if before or after or self._is_factor(number):
                middle = style.fraction_factor(middle)
        elif label == ROOT_SIGN and after:
            index = [n for n in before if self._is_index(n, number)]
            middle = style.root(join_written(index, written), join_written(after[:1], written))
            before = drop_numbers(before, index)
            after = after[1:]
        else:
            middle = style.names.get(label, label)
        inline = label in OPERATORS or label in OPENING
        behind = [written[n] if inline else self._format_script(n, number, written[n], style) for n in after]
        return "".join([*(written[n] for n in before), middle, *behind])

    def _split_fraction(
        self, bar: int, before: Sequence[int], after: Sequence[int]
    ) -> tuple[list[int], list[int]] | None:
        """Return the parts above and below a bar, or None if the bar lacks one of them."""
        left, top, right, bottom = self.boxes[bar - 1]
        above = [n for n in before if self._is_within(n, left, right) and self._compute_middle(n)[1] < bottom]
        below = [n for n in after if self._is_within(n, left, right) and self._compute_middle(n)[1] > top]
        return (above, below) if above and below else None

    def _is_factor(self, number: int) -> bool:
        """Return whether the symbol is followed by a factor, which is then its head."""
        head = self.acyclic_heads[number - 1]
        return bool(head > number) and self.labels[head - 1] not in OPERATORS | CLOSING | {BAR}

    def _is_within(self, number: int, left: float, right: float) -> bool:
        return bool(left <= self._compute_middle(number)[0] <= right)

    def _compute_middle(self, number: int) -> Array:
        """Return the center of the symbol and all its descendants, [2]."""
        box = self.compute_box(self.list_descendants(number))
        middle: Array = (box[:2] + box[2:]) / 2
        return middle

    def _is_index(self, number: int, root: int) -> bool:
        """Return whether a part stands in the corner of a root sign, rather than as a factor before it."""
        left, top, _, bottom = self.boxes[root - 1]
        box = self.compute_box(self.list_descendants(number))
        return bool(box[2] > left and self._compute_middle(number)[1] < (top + bottom) / 2)

    def _format_script(self, number: int, base: int, inner: str, style: Style) -> str:
        """Return a part raised or lowered, according to its position."""
        _, top, _, bottom = self.boxes[base - 1]
        rise = (top + bottom) / 2 - self._compute_middle(number)[1]
        far = RAISED * max(bottom - top, 0.5 * self._median_height)
        return inner if abs(rise) < far else style.script("^" if rise > 0 else "_", inner.strip())

    @cached_property
    def _median_height(self) -> float:
        """The median height of a symbol."""
        return float(np.median(self.boxes[:, 3] - self.boxes[:, 1]))

    # The tree.

    @cached_property
    def acyclic_heads(self) -> list[int]:
        """The heads, in which one symbol of each cycle depends on ROOT; no parser makes cycles."""
        heads = [int(head) if 0 <= head <= len(self.heads) else 0 for head in self.heads]
        for number in range(1, len(heads) + 1):
            ancestor = number
            seen = set()
            while ancestor and ancestor not in seen:
                seen.add(ancestor)
                ancestor = heads[ancestor - 1]
            if ancestor:
                heads[ancestor - 1] = 0
        return heads

    @cached_property
    def parts(self) -> list[list[int]]:
        """The dependents of ROOT and of every symbol, in reading order."""
        parts: list[list[int]] = [[] for _ in range(len(self.labels) + 1)]
        for number, head in enumerate(self.acyclic_heads, 1):
            parts[head].append(number)
        return parts

    @property
    def bottom_up_order(self) -> list[int]:
        """All symbols, each after its dependents."""
        return [number for number in reversed(self.list_descendants(0)) if number]

    def list_descendants(self, number: int) -> list[int]:
        """Return the symbol and all its descendants, each after its head."""
        descendants = []
        waiting = [number]
        while waiting:
            descendants.append(waiting.pop())
            waiting += self.parts[descendants[-1]]
        return descendants

    def compute_box(self, numbers: Sequence[int]) -> Array:
        """Return the box around these symbols, [4]."""
        boxes = self.boxes[np.asarray(numbers) - 1]
        return np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])

    # Its lines.

    @cached_property
    def lines(self) -> list[list[int]]:
        """The symbols of each line; a part of the root that stands below all before it starts a new line."""
        lines: list[list[int]] = []
        for part in self._split_parts():
            if lines and not self._is_new_line(part, lines[-1]):
                lines[-1] += part
            else:
                lines.append(part)
        return [sorted(line) for line in lines]

    def _split_parts(self) -> list[list[int]]:
        """Return the root with the parts before it, then each later part of the root with its descendants."""
        if not self.labels:
            return []
        root, *later_roots = self.parts[0]
        is_bar_or_root = self.labels[root - 1] in (BAR, ROOT_SIGN)
        first_parts = [part for part in self.parts[root] if part < root] + self._list_parts_after(root)[
            : int(is_bar_or_root)
        ]
        first = [root, *(member for part in first_parts for member in self.list_descendants(part))]
        later = sorted({*later_roots, *self.parts[root]} - {*first_parts})
        return [first, *map(self.list_descendants, later)]

    def _list_parts_after(self, number: int) -> list[int]:
        return [part for part in self.parts[number] if part > number]

    def _is_new_line(self, part: Sequence[int], line: Sequence[int]) -> bool:
        """Return whether a part stands below the line: with a gap, or not to its right as an index does."""
        left, top, _, bottom = self.compute_box(part)
        _, _, right, end = self.compute_box(line)
        return bool(top > end + SHARED * self._median_height or (top > end - SHARED * (bottom - top) and left < right))

    @cached_property
    def line_numbers(self) -> list[int]:
        """The line of each symbol, from 1."""
        rows = {number: row for row, line in enumerate(self.lines, 1) for number in line}
        return [rows[number] for number in range(1, len(self.labels) + 1)]


def join_written(numbers: Sequence[int], written: Mapping[int, str]) -> str:
    """Return the written forms of these symbols, concatenated."""
    return "".join(written[number] for number in numbers).strip()


def drop_numbers(numbers: Sequence[int], dropped: Sequence[int]) -> list[int]:
    """Return the numbers that are not among `dropped`."""
    return [number for number in numbers if number not in dropped]
