import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggrevated.core.errors import DataError
from aggrevated.parsing.pages.algebra import Fraction, Raised, Root, parse_expression_heads, parse_heads
from helpers.handwriting import is_projective

APPENDIX = [2, 7, 7, 5, 3, 5, 8, 0, 10, 8, 10, 13, 15, 13, 8, 15, 18, 8, 18]


@pytest.mark.parametrize("page", ["10(x+2)=a+b / c+d=e / x=3", "3x(2+1)=x+8 / x+8=9 / x=1"])
def test_heads_of_both_appendix_readings_match_the_paper(page):
    assert parse_heads(page.split(" / ")).tolist() == APPENDIX


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a-b-c", [2, 4, 2, 0, 4]),  # operators of equal rank group to the left
        ("a+b×c", [2, 0, 4, 2, 4]),  # × before +
        ("a×b+c", [2, 4, 2, 0, 4]),
        ("a/b×c", [2, 4, 2, 0, 4]),
        ("2a×b", [2, 3, 0, 3]),  # side by side before ×
        ("12x", [2, 3, 0]),  # head-final
        ("(a)(b)", [3, 1, 6, 6, 4, 0]),  # `)` heads `(`, the head of the first bracket is the second
        ("-x=3", [2, 3, 0, 3]),  # a prefix sign depends on what follows
        ("-3x×2", [3, 3, 4, 0, 4]),  # … on the head of the factor, not of the product
        ("a=-b", [2, 0, 4, 2]),
        ("2×-3", [2, 0, 4, 2]),
        ("a=b=c", [2, 4, 2, 0, 4]),
        ("a + b", [2, 0, 2]),  # spaces are ignored
    ],
)
def test_heads_follow_each_grammar_rule(line, expected):
    assert parse_heads([line]).tolist() == expected


def test_heads_of_exponents_and_fractions():
    assert parse_expression_heads([["2", "x", Raised("2"), "y"]]).tolist() == [2, 4, 2, 0]
    assert parse_expression_heads([["(", "a", ")", Raised("12")]]).tolist() == [3, 1, 0, 5, 3]
    line = ["x", "=", Fraction(["a", "+", "1"], ["2", Raised("n")])]
    assert parse_expression_heads([line]).tolist() == [2, 0, 4, 6, 4, 2, 6, 7]


def test_heads_of_roots_and_their_indices():
    assert parse_expression_heads([["2", Root(["a", "+", "b"])]]).tolist() == [2, 0, 4, 2, 4]
    assert parse_expression_heads([[Root("x", "3"), "y"]]).tolist() == [2, 4, 2, 0]  # the index comes before the sign
    assert parse_expression_heads([["-", Root("x"), Raised("2"), "=", "1"]]).tolist() == [2, 5, 2, 2, 0, 5]
    with pytest.raises(DataError, match="line 1, column 1, inside, column 1: the end"):
        parse_expression_heads([[Root([])]])


def test_heads_accept_latex_names_as_symbols():
    assert parse_expression_heads([["a", "\\times", "b", "\\leq", "\\pm", "c"]]).tolist() == [2, 4, 2, 0, 6, 4]


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        (["x=3", "x+=3"], "line 2, column 3"),
        (["(x+2"], "line 1, column 5: the end"),
        (["x)"], "line 1, column 2: '\\)'"),
        (["()"], "line 1, column 2"),
        (["x=1", ""], "line 2, column 1: the end"),
        (["x?1"], "line 1, column 2: '\\?'"),
        (["x=²"], "line 1, column 3"),
        (["×2"], "line 1, column 1"),
        (["(" * 10_000], "line 1, column 51"),
        ([], "no line"),
    ],
)
def test_heads_error_names_line_and_column(lines, place):
    with pytest.raises(DataError, match=place):
        parse_heads(lines)


def test_heads_of_expression_error_names_invalid_structure():
    with pytest.raises(DataError, match="line 1, column 2, inside, column 1: the end"):
        parse_expression_heads([["x", Raised([])]])
    with pytest.raises(DataError, match="line 1, column 1: a raised part"):
        parse_expression_heads([[Raised("2"), "x"]])
    deep = ["x"]
    for _ in range(1000):
        deep = [Fraction(deep, ["2"])]
    with pytest.raises(DataError, match="levels of nesting"):
        parse_expression_heads([deep])


@given(st.lists(st.text("1x+-×/=()", min_size=1, max_size=9), min_size=1, max_size=3))
@settings(max_examples=300, deadline=None)
def test_heads_of_any_text_are_projective_or_raise_data_error(lines):
    try:
        result = parse_heads(lines)
    except DataError:
        return
    assert result.shape == (sum(map(len, lines)),) and is_projective(result)


def test_is_projective_rejects_crossing_arcs_cycles_and_two_roots():
    assert is_projective(np.array([2, 0, 2]))
    assert not is_projective(np.array([3, 4, 0, 3]))  # 1 – 3 crosses 2 – 4
    assert not is_projective(np.array([2, 1, 0]))
    assert not is_projective(np.array([0, 0]))
    assert not is_projective(np.array([3, 0, 2]))  # 1 – 3 crosses ROOT – 2
