"""Sets of equations as a pupil writes them, and the tree of each: which symbol depends on which.

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

from collections.abc import Callable, Sequence
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


def heads(lines: Sequence[str]) -> Array:
    """The head of every symbol of a page, int [n]: number i + 1 belongs to symbol i, 0 is ROOT. Spaces do not count."""
    return heads_of_expression([_symbols(line, row) for row, line in enumerate(lines, 1)])


def heads_of_expression(lines: Sequence[Sequence[Token]]) -> Array:
    """The same for lines of labels: a symbol is a character, or a LaTeX name like `\\times`.

    They are numbered in reading order: a base before its exponent, a numerator before its bar, an index before its `√`.
    """
    found = _Heads()
    tops = [_Reader(line, found, f"line {row}").line() for row, line in enumerate(lines, 1)]
    if not tops:
        raise DataError("there is no line to parse: write at least one symbol")
    for later in tops[1:]:
        found[later] = tops[0]
    return np.array(found[1:], np.int64)


def _symbols(line: str, row: int) -> list[str]:
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


class _Reader:
    """Recursive descent over one line. Each rule reads what it can and returns the number of its head."""

    def __init__(self, tokens: Sequence[Token], heads: _Heads, place: str, depth: int = 0) -> None:
        self.tokens = tokens
        self.heads = heads
        self.place = place
        self.depth = depth
        self.at = 0
        if depth > DEPTH:
            raise DataError(f"{place}: more than {DEPTH} levels of nesting: split the expression")

    def line(self) -> int:
        """A whole line, or a whole numerator, denominator or exponent."""
        head = self.operation()
        if self.next is not None:
            raise self.error("does not fit here")
        return head

    def operation(self, rank: int = 0) -> int:
        if rank == len(RANKS):
            return self.juxtaposition()
        left = self.operation(rank + 1)
        while self.label in RANKS[rank]:
            operator = self.take()
            self.heads[left] = operator
            self.heads[self.operation(rank + 1)] = operator
            left = operator
        return left

    def juxtaposition(self) -> int:
        """Factors side by side, each the head of the one before it; signs in front depend on the last."""
        signs = []
        while self.label in SIGNS:
            signs.append(self.take())
        head = self.factor()
        while isinstance(self.next, Fraction | Root) or (self.label and self.label not in _ENDS):
            follower = self.factor()
            self.heads[head] = follower
            head = follower
        for sign in signs:
            self.heads[sign] = head
        return head

    def factor(self) -> int:
        """A symbol, a bracketed expression, a fraction or a root, with its exponents."""
        if isinstance(self.next, Fraction):
            head = self.fraction(self.next)
        elif isinstance(self.next, Root):
            head = self.root(self.next)
        elif self.label in OPENING:
            head = self.brackets()
        elif self.label and self.label not in _ENDS:
            head = self.take()
        else:
            raise self.error("stands where a number, a variable or a bracket is due")
        while isinstance(self.next, Raised):
            self.heads[self.inner(self.next.symbols)] = head
            self.at += 1
        return head

    def brackets(self) -> int:
        self.depth += 1
        if self.depth > DEPTH:
            raise self.error(f"opens more than {DEPTH} levels of nesting: split the expression")
        opening = self.take()
        self.heads[self.operation()] = opening
        if self.label not in CLOSING:
            raise self.error("stands where a bracket must be closed")
        closing = self.take()
        self.heads[opening] = closing
        self.depth -= 1
        return closing

    def fraction(self, fraction: Fraction) -> int:
        above = self.inner(fraction.above)
        bar = self.heads.add()
        self.heads[above] = bar
        self.heads[self.inner(fraction.below)] = bar
        self.at += 1
        return bar

    def root(self, root: Root) -> int:
        index = self.inner(root.index) if root.index else None
        sign = self.heads.add()
        if index is not None:
            self.heads[index] = sign
        self.heads[self.inner(root.under)] = sign
        self.at += 1
        return sign

    def inner(self, tokens: Sequence[Token]) -> int:
        """The head of an expression that is a single token of this line."""
        place = f"{self.place}, column {self.at + 1}, inside"
        return _Reader(tokens, self.heads, place, self.depth + 1).line()

    @property
    def next(self) -> Token | None:
        while self.at < len(self.tokens) and self.tokens[self.at] == "":
            self.at += 1
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    @property
    def label(self) -> str:
        """The next symbol; empty at the end and where a structure comes."""
        return self.next if isinstance(self.next, str) else ""

    def take(self) -> int:
        self.at += 1
        return self.heads.add()

    def error(self, what: str) -> DataError:
        match self.next:
            case None:
                thing = "the end"
            case str(symbol):
                thing = repr(symbol)
            case other:
                thing = f"a {type(other).__name__.lower()} part"
        return DataError(f"{self.place}, column {self.at + 1}: {thing} {what}")


_ENDS = CLOSING | OPERATORS  # symbols that begin no factor


# The generator: each kind of exercise is a function that returns all lines of its solution.

VARIABLES = "xyabcnzdtmkpeuvwrs"
_WEIGHTS = np.array([8, 4, 4, 4, 3, 3, 3, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1]) / 45
SYMBOLS = (*"0123456789", *VARIABLES, *"+-×/=()")
# symbols on a page
SHORTEST = 3
LONGEST = 30


def random_set(generator: np.random.Generator) -> list[str]:
    """One to three consecutive lines of a pupil's solution, with 3 to 30 symbols in total."""
    while True:
        exercise = EXERCISES[generator.integers(len(EXERCISES))]
        lines = exercise(generator)
        count = min(int(generator.choice([1, 2, 3], p=[0.2, 0.3, 0.5])), len(lines))
        first = int(generator.integers(len(lines) - count + 1))
        chosen = [_swapped(line) if generator.random() < 0.1 else line for line in lines[first : first + count]]
        if SHORTEST <= sum(map(len, chosen)) <= LONGEST:
            return chosen


def _swapped(line: str) -> str:
    left, right = line.split("=")
    return f"{right}={left}"


def _number(generator: np.random.Generator, low: int = 2, high: int = 9) -> int:
    """A whole number in low … high; now and then ten times as large, as exercises are."""
    return int(generator.integers(low, high + 1)) * (10 if generator.random() < 0.12 else 1)


def _signed(generator: np.random.Generator, high: int = 9) -> int:
    return _number(generator, 1, high) * (1 if generator.random() < 0.65 else -1)


def _letters(generator: np.random.Generator, count: int) -> list[str]:
    return [str(v) for v in generator.choice(list(VARIABLES), count, replace=False, p=_WEIGHTS)]


def _term(k: int, variable: str) -> str:
    return {1: "", -1: "-"}.get(k, str(k)) + variable


def _plus(k: int) -> str:
    return f"{k:+d}" if k else ""


def linear(generator: np.random.Generator) -> list[str]:
    """3x+2=11 / 3x=9 / x=3"""
    (x,) = _letters(generator, 1)
    k = _signed(generator)
    b = _signed(generator, 20)
    value = _signed(generator, 12)
    steps = [f"{_term(k, x)}{_plus(b)}={k * value + b}"]
    if generator.random() < 0.4:
        steps.append(f"{_term(k, x)}={k * value + b}{_plus(-b)}")
    if k not in (1, -1) and generator.random() < 0.3:
        return [*steps, f"{_term(k, x)}={k * value}", f"{x}={k * value}/{k}" if k > 0 else f"{x}={value}"]
    return [*steps, *([f"{_term(k, x)}={k * value}"] if k != 1 else []), f"{x}={value}"]


def two_sided(generator: np.random.Generator) -> list[str]:
    """5x+2=3x+8 / 2x=6 / x=3"""
    (x,) = _letters(generator, 1)
    m = _number(generator, 1)
    b = _signed(generator)
    gap = _number(generator)
    value = _signed(generator)
    k = m + gap
    steps = [f"{_term(k, x)}{_plus(b)}={_term(m, x)}{_plus(gap * value + b)}"]
    if generator.random() < 0.4:
        steps.append(f"{_term(k, x)}-{_term(m, x)}={gap * value + b}{_plus(-b)}")
    return [*steps, f"{_term(gap, x)}={gap * value}", f"{x}={value}"]


def collecting(generator: np.random.Generator) -> list[str]:
    """2x+3x-4=6 / 5x=10 / x=2"""
    (x,) = _letters(generator, 1)
    k = _number(generator)
    m = _number(generator, 1)
    b = _signed(generator)
    value = _signed(generator)
    total = (k + m) * value
    return [
        f"{_term(k, x)}+{_term(m, x)}{_plus(b)}={total + b}",
        f"{_term(k + m, x)}{_plus(b)}={total + b}",
        f"{_term(k + m, x)}={total}",
        f"{x}={value}",
    ]


def bracket(generator: np.random.Generator) -> list[str]:
    """4(x-2)=12, then 4x-8=12 / 4x=20 or x-2=3, then x=5; also -(x+2)=5"""
    (x,) = _letters(generator, 1)
    b = _signed(generator)
    value = _signed(generator)
    k = -1 if generator.random() < 0.15 else _number(generator)
    inside = f"({x}{_plus(b)})" if generator.random() < 0.7 else f"({b}+{x})"
    times = "×" if k > 1 and generator.random() < 0.15 else ""
    product = k * (value + b)
    first = f"{_term(k, times)}{inside}={product}"
    if generator.random() < 0.5:
        return [first, f"{_term(k, x)}{_plus(k * b)}={product}", f"{_term(k, x)}={k * value}", f"{x}={value}"]
    return [first, f"{x}{_plus(b)}={value + b}", f"{x}={value + b}{_plus(-b)}", f"{x}={value}"]


def quotient(generator: np.random.Generator) -> list[str]:
    """x/3+2=5 / x/3=3 / x=3×3 / x=9, or (x+2)/3=4 / x+2=12 / x=10"""
    (x,) = _letters(generator, 1)
    k = _number(generator)
    b = _signed(generator)
    value = _number(generator, 1)
    if generator.random() < 0.5:
        return [f"{x}/{k}{_plus(b)}={value + b}", f"{x}/{k}={value}", f"{x}={value}×{k}", f"{x}={value * k}"]
    product = f"{x}{_plus(b)}={k * value}"
    return [f"({x}{_plus(b)})/{k}={value}", product, f"{x}={k * value}{_plus(-b)}", f"{x}={k * value - b}"]


def product(generator: np.random.Generator) -> list[str]:
    """4×x=20 / x=20/4 / x=5"""
    (x,) = _letters(generator, 1)
    k = _number(generator)
    value = _number(generator, 2, 12)
    first = f"{k}×{x}={k * value}" if generator.random() < 0.6 else f"{x}×{k}={k * value}"
    return [first, f"{x}={k * value}/{k}", f"{x}={value}"]


def arithmetic(generator: np.random.Generator) -> list[str]:
    """a=(3+4)×2 / a=7×2 / a=14, and relatives"""
    (a,) = _letters(generator, 1)
    p = _number(generator)
    q = _number(generator)
    r = _number(generator)
    wide = p + q  # the bracket's value
    shapes = [
        [f"{a}=({p}+{q})×{r}", f"{a}={wide}×{r}", f"{a}={wide * r}"],
        [f"{a}={r}({p}+{q})", f"{a}={r}×{wide}", f"{a}={wide * r}"],
        [f"{a}={p}×{q}+{r}", f"{a}={p * q}+{r}", f"{a}={p * q + r}"],
        [f"{a}={p}-{q}×{r}", f"{a}={p}-{q * r}", f"{a}={p - q * r}"],
        [f"{a}={p * q}/{q}-{r}", f"{a}={p}-{r}", f"{a}={p - r}"],
        [f"{a}={r}-({p}-{q})", f"{a}={r}{_plus(q - p)}", f"{a}={r - p + q}"],
        [f"{a}={p}×{q}×{r}", f"{a}={p * q}×{r}", f"{a}={p * q * r}"],
        [f"{r}({p}+{q})={a}+{r}", f"{wide * r}={a}+{r}", f"{a}={wide * r - r}"],
    ]
    return shapes[generator.integers(len(shapes))]


def substitution(generator: np.random.Generator) -> list[str]:
    """y=2x+1 / x=3 / y=7, or x=3 / y=2x+1 / y=2×3+1 / y=7"""
    (x, y) = _letters(generator, 2)
    k = _number(generator)
    b = _signed(generator)
    value = _number(generator, 1)
    rule = f"{y}={_term(k, x)}{_plus(b)}" if generator.random() < 0.6 else f"{y}={k}({x}{_plus(b)})"
    number = f"{y}={k * value + b}" if "(" not in rule else f"{y}={k * (value + b)}"
    worked = f"{y}={k}×{value}{_plus(b)}" if "(" not in rule else f"{y}={k}({value}{_plus(b)})"
    if generator.random() < 0.5:
        return [rule, f"{x}={value}", number]
    return [f"{x}={value}", rule, worked, number]


def two_unknowns(generator: np.random.Generator) -> list[str]:
    """x+y=5 / x-y=1 / x=3, or x+y=5 / y=5-x / x-(5-x)=1"""
    (x, y) = _letters(generator, 2)
    p = _number(generator)
    q = _number(generator)
    if generator.random() < 0.5:
        return [f"{x}+{y}={p + q}", f"{x}-{y}={p - q}", f"2{x}={2 * p}", f"{x}={p}"]
    return [f"{x}-{y}={p - q}", f"{y}={x}{_plus(q - p)}", f"{y}={p}{_plus(q - p)}", f"{y}={q}"]


def given_value(generator: np.random.Generator) -> list[str]:
    """10(x+2)=a+b / a+b=50 / x=3, the shape of the paper's example"""
    (x, a, b) = _letters(generator, 3)
    k = _number(generator)
    p = _signed(generator)
    value = _number(generator, 1)
    total = k * (value + p)
    first = f"{k}({x}{_plus(p)})={a}+{b}"
    other = f"{a}+{b}={total}" if generator.random() < 0.6 else f"{total}={a}+{b}"
    return [first, other, f"{x}={value}"]


def letters_only(generator: np.random.Generator) -> list[str]:
    """ab+ac=d / a(b+c)=d / b+c=d/a, and relatives"""
    a, b, c, d = _letters(generator, 4)
    sign = "+" if generator.random() < 0.7 else "-"
    shapes = [
        [f"{a}{b}{sign}{a}{c}={d}", f"{a}({b}{sign}{c})={d}", f"{b}{sign}{c}={d}/{a}"],
        [f"{a}({b}{sign}{c})={d}", f"{a}{b}{sign}{a}{c}={d}", f"{a}{b}={d}{'-' if sign == '+' else '+'}{a}{c}"],
        [f"{a}+{b}={c}", f"{a}={c}-{b}"],
        [f"{a}/{b}={c}", f"{a}={b}{c}", f"{c}={a}/{b}"],
        [f"{a}×{b}={c}+{d}", f"{a}=({c}+{d})/{b}", f"{b}=({c}+{d})/{a}"],
        [f"({a}+{b})({c}{sign}{d})=0", f"{a}+{b}=0", f"{a}=-{b}"],
        [f"-{a}+{b}={c}", f"-{a}={c}-{b}", f"{a}={b}-{c}"],
        [f"{a}-({b}-{c})={d}", f"{a}-{b}+{c}={d}", f"{a}={b}-{c}+{d}"],
    ]
    return shapes[generator.integers(len(shapes))]


def factored(generator: np.random.Generator) -> list[str]:
    """(x-3)(x+2)=0 / x-3=0 / x=3, or 2x(x-3)=0 / x-3=0 / x=3"""
    (x,) = _letters(generator, 1)
    p = _signed(generator)
    q = _signed(generator)
    first = f"({x}{_plus(-p)})({x}{_plus(-q)})" if generator.random() < 0.6 else f"{abs(q) + 1}{x}({x}{_plus(-p)})"
    return [f"{first}=0", f"{x}{_plus(-p)}=0", f"{x}={p}"]


EXERCISES: tuple[Callable[[np.random.Generator], list[str]], ...] = (
    linear, two_sided, collecting, bracket, quotient, product,
    arithmetic, substitution, two_unknowns, given_value, letters_only, factored,
)  # fmt: skip
