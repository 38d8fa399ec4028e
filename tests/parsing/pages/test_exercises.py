"""Generated exercises: short, projective, deterministic and mathematically consistent."""

import numpy as np
import pytest

from aggrevated.parsing.pages.algebra import parse_heads
from aggrevated.parsing.pages.exercises import EXERCISES, SYMBOLS, sample_solution
from helpers.handwriting import is_projective


def test_random_set_gives_short_projective_trees_of_many_shapes():
    generator = np.random.default_rng(0)
    sets = [sample_solution(generator) for _ in range(1000)]
    for lines in sets:
        n = sum(map(len, lines))
        result = parse_heads(lines)
        assert 1 <= len(lines) <= 3 and 3 <= n <= 30 and result.shape == (n,) and is_projective(result), lines
    assert {len(lines) for lines in sets} == {1, 2, 3}
    assert {symbol for lines in sets for line in lines for symbol in line} == set(SYMBOLS)
    assert len({tuple(parse_heads(lines)) for lines in sets}) > 400  # trees, not only strings, differ


def test_random_set_is_deterministic_per_seed():
    first, second = (np.random.default_rng(7) for _ in range(2))
    assert [sample_solution(first) for _ in range(20)] == [sample_solution(second) for _ in range(20)]


def value(expression, unknowns):
    """Return the value of a generated expression, with its implicit multiplications written out for Python."""
    python = ""
    for before, symbol in zip(" " + expression, expression, strict=False):
        is_product = (before.isalnum() or before == ")") and (symbol.isalpha() or symbol == "(")
        python += ("*" if is_product else "") + {"×": "*"}.get(symbol, symbol)
    return eval(python, {}, unknowns)


@pytest.mark.parametrize(
    "exercise", [e for e in EXERCISES if e.__name__ not in ("sample_letters_only", "sample_given_value")]
)
def test_random_set_lines_are_mathematically_consistent(exercise):
    """The solutions in the last lines (x=3) satisfy every line, except the second root of a product."""
    generator = np.random.default_rng(3)
    for _ in range(50):
        lines = exercise(generator)
        known = {}
        for line in reversed(lines):
            left, right = line.split("=")
            if left.isalpha() and not any(symbol.isalpha() for symbol in right):
                known.setdefault(left, value(right, {}))
        for line in lines:
            left, right = line.split("=")
            if all(symbol in known for symbol in line if symbol.isalpha()):
                assert value(left, known) == pytest.approx(value(right, known)), lines
        assert known, lines
