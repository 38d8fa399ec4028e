"""Dependency trees of algebra: the head of each symbol.

The head rules follow the example in the paper's appendix:

- `=` heads both sides; the `=` of the first line is the root and heads those of the later lines;
- a binary operator heads both operands; × and / bind before + and −, and operators of equal rank group to
  the left;
- juxtaposed factors are head-final: in `10(x+2)` the 1 depends on the 0 and the 0 on the `)`;
- `)` heads `(`, and `(` heads the head of the expression inside.

The example does not determine these rules: an exponent depends on its base; a fraction bar heads its
numerator and denominator; a prefix sign depends on the head of the next factor. Chained relations (`a=b=c`)
group to the left like other operators, and a line without a relation has the head of its expression. A root
is a factor with the head `√`, which heads the expression under it and the index of the root (the 3 of ∛).
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
SIGNS = frozenset({"+", "-", "−", "±", "\\pm", "\\mp"})  # binary after an operand, otherwise a prefix
FACTORS = frozenset({"×", "÷", "·", "/", "\\times", "\\div", "\\cdot"})
OPERATORS = RELATIONS | SIGNS | FACTORS
RANKS = (RELATIONS, SIGNS, FACTORS)  # from low to high precedence; juxtaposition has the highest
DEPTH = 50  # largest nesting of brackets, fractions and exponents, which limits the recursion


@dataclass(frozen=True)
class Raised:
    """Exponent or index of the factor before it: x² is `"x", Raised("2")`, (a+b)² ends in `")", Raised("2")`.

    Attributes:
        symbols: tokens of the exponent.
        lowered: whether it is an index, which has the head of an exponent but another position on the page.
    """

    symbols: Sequence[Token]
    lowered: bool = False


@dataclass(frozen=True)
class Fraction:
    """Fraction with a bar, in reading order: numerator, bar, denominator."""

    above: Sequence[Token]
    below: Sequence[Token]
    bar: str = "-"


@dataclass(frozen=True)
class Root:
    """Root, in reading order: its index if it has one, `√`, the expression under it."""

    under: Sequence[Token]
    index: Sequence[Token] = ()


Token = str | Raised | Fraction | Root
ROOT_SIGN = "√"
BAR = "―"  # label of a fraction bar on a page, which looks like a minus


def parse_heads(lines: Sequence[str]) -> Array:
    """Return the head of every symbol of a page of text.

    Args:
        lines: lines of algebra, in which each character but a space is a symbol.

    Returns:
        Heads, int [n]: symbol i has the number i + 1, and 0 is ROOT.

    Raises:
        DataError: a line is not algebra.

    Example:
        >>> parse_heads(["x=3"]).tolist()
        [2, 0, 2]
    """
    return parse_expression_heads([_split_symbols(line, row) for row, line in enumerate(lines, 1)])


def parse_expression_heads(lines: Sequence[Sequence[Token]]) -> Array:
    """Return the head of every symbol of a page of tokens.

    Symbols are numbered in reading order: a base before its exponent, a numerator before its bar, an index
    before its `√`.

    Args:
        lines: lines of tokens; a symbol is a character, or a LaTeX name like `\\times`.

    Returns:
        Heads, int [n]: symbol i has the number i + 1, and 0 is ROOT.

    Raises:
        DataError: a line is not algebra.
    """
    heads = _Heads()
    line_heads = [_LineParser(line, heads, f"line {row}").parse_line() for row, line in enumerate(lines, 1)]
    if not line_heads:
        raise DataError("no line to parse: write at least one symbol")
    for line_head in line_heads[1:]:
        heads[line_head] = line_heads[0]
    return np.array(heads[1:], np.int64)


def _split_symbols(line: str, row: int) -> list[str]:
    """Return the characters of a line; a space becomes an empty label, which keeps columns for messages."""
    symbols = OPENING | CLOSING | OPERATORS
    for column, symbol in enumerate(line, 1):
        if not (symbol in symbols or symbol.isspace() or (symbol.isascii() and symbol.isalnum())):
            raise DataError(f"line {row}, column {column}: {symbol!r} is not a symbol of algebra: remove it")
    return ["" if symbol.isspace() else symbol for symbol in line]


class _Heads(list[int]):
    """Heads of the symbols so far, by number; entry 0 is ROOT."""

    def __init__(self) -> None:
        super().__init__([0])

    def add(self) -> int:
        """Add a symbol with an unknown head and return its number."""
        self.append(0)
        return len(self) - 1


class _LineParser:
    """Recursive-descent parser of one line; each rule returns the number of the head of what it reads."""

    def __init__(self, tokens: Sequence[Token], heads: _Heads, location: str, depth: int = 0) -> None:
        self.tokens = tokens
        self.heads = heads
        self.location = location
        self.depth = depth
        self.position = 0
        if depth > DEPTH:
            raise DataError(f"{location}: more than {DEPTH} levels of nesting: split the expression")

    def parse_line(self) -> int:
        """Parse a whole line, numerator, denominator or exponent."""
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
        """Parse juxtaposed factors, each the head of the one before it; prefix signs depend on the last."""
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
        """Parse a symbol, a bracketed expression, a fraction or a root, with its exponents."""
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
            self.position += 1
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
        self.position += 1
        return bar

    def parse_root(self, root: Root) -> int:
        index = self.parse_inner(root.index) if root.index else None
        sign = self.heads.add()
        if index is not None:
            self.heads[index] = sign
        self.heads[self.parse_inner(root.under)] = sign
        self.position += 1
        return sign

    def parse_inner(self, tokens: Sequence[Token]) -> int:
        """Parse an expression that is a single token of this line."""
        location = f"{self.location}, column {self.position + 1}, inside"
        return _LineParser(tokens, self.heads, location, self.depth + 1).parse_line()

    @property
    def next_token(self) -> Token | None:
        while self.position < len(self.tokens) and self.tokens[self.position] == "":
            self.position += 1
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    @property
    def next_label(self) -> str:
        """Return the next symbol; empty at the end or before a structure."""
        return self.next_token if isinstance(self.next_token, str) else ""

    def take(self) -> int:
        self.position += 1
        return self.heads.add()

    def make_error(self, problem: str) -> DataError:
        match self.next_token:
            case None:
                token = "the end"
            case str(symbol):
                token = repr(symbol)
            case other:
                token = f"a {type(other).__name__.lower()} part"
        return DataError(f"{self.location}, column {self.position + 1}: {token} {problem}")


_ENDS = CLOSING | OPERATORS  # symbols that cannot begin a factor
