"""The dependency tree of algebra: which symbol depends on which.

The head rules, decoded from the example in the paper's appendix:

- `=` heads both sides; the first line's `=` is the root and heads those of the later lines;
- a binary operator heads both operands; × and / bind before + and −, and operators of equal rank group to the left;
- what stands side by side is head-final: in `10(x+2)` the 1 depends on the 0 and the 0 on the `)`;
- `)` heads `(`, and `(` heads the head of what is inside.

The example leaves three choices free: an exponent depends on its base, a fraction bar heads what is above and below
it, and a prefix sign depends on the head of the factor that follows it. Relations in a chain (`a=b=c`) group to the
left like other operators, and a line without a relation is headed by the head of its expression. A root is a factor
whose head is `√`: it heads the head of what is under it, and the root's index (the 3 of ∛) depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError

OPENING = frozenset({"(", "[", "{", "\\{"})
CLOSING = frozenset({")", "]", "}", "\\}"})
RELATIONS = frozenset(
    {"=", "<", ">", "≤", "≥", "≠", "\\lt", "\\gt", "\\le", "\\ge", "\\leq", "\\geq", "\\ne", "\\neq", "\\approx"}
)
SIGNS = frozenset({"+", "-", "−", "±", "\\pm", "\\mp"})  # binary after an operand, a prefix elsewhere
FACTORS = frozenset({"×", "÷", "·", "/", "\\times", "\\div", "\\cdot"})
OPERATORS = RELATIONS | SIGNS | FACTORS
RANKS = (RELATIONS, SIGNS, FACTORS)  # from loose to tight; tighter still is standing side by side
DEPTH = 50  # brackets, fractions and exponents within each other: more is not algebra but an attack on the stack


@dataclass(frozen=True)
class Raised:
    """An exponent (or index) of what stands before it: x² is `"x", Raised("2")`, (a+b)² ends in `")", Raised("2")`."""

    symbols: Sequence[Token]
    lowered: bool = False  # an index: the same rule, another place on the page


@dataclass(frozen=True)
class Fraction:
    """A fraction with a bar; in reading order: what is above, the bar, what is below."""

    above: Sequence[Token]
    below: Sequence[Token]
    bar: str = "-"


@dataclass(frozen=True)
class Root:
    """A root; in reading order: its index, if it has one, `√`, what is under it."""

    under: Sequence[Token]
    index: Sequence[Token] = ()


Token = str | Raised | Fraction | Root
ROOT_SIGN = "√"
BAR = "―"  # of a fraction, as a page shows it: it looks like a minus


def parse_heads(lines: Sequence[str]) -> Array:
    """The head of every symbol of a page, int [n]: number i + 1 belongs to symbol i, 0 is ROOT. Spaces do not count."""
    return parse_expression_heads([_split_symbols(line, row) for row, line in enumerate(lines, 1)])


def parse_expression_heads(lines: Sequence[Sequence[Token]]) -> Array:
    """The same for lines of labels: a symbol is a character, or a LaTeX name like `\\times`.

    They are numbered in reading order: a base before its exponent, a numerator before its bar, an index before its `√`.
    """
    found = _Heads()
    tops = [_LineParser(line, found, f"line {row}").parse_line() for row, line in enumerate(lines, 1)]
    if not tops:
        raise DataError("there is no line to parse: write at least one symbol")
    for later in tops[1:]:
        found[later] = tops[0]
    return np.array(found[1:], np.int64)


def _split_symbols(line: str, row: int) -> list[str]:
    """The characters of a line but its spaces; a space keeps its column as an empty label, for the messages."""
    known = OPENING | CLOSING | OPERATORS
    for column, symbol in enumerate(line, 1):
        if not (symbol in known or symbol.isspace() or (symbol.isascii() and symbol.isalnum())):
            raise DataError(f"line {row}, column {column}: {symbol!r} is not a symbol of algebra: remove it")
    return ["" if symbol.isspace() else symbol for symbol in line]


class _Heads(list[int]):
    """The head of each symbol so far; entry 0 is ROOT itself."""

    def __init__(self) -> None:
        super().__init__([0])

    def add(self) -> int:
        """The number of a new symbol, whose head is not known yet."""
        self.append(0)
        return len(self) - 1


class _LineParser:
    """Recursive descent over one line. Each rule reads what it can and returns the number of its head."""

    def __init__(self, tokens: Sequence[Token], heads: _Heads, place: str, depth: int = 0) -> None:
        self.tokens = tokens
        self.heads = heads
        self.place = place
        self.depth = depth
        self.at = 0
        if depth > DEPTH:
            raise DataError(f"{place}: more than {DEPTH} levels of nesting: split the expression")

    def parse_line(self) -> int:
        """A whole line, or a whole numerator, denominator or exponent."""
        head = self.parse_operation()
        if self.next_token is not None:
            raise self.make_error("does not fit here")
        return head

    def parse_operation(self, rank: int = 0) -> int:
        if rank == len(RANKS):
            return self.parse_juxtaposition()
        left = self.parse_operation(rank + 1)
        while self.next_label in RANKS[rank]:
            operator = self.take()
            self.heads[left] = operator
            self.heads[self.parse_operation(rank + 1)] = operator
            left = operator
        return left

    def parse_juxtaposition(self) -> int:
        """Factors side by side, each the head of the one before it; signs in front depend on the last."""
        signs = []
        while self.next_label in SIGNS:
            signs.append(self.take())
        head = self.parse_factor()
        while isinstance(self.next_token, Fraction | Root) or (self.next_label and self.next_label not in _ENDS):
            follower = self.parse_factor()
            self.heads[head] = follower
            head = follower
        for sign in signs:
            self.heads[sign] = head
        return head

    def parse_factor(self) -> int:
        """A symbol, a bracketed expression, a fraction or a root, with its exponents."""
        if isinstance(self.next_token, Fraction):
            head = self.parse_fraction(self.next_token)
        elif isinstance(self.next_token, Root):
            head = self.parse_root(self.next_token)
        elif self.next_label in OPENING:
            head = self.parse_brackets()
        elif self.next_label and self.next_label not in _ENDS:
            head = self.take()
        else:
            raise self.make_error("stands where a number, a variable or a bracket is due")
        while isinstance(self.next_token, Raised):
            self.heads[self.parse_inner(self.next_token.symbols)] = head
            self.at += 1
        return head

    def parse_brackets(self) -> int:
        self.depth += 1
        if self.depth > DEPTH:
            raise self.make_error(f"opens more than {DEPTH} levels of nesting: split the expression")
        opening = self.take()
        self.heads[self.parse_operation()] = opening
        if self.next_label not in CLOSING:
            raise self.make_error("stands where a bracket must be closed")
        closing = self.take()
        self.heads[opening] = closing
        self.depth -= 1
        return closing

    def parse_fraction(self, fraction: Fraction) -> int:
        above = self.parse_inner(fraction.above)
        bar = self.heads.add()
        self.heads[above] = bar
        self.heads[self.parse_inner(fraction.below)] = bar
        self.at += 1
        return bar

    def parse_root(self, root: Root) -> int:
        index = self.parse_inner(root.index) if root.index else None
        sign = self.heads.add()
        if index is not None:
            self.heads[index] = sign
        self.heads[self.parse_inner(root.under)] = sign
        self.at += 1
        return sign

    def parse_inner(self, tokens: Sequence[Token]) -> int:
        """The head of an expression that is a single token of this line."""
        place = f"{self.place}, column {self.at + 1}, inside"
        return _LineParser(tokens, self.heads, place, self.depth + 1).parse_line()

    @property
    def next_token(self) -> Token | None:
        while self.at < len(self.tokens) and self.tokens[self.at] == "":
            self.at += 1
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    @property
    def next_label(self) -> str:
        """The next symbol; empty at the end and where a structure comes."""
        return self.next_token if isinstance(self.next_token, str) else ""

    def take(self) -> int:
        self.at += 1
        return self.heads.add()

    def make_error(self, what: str) -> DataError:
        match self.next_token:
            case None:
                thing = "the end"
            case str(symbol):
                thing = repr(symbol)
            case other:
                thing = f"a {type(other).__name__.lower()} part"
        return DataError(f"{self.place}, column {self.at + 1}: {thing} {what}")


_ENDS = CLOSING | OPERATORS  # symbols that begin no factor
