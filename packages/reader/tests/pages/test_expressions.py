"""Generated expressions: they contain all requested structures, and a second derivation gives the same heads."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from aggrevated.parsing.pages.algebra import (
    BAR,
    CLOSING,
    OPENING,
    RANKS,
    ROOT_SIGN,
    SIGNS,
    Fraction,
    Raised,
    Root,
    parse_expression_heads,
)
from aggrevated_reader.pages.batched_rng import BatchedRng, WeightedChoice
from aggrevated_reader.pages.expressions import LONGEST, count_symbols, iter_symbols, sample_lines

PAGES = 400


def make_lines(number, structures=True):
    return sample_lines(BatchedRng(np.random.default_rng(number)), structures)


class SecondDerivation:
    """Second derivation of heads: split a row at its loosest operator, the last of its rank, and recurse."""

    def __init__(self):
        self.heads = []

    def numbered(self, tokens):
        """Return the row as (token, number of its symbol, or its parts with theirs)."""
        row = []
        for token in tokens:
            match token:
                case str():
                    row.append((token, self.new()))
                case Raised(inside):
                    row.append((Raised, self.numbered(inside)))
                case Fraction(above, below):
                    row.append((Fraction, (self.numbered(above), self.new(), self.numbered(below))))
                case Root(under, index):
                    row.append((Root, (self.numbered(index), self.new(), self.numbered(under))))
        return row

    def new(self):
        self.heads.append(0)
        return len(self.heads)

    def depend(self, symbol, head):
        self.heads[symbol - 1] = head

    def head(self, row):
        """Return the head of a row after setting all heads inside of it."""
        for rank in RANKS:
            places = [i for i in find_operators(row) if row[i][0] in rank]
            if places:
                at = places[-1]
                for side in (row[:at], row[at + 1 :]):
                    self.depend(self.head(side), row[at][1])
                return row[at][1]
        return self.side_by_side(row)

    def side_by_side(self, row):
        signs = [number for token, number in row[: count_prefix_signs(row)]]
        found = self.factors(row[count_prefix_signs(row) :])
        for before, after in pairwise(found):
            self.depend(before, after)
        for sign in signs:
            self.depend(sign, found[-1])
        return found[-1]

    def factors(self, row):
        """Set the heads of factors in a row."""
        found = []
        at = 0
        while at < len(row):
            token, part = row[at]
            if token is Raised:
                self.depend(self.head(part), found[-1])
            elif token in (Fraction, Root):
                first, sign, second = part
                for inside in (first, second):
                    if inside:
                        self.depend(self.head(inside), sign)
                found.append(sign)
            elif token in OPENING:
                end = find_closing_bracket(row, at)
                self.depend(self.head(row[at + 1 : end]), part)
                self.depend(part, row[end][1])
                found.append(row[end][1])
                at = end
            else:
                found.append(part)
            at += 1
        return found


def find_closing_bracket(row, at):
    depth = 0
    for place in range(at, len(row)):
        depth += (row[place][0] in OPENING) - (row[place][0] in CLOSING)
        if depth == 0:
            return place
    raise AssertionError("a bracket stays open")


def count_prefix_signs(row):
    return next(i for i, (token, _) in enumerate(row) if token not in SIGNS)


def find_operators(row):
    """Return the positions of binary operators outside of brackets: signs after an operand."""
    depth = 0
    operand = False
    found = []
    for place, (token, _) in enumerate(row):
        depth += (token in OPENING) - (token in CLOSING)
        is_operator = any(token in rank for rank in RANKS)
        if depth == 0 and is_operator and operand:
            found.append(place)
        operand = not is_operator and token not in OPENING
    return found


def derive_heads(lines):
    found = SecondDerivation()
    tops = [found.head(found.numbered(line)) for line in lines]
    for later in tops[1:]:
        found.depend(later, tops[0])
    return found.heads


@pytest.mark.parametrize("structures", [True, False])
def test_heads_of_expression_agree_with_second_derivation(structures):
    for number in range(PAGES):
        lines = make_lines(number, structures)
        assert parse_expression_heads(lines).tolist() == derive_heads(lines), lines


def test_random_lines_respect_length_and_cover_all_symbols():
    seen = Counter()
    rows = Counter()
    for number in range(PAGES):
        lines = make_lines(number)
        assert 1 <= sum(map(count_symbols, lines)) <= LONGEST
        rows[len(lines)] += 1
        seen.update(symbol for line in lines for symbol in iter_symbols(line))
    assert min(rows[1], rows[2], rows[3]) > PAGES / 20
    assert set("0123456789+-×÷±/=<>≤≥≠()[]{}.,!") | {BAR, ROOT_SIGN} <= set(seen)
    assert sum(symbol.isalpha() and symbol.isupper() for symbol in seen) > 15


def test_random_lines_have_enough_chains_of_relations():
    relations = RANKS[0]
    lines = [line for number in range(PAGES) for line in make_lines(number)]
    chains = [line for line in lines if sum(token in relations for token in line if isinstance(token, str)) > 1]
    assert len(chains) > len(lines) / 20


def test_random_lines_without_structures_have_none():
    assert all(
        isinstance(token, str) for number in range(PAGES) for line in make_lines(number, False) for token in line
    )


def test_batched_rng_follows_weights_and_seed():
    dice, again = (BatchedRng(np.random.default_rng(5)) for _ in range(2))
    weighed = WeightedChoice.of({"a": 3.0, "b": 1.0})
    thrown = [dice.weigh(weighed) for _ in range(4000)]
    assert thrown == [again.weigh(weighed) for _ in range(4000)]
    assert abs(thrown.count("a") / 4000 - 0.75) < 5 * np.sqrt(0.75 * 0.25 / 4000)
    assert {dice.count(2, 4) for _ in range(200)} == {2, 3, 4}
    spread = np.array([dice.sample_deviation() for _ in range(4000)])
    assert abs(spread.mean()) < 0.1 and abs(spread.std() - 1) < 0.1 and np.abs(spread).max() <= 3
