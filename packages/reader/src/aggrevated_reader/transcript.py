"""From a tree, names and places to an expression as people type it, and as LaTeX.

The head rules say what is a part of what; where a part stands says what kind of part it is: an exponent is above its
base's middle, an index below, a numerator over its bar, what a root is of inside of its sign. A tree that a parser got
wrong still gives an expression with all its symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.parsing.pages.algebra import BAR, CLOSING, OPENING, OPERATORS, ROOT_SIGN

RAISED_DIGITS = str.maketrans("0123456789n", "⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ")  # of a root's index, lest 2·³√x be read as 23·√x
RAISED = 0.2  # of the base's height between the middles, from which on a part is raised or lowered
WORDS = ("sin", "cos", "tan", "log", "lim")  # that are one symbol
SHARED = 0.3  # of a height: what shares less than that of its own with the line before it begins another line


@dataclass(frozen=True)
class Style:
    """How structures are written."""

    names: Mapping[str, str]  # of symbols that are not written as they are
    fraction: Callable[[str, str], str]
    beside: Callable[[str], str]  # of a fraction that has factors beside it
    root: Callable[[str, str], str]  # of the index, which may be empty, and what it is the root of
    script: Callable[[str, str], str]  # of ^ or _, and what is raised or lowered


def add_brackets(inner: str) -> str:
    """With brackets, unless it is a number, a name or a single symbol."""
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
    """Symbols in reading order as a tree; symbol i has number i + 1, and 0 is ROOT."""

    labels: Sequence[str]
    heads: Array  # int [n]
    boxes: Array  # [n, 4]: left, top, right, bottom

    @property
    def text(self) -> str:
        """A line for each line of the page: `x^2`, `(a+b)/c`, `√2`."""
        return self.format_as(PLAIN)

    @property
    def latex(self) -> str:
        """The same as LaTeX, for its mathematical mode."""
        return self.format_as(LATEX)

    def format_as(self, style: Style) -> str:
        """In that style. Every part is written before what it is a part of, so that depth costs nothing."""
        heads = self.acyclic_heads
        row = self.line_numbers
        parts = dict.fromkeys(range(1, len(heads) + 1), "")
        for number in self.bottom_up_order:
            own = [part for part in self.parts[number] if row[part - 1] == row[number - 1]]
            parts[number] = self._format_symbol(number, own, parts, style)
        tops = [[n for n in line if not heads[n - 1] or row[heads[n - 1] - 1] != row[n - 1]] for line in self.lines]
        return "\n".join("".join(parts[number] for number in line).strip() for line in tops)

    def _format_symbol(self, number: int, own: Sequence[int], written: Mapping[int, str], style: Style) -> str:
        """A symbol with its parts, which are written already."""
        label = self.labels[number - 1]
        before = [n for n in own if n < number]
        after = [n for n in own if n > number]
        if label == BAR and (found := self._split_fraction(number, before, after)) is not None:
            above, below = found
            middle = style.fraction(join_written(above, written), join_written(below, written))
            before = drop_numbers(before, above)
            after = drop_numbers(after, below)
            if before or after or self._is_factor(number):
                middle = style.beside(middle)
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
        """The parts over and under a bar; None where one of them is missing, and it is no fraction's."""
        left, top, right, bottom = self.boxes[bar - 1]
        above = [n for n in before if self._is_within(n, left, right) and self._compute_middle(n)[1] < bottom]
        below = [n for n in after if self._is_within(n, left, right) and self._compute_middle(n)[1] > top]
        return (above, below) if above and below else None

    def _is_factor(self, number: int) -> bool:
        """Whether a factor follows, which heads it then."""
        head = self.acyclic_heads[number - 1]
        return bool(head > number) and self.labels[head - 1] not in OPERATORS | CLOSING | {BAR}

    def _is_within(self, number: int, left: float, right: float) -> bool:
        return bool(left <= self._compute_middle(number)[0] <= right)

    def _compute_middle(self, number: int) -> Array:
        """Of all that is below the symbol in the tree, [2]."""
        box = self.compute_box(self.list_descendants(number))
        middle: Array = (box[:2] + box[2:]) / 2
        return middle

    def _is_index(self, number: int, root: int) -> bool:
        """Whether it stands in the corner of a root sign, rather than as a factor before it."""
        left, top, _, bottom = self.boxes[root - 1]
        box = self.compute_box(self.list_descendants(number))
        return bool(box[2] > left and self._compute_middle(number)[1] < (top + bottom) / 2)

    def _format_script(self, number: int, base: int, inner: str, style: Style) -> str:
        """Raised or lowered, by where it stands; as it is where it is neither."""
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
        """The heads; where they go round in a circle, which no parser makes, one of it is ROOT's."""
        found = [int(head) if 0 <= head <= len(self.heads) else 0 for head in self.heads]
        for number in range(1, len(found) + 1):
            ancestor = number
            seen = set()
            while ancestor and ancestor not in seen:
                seen.add(ancestor)
                ancestor = found[ancestor - 1]
            if ancestor:
                found[ancestor - 1] = 0
        return found

    @cached_property
    def parts(self) -> list[list[int]]:
        """The dependents of ROOT and of every symbol, in reading order."""
        parts: list[list[int]] = [[] for _ in range(len(self.labels) + 1)]
        for number, head in enumerate(self.acyclic_heads, 1):
            parts[head].append(number)
        return parts

    @property
    def bottom_up_order(self) -> list[int]:
        """All symbols, each after all that depend on it."""
        return [number for number in reversed(self.list_descendants(0)) if number]

    def list_descendants(self, number: int) -> list[int]:
        """The symbol and all that depend on it, each after its head."""
        found = []
        waiting = [number]
        while waiting:
            found.append(waiting.pop())
            waiting += self.parts[found[-1]]
        return found

    def compute_box(self, numbers: Sequence[int]) -> Array:
        """The box of these symbols, [4]."""
        boxes = self.boxes[np.asarray(numbers) - 1]
        return np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])

    # Its lines.

    @cached_property
    def lines(self) -> list[list[int]]:
        """The symbols of each line: a part of the whole that stands below all before it begins another one."""
        lines: list[list[int]] = []
        for piece in self._split_pieces():
            if lines and not self._is_new_line(piece, lines[-1]):
                lines[-1] += piece
            else:
                lines.append(piece)
        return [sorted(line) for line in lines]

    def _split_pieces(self) -> list[list[int]]:
        """The root with what stands before it; then each of its later dependents, and other tops, with all below."""
        if not self.labels:
            return []
        root, *others = self.parts[0]
        whole = self.labels[root - 1] in (BAR, ROOT_SIGN)
        own = [part for part in self.parts[root] if part < root] + self._list_parts_after(root)[: int(whole)]
        first = [root, *(member for part in own for member in self.list_descendants(part))]
        later = sorted({*others, *self.parts[root]} - {*own})
        return [first, *map(self.list_descendants, later)]

    def _list_parts_after(self, number: int) -> list[int]:
        return [part for part in self.parts[number] if part > number]

    def _is_new_line(self, piece: Sequence[int], line: Sequence[int]) -> bool:
        """Whether it stands below the line: with a gap, or not to the right of it, as an index does."""
        left, top, _, bottom = self.compute_box(piece)
        _, _, right, end = self.compute_box(line)
        return bool(top > end + SHARED * self._median_height or (top > end - SHARED * (bottom - top) and left < right))

    @cached_property
    def line_numbers(self) -> list[int]:
        """The line of each symbol, from 1."""
        rows = {number: row for row, line in enumerate(self.lines, 1) for number in line}
        return [rows[number] for number in range(1, len(self.labels) + 1)]


def join_written(numbers: Sequence[int], written: Mapping[int, str]) -> str:
    """What is written of these, one after the other."""
    return "".join(written[number] for number in numbers).strip()


def drop_numbers(numbers: Sequence[int], some: Sequence[int]) -> list[int]:
    """The others."""
    return [number for number in numbers if number not in some]
