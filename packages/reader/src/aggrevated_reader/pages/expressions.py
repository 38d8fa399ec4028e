"""Random expressions as tokens of `algebra`, more varied than those of `aggrevated.parsing.pages.exercises`.

They have letters, sums and products of numbers, relations at the end of a line, chains of relations,
functions with arguments, three kinds of brackets, and decimals. With structures, they also have exponents,
indices, fractions and roots, nested to a modest depth. They need not be true, because the head rules do not
depend on that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from aggrevated.parsing.pages.algebra import BAR, ROOT_SIGN, Fraction, Raised, Root, Token
from aggrevated.parsing.pages.exercises import sample_solution
from aggrevated_reader.pages.batched_rng import BatchedRng, WeightedChoice

LONGEST = 30  # maximum number of symbols on a page
DEEPEST = 2  # maximum depth of nested structures

SMALL = WeightedChoice.of(
    dict(zip("xyabncztmdpkiefgrhuqvjslwo", (30, 15, 15, 13, 8, 8, 7, 6, 6, 6, 5, 5, 5, *(4,) * 13), strict=True))
)
CAPITAL = WeightedChoice.of(dict.fromkeys("XYABCEFGHILMNPRSTV", 4.0) | dict.fromkeys("DJKOQUWZ", 1.5))
GREEK = WeightedChoice.of({"α": 3, "β": 3, "π": 4, "θ": 3, "γ": 2, "σ": 2, "λ": 2, "μ": 1, "Δ": 2, "ω": 1, "∞": 1})
FUNCTIONS = WeightedChoice.of(
    {"f": 6, "g": 3, "h": 2, "F": 3, "G": 2, "H": 1, "P": 1, "p": 1, "V": 1, "y": 1, "d": 1, "a": 1}
)
WORDS = WeightedChoice.of({"sin": 4, "cos": 4, "tan": 2, "log": 3, "lim": 1})
RELATIONS = WeightedChoice.of({"=": 10, "≤": 2.5, "≥": 2.5, "≠": 2.5, "<": 2, ">": 2})
SIGNS = WeightedChoice.of({"+": 10, "-": 10, "±": 3.5})
TIMES = WeightedChoice.of({"×": 6, "/": 4.5, "÷": 3.5, "·": 1})
BRACKETS = WeightedChoice.of({("(", ")"): 10, ("[", "]"): 3, ("{", "}"): 1})
DIGITS = WeightedChoice.of(dict(zip("1234567890", (16, 11, 10, 9, 9, 8, 8, 8, 8, 7), strict=True)))


@dataclass(frozen=True)
class Manner:
    """Composition of the expressions of one page, as probabilities between 0 and 1."""

    letters: float  # of operands that are letters
    capitals: float  # of letters that are capitals
    greek: float  # of letters that are Greek
    long_numbers: float  # of digits that another digit follows
    terms: float  # of terms that another term follows
    products: float  # of factors that another factor follows, with a sign between them
    side_by_side: float  # of factors that another factor follows, without a sign between them
    brackets: float  # of factors that are in brackets
    relations: float  # of lines that have a relation
    chains: float  # of relations that another relation follows
    prefixes: float  # of sums that begin with a sign
    functions: float  # of operands that are functions
    decimals: float  # of numbers that are decimals
    rarities: float  # of factors such as 5!, …, several arguments
    structures: float  # of factors that have an exponent, or are a fraction or a root


def sample_manner(dice: BatchedRng, structures: bool) -> Manner:
    """Sample the composition of one page."""
    letters = dice.pick((0.0, 0.05, 0.3, 0.6, 0.9, 1.0))
    return Manner(
        letters=letters,
        capitals=dice.pick((0.0, 0.1, 0.3, 0.8)),
        greek=dice.pick((0.0, 0.0, 0.0, 0.1)),
        long_numbers=dice.pick((0.1, 0.3, 0.6)),
        terms=dice.uniform(0.1, 0.6),
        products=dice.uniform(0.0, 0.35) * (1.3 - letters),
        side_by_side=dice.uniform(0.1, 0.5) * (0.15 + letters),
        brackets=dice.pick((0.0, 0.1, 0.25)),
        relations=dice.pick((0.2, 0.6, 0.95)),
        chains=dice.pick((0.0, 0.2, 0.7)),
        prefixes=dice.pick((0.03, 0.1, 0.4)),
        functions=dice.pick((0.0, 0.0, 0.2)),
        decimals=dice.pick((0.0, 0.0, 0.3)),
        rarities=dice.pick((0.0, 0.02, 0.1)),
        structures=dice.pick((0.1, 0.3, 0.5, 0.8)) if structures else 0.0,
    )


def sample_arithmetic_manner(dice: BatchedRng) -> Manner:
    """Sample the composition of a page of arithmetic: numbers, four operations, nested brackets."""
    return replace(
        sample_manner(dice, structures=False),
        letters=0.0,
        long_numbers=dice.uniform(0.3, 0.7),
        terms=dice.uniform(0.2, 0.5),
        products=dice.uniform(0.2, 0.5),
        side_by_side=0.0,
        brackets=dice.uniform(0.2, 0.45),
        relations=dice.uniform(0.2, 1.0),
        rarities=0.0,
    )


def sample_polynomial_manner(dice: BatchedRng) -> Manner:
    """Sample the composition of a page of long sums of letters with exponents or fractions."""
    return replace(
        sample_manner(dice, structures=True),
        letters=dice.uniform(0.5, 0.95),
        capitals=0.05,
        terms=dice.uniform(0.5, 0.75),
        side_by_side=dice.uniform(0.2, 0.5),
        structures=dice.uniform(0.3, 0.7),
    )


def sample_lines(dice: BatchedRng, structures: bool = True) -> list[list[Token]]:
    """Sample the lines of one page: one to three lines with at most 30 symbols in all."""
    if dice.sample_bool(0.15):
        return [list(line) for line in sample_solution(dice.generator)]
    count = dice.pick((1, 1, 1, 2, 3))
    shortest = 3
    longest = dice.pick((5, 8, 14, 22, LONGEST, LONGEST))
    if structures and count == 1 and dice.sample_bool(0.15):
        shortest = 1  # for example a letter or a decimal
    elif dice.sample_bool(0.6):
        shortest = 3 + longest // 4
    of_page = sample_page_manner(dice, structures)
    while True:
        writes = _Sentence(dice, of_page, longest * 1.2)
        lines = [writes.sample_line() for _ in range(count)]
        if shortest <= sum(map(count_symbols, lines)) <= longest and (
            count == 1 or all(count_symbols(line) > 2 for line in lines)
        ):
            return lines
        of_page = sample_page_manner(dice, structures)
        count = max(1, count - dice.count(0, 1))


def sample_page_manner(dice: BatchedRng, structures: bool) -> Manner:
    """Sample an arithmetic, a polynomial or a general composition."""
    at = dice.sample_fraction()
    if at < 0.2:
        return sample_arithmetic_manner(dice)
    return sample_polynomial_manner(dice) if structures and at < 0.4 else sample_manner(dice, structures)


def count_symbols(tokens: Sequence[Token]) -> int:
    """Return the number of symbols of the tokens."""
    return sum(1 for _ in iter_symbols(tokens))


def iter_symbols(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the symbols in reading order, with the bars of fractions and the signs of roots."""
    for token in tokens:
        match token:
            case str():
                yield token
            case Raised(inside):
                yield from iter_symbols(inside)
            case Fraction(above, below):
                yield from iter_symbols(above)
                yield BAR
                yield from iter_symbols(below)
            case Root(under, index):
                yield from iter_symbols(index)
                yield ROOT_SIGN
                yield from iter_symbols(under)


class _Sentence:
    """Random grammar, in which each rule returns tokens; `left` is the number of symbols that still fit."""

    def __init__(self, dice: BatchedRng, manner: Manner, room: float) -> None:
        self.dice = dice
        self.manner = manner
        self.left = room

    def sample_line(self) -> list[Token]:
        """Sample one side, or several sides with relations between them."""
        dice = self.dice
        if dice.sample_bool(self.manner.rarities):
            return self.sample_unusual_line()
        line = self.sample_sum(0) if not dice.sample_bool(self.manner.chains / 2) else self.sample_operand(0)
        more = self.manner.relations
        while dice.sample_bool(more) and self.left > 0:
            short = dice.sample_bool(0.25 + self.manner.chains / 2)  # a=b=c rather than a chain of sums
            line += [dice.weigh(RELATIONS), *(self.sample_operand(0) if short else self.sample_sum(0))]
            more = self.manner.chains
        return line

    def sample_unusual_line(self) -> list[Token]:
        dice = self.dice
        dots = ["."] * 3
        match dice.count(0, 3):
            case 0:
                return [*dots, dice.weigh(SIGNS), *self.sample_operand(0)]
            case 1:
                return [*self.sample_brackets(self.sample_brackets(self.sample_operand(1)))]
            case 2:
                return [dice.weigh(FUNCTIONS), *self.sample_arguments(), dice.weigh(RELATIONS), *self.sample_sum(0)]
            case _:
                return [*self.sample_operand(0), dice.weigh(SIGNS), *dots, dice.weigh(SIGNS), *self.sample_operand(0)]

    def sample_sum(self, depth: int) -> list[Token]:
        """Sample terms with signs between them, and optionally one in front."""
        dice = self.dice
        tokens: list[Token] = (
            ["-" if dice.sample_bool(0.8) else dice.weigh(SIGNS)] if dice.sample_bool(self.manner.prefixes) else []
        )
        tokens += self.sample_term(depth)
        while self.left > 0 and dice.sample_bool(self.manner.terms):
            tokens += [dice.weigh(SIGNS), *self.sample_term(depth)]
        return tokens

    def sample_term(self, depth: int) -> list[Token]:
        """Sample factors, side by side or with × ÷ / · between them."""
        dice = self.dice
        manner = self.manner
        tokens = self.sample_factor(depth)
        while self.left > 0:
            at = dice.sample_fraction() - manner.products
            if at < 0:
                tokens += [dice.weigh(TIMES), *self.sample_factor(depth)]
            elif at < manner.side_by_side:
                tokens += self.sample_factor(depth, after_another=True)
            else:
                break
        return tokens

    def sample_factor(self, depth: int, after_another: bool = False) -> list[Token]:
        """Sample a factor; after another factor it is not a number, which would only extend that one."""
        dice = self.dice
        manner = self.manner
        if depth < DEEPEST and dice.sample_bool(manner.structures):
            return self.sample_structure(depth)
        if depth < 3 and dice.sample_bool(manner.brackets * (2.0 if after_another else 1.0)):
            return self.sample_brackets(self.sample_sum(depth + 1))
        return self.sample_letter() if after_another else self.sample_operand(depth)

    def sample_operand(self, depth: int) -> list[Token]:
        dice = self.dice
        manner = self.manner
        if dice.sample_bool(manner.functions):
            return self.sample_function()
        if dice.sample_bool(manner.letters):
            return self.sample_letter()
        return self.sample_number()

    def sample_function(self) -> list[Token]:
        """Sample f(x), sin x or sin(x); a word is one symbol, or one symbol for each letter."""
        dice = self.dice
        if not dice.sample_bool(0.2):
            return [dice.weigh(FUNCTIONS), *self.sample_arguments()]
        word = dice.weigh(WORDS)
        name: list[Token] = [word] if dice.sample_bool(0.5) else list(word)
        return name + (self.sample_letter() if dice.sample_bool(0.6) else self.sample_arguments())

    def sample_letter(self) -> list[Token]:
        dice = self.dice
        manner = self.manner
        self.left -= 1
        if dice.sample_bool(manner.greek):
            return [dice.weigh(GREEK)]
        return [dice.weigh(CAPITAL if dice.sample_bool(manner.capitals) else SMALL)]

    def sample_number(self) -> list[Token]:
        """Sample digits, without a leading zero except before a decimal point."""
        dice = self.dice
        manner = self.manner
        digits: list[Token] = [dice.weigh(DIGITS)]
        while len(digits) < 5 and dice.sample_bool(manner.long_numbers):
            digits.append(dice.weigh(DIGITS))
        if dice.sample_bool(manner.decimals):
            digits += [".", dice.weigh(DIGITS)]
        elif dice.sample_bool(manner.rarities):
            digits.append("!")
        elif digits[0] == "0":
            digits = ["0"]
        self.left -= len(digits)
        return digits

    def sample_arguments(self) -> list[Token]:
        """Sample (x), (x,y) or (x+1)."""
        dice = self.dice
        inside = self.sample_letter() if dice.sample_bool(0.6) else self.sample_sum(2)
        while dice.sample_bool(0.3 if self.manner.rarities else 0.0):
            inside = [*inside, ",", *self.sample_operand(3)]
            self.left -= 1
        return self.sample_brackets(inside)

    def sample_brackets(self, inside: list[Token]) -> list[Token]:
        opening, closing = self.dice.weigh(BRACKETS)
        self.left -= 2
        return [opening, *inside, closing]

    def sample_structure(self, depth: int) -> list[Token]:
        """Sample a power, something with an index, a fraction or a root."""
        dice = self.dice
        at = dice.sample_fraction()
        if at < 0.45:
            return [*self.sample_base(depth), Raised(self.sample_small_part(depth))]
        if at < 0.53:
            return self.sample_indexed(depth)
        self.left -= 1
        if at < 0.89:
            return [Fraction(self.sample_part(depth), self.sample_part(depth), BAR)]
        index = [dice.weigh(DIGITS)] if dice.sample_bool(0.2) else []
        return [Root(self.sample_part(depth), index)]

    def sample_base(self, depth: int) -> list[Token]:
        dice = self.dice
        if depth < 2 and dice.sample_bool(0.2):
            return self.sample_brackets(self.sample_sum(depth + 1))
        return self.sample_letter() if dice.sample_bool(0.4 + 0.6 * self.manner.letters) else self.sample_number()

    def sample_indexed(self, depth: int) -> list[Token]:
        scripts = [Raised(self.sample_small_part(depth + 1), lowered=True)]
        if self.dice.sample_bool(0.2):
            scripts.append(Raised(self.sample_small_part(depth + 1)))
        return [*self.sample_letter(), *scripts]

    def sample_small_part(self, depth: int) -> list[Token]:
        """Sample an exponent or an index: mostly one symbol."""
        dice = self.dice
        self.left -= 1
        if dice.sample_bool(0.55):
            return [dice.pick("2232n2345")]
        if dice.sample_bool(0.6):
            return self.sample_operand(DEEPEST)
        return self.sample_sum(depth + 1)

    def sample_part(self, depth: int) -> list[Token]:
        """Sample a numerator, denominator or radicand."""
        return self.sample_sum(depth + 1) if self.dice.sample_bool(0.55) else self.sample_operand(depth + 1)
