"""Transcripts of trees, against strings that were written by hand."""

import numpy as np
import pytest

from aggrevated.parsing.pages.algebra import Fraction, Raised, Root, parse_expression_heads
from aggrevated_reader.transcript import Transcript


def box(x, y, w=1.0, h=1.0):
    return [x, y, x + w, y + h]


def make_transcript(lines, labels, boxes):
    return Transcript(labels, parse_expression_heads(lines), np.array(boxes, float))


def transcribe_line(line, y=0.0):
    return make_transcript([list(line)], list(line), [box(1.5 * i, y) for i in range(len(line))])


@pytest.mark.parametrize("line", ["a+b=c", "-3x", "10(x+2)=a+b", "a=b=c", "[x-(y-z)]÷2≥{5}", "x"])
def test_transcript_text_of_a_line_is_the_line(line):
    assert transcribe_line(line).text == line


def test_transcript_latex_separates_commands_from_letters():
    assert transcribe_line("a×b≠{c}").latex == "a\\times b\\neq \\{c\\}"


def test_transcript_distinguishes_exponents_from_indices_by_position():
    raised = make_transcript(
        [["x", Raised(["2"]), "+", "1"]], "x2+1", [box(0, 1), box(1.1, 0.4, 0.5, 0.5), box(2, 1), box(3, 1)]
    )
    assert (raised.text, raised.latex) == ("x^2+1", "x^{2}+1")
    lowered = make_transcript(
        [["x", Raised(["n", "+", "1"])]], "xn+1", [box(0, 1), *(box(1.1 + k, 1.7, 0.5, 0.5) for k in range(3))]
    )
    assert (lowered.text, lowered.latex) == ("x_(n+1)", "x_{n+1}")


def test_transcript_brackets_fractions_where_needed():
    tokens = [["2", Fraction(["a", "+", "b"], ["c"], "―"), "y"]]
    boxes = [box(0, 1), box(2, 0), box(3, 0), box(4, 0), box(2, 1.4, 3, 0.1), box(3, 2), box(6, 1)]
    found = make_transcript(tokens, "2a+b―cy", boxes)
    assert (found.text, found.latex) == ("2((a+b)/c)y", "2\\frac{a+b}{c}y")


def test_transcript_brackets_products_in_fractions_and_exponents():
    boxes = [box(0.7, 0), box(0, 1.4, 2.4, 0.1), box(0, 2), box(1.2, 2)]
    assert make_transcript([[Fraction(["1"], ["2", "a"], "―")]], "1―2a", boxes).text == "1/(2a)"
    boxes = [box(0, 1), box(1.1, 0.4, 0.5, 0.5), box(1.7, 0.4, 0.5, 0.5)]
    assert make_transcript([["x", Raised(["2", "n"])]], "x2n", boxes).text == "x^(2n)"
    assert make_transcript([["x", Raised(["1", "0"])]], "x10", boxes).text == "x^10"


def test_transcript_writes_root_indices():
    boxes = [box(0, 1), box(1.2, 0.2, 0.4, 0.4), box(1.4, 0, 3, 2), box(2.5, 0.6), box(5, 1), box(6, 1)]
    found = make_transcript([["2", Root(["x"], ["3"]), "+", "1"]], "23√x+1", boxes)
    assert (found.text, found.latex) == ("2³√x+1", "2\\sqrt[3]{x}+1")


def test_transcript_counts_a_fraction_as_one_line():
    alone = make_transcript([[Fraction(["1"], ["2"], "―")]], "1―2", [box(0, 0), box(-0.5, 1.4, 2, 0.1), box(0, 2)])
    assert alone.text == "1/2" and alone.line_numbers == [1, 1, 1]
    boxes = [
        *(box(1.5 * i, 0) for i in range(5)),
        *(box(1.5 * i, 3) for i in range(3)),
        *(box(4 + 1.5 * i, 6) for i in range(3)),
    ]
    several = make_transcript([list("x+1=2"), list("x=1"), list("y=3")], "x+1=2x=1y=3", boxes)
    assert several.text == "x+1=2\nx=1\ny=3" and several.line_numbers == [1] * 5 + [2] * 3 + [3] * 3


def test_transcript_of_a_wrong_tree_has_all_symbols():
    generator = np.random.default_rng(0)
    for _ in range(200):
        n = int(generator.integers(1, 9))
        labels = list(generator.choice(list("ab1+-=()―√"), n))
        boxes = np.array([box(*generator.uniform(0, 6, 2), *generator.uniform(0.1, 2, 2)) for _ in range(n)])
        found = Transcript(labels, generator.integers(0, n + 1, n), boxes)
        transcribed = [symbol for symbol in found.text.replace("\n", "") if symbol in "ab1=+"]
        assert sorted(transcribed) == sorted(label for label in labels if label in "ab1=+")
        assert len(found.line_numbers) == n


def test_transcript_handles_very_deep_trees():
    n = 5000
    found = Transcript(["a"] * n, np.append(np.arange(2, n + 1), 0), np.array([box(i, 0) for i in range(n)]))
    assert found.text == "a" * n
