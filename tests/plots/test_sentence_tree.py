"""The drawing of a sentence holds every arc with its name, and nothing runs into anything else or is cut off."""

import re
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from aggrevated.plots.dependency_arcs import ARC, WRONG, levels_of, pairs_of
from aggrevated.plots.sentence_tree import LABEL, TAG, WORD, Row, draw_sentence, fonts_for, shown, widths_of
from aggrevated.text.generated import generated
from aggrevated.text.reading import ParsedSentence
from aggrevated.text.sentence import Sentence

SENTENCES = {len(sentence): sentence for sentence in generated(2000, 0)}


def parsed(sentence: Sentence, doubt: float | None = None) -> ParsedSentence:
    """The gold tree, more or less doubted."""
    doubts = np.linspace(0, 1, len(sentence)) if doubt is None else np.full(len(sentence), doubt)
    return ParsedSentence(sentence, sentence.heads, sentence.labels, sentence.tags, 1 - doubts, 1 - doubts, 1.0)


def sentence_of(words: str, heads: list[int], label: str) -> Sentence:
    return Sentence(tuple(words.split()), np.array(heads), *[(name,) * len(heads) for name in (label, "NOUN", "N")])


STAR = sentence_of("a b c d e f g h i j", [0, *[1] * 9], "nsubj:pass")
FOREIGN = sentence_of(f"Ελληνικά $x^2$ 東京 \u200bالعربية {'long' * 30} 👍", [2, 0, 2, 3, 2, 5], "obl:tmod")
CROSSED = sentence_of("a b c d e", [3, 4, 0, 3, 1], "compound:prt")


@pytest.mark.parametrize("sentence", [SENTENCES[5], SENTENCES[12], STAR, FOREIGN, CROSSED])
def test_a_tree_has_all_its_arcs_and_nothing_is_cut_off(sentence: Sentence, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_sentence(parsed(sentence), tmp_path / "tree")
    svg = (tmp_path / "tree.svg").read_text()
    heads_of_arrows = re.findall(r"fill: (#(?!ffffff)[0-9a-f]{6}); stroke: \1", svg)
    assert len(heads_of_arrows) == len(sentence)
    assert f"<!-- expected loss {len(sentence) / 2:.2f} of {len(sentence)} words -->" in svg
    assert all(f"<!-- {shown(word)} -->" in svg for word in sentence.words)
    assert svg.count(f"<!-- {sentence.labels[0]} -->") == sentence.labels.count(sentence.labels[0])
    picture = np.asarray(Image.open(tmp_path / "tree.png").convert("L"))
    assert (picture < 250).sum() == (picture[2:-2, 2:-2] < 250).sum()


@pytest.mark.parametrize("sentence", [*(SENTENCES[n] for n in (2, 5, 12, 20, 25, 30)), STAR, FOREIGN, CROSSED])
@pytest.mark.filterwarnings("ignore:Glyph")
def test_no_word_and_no_name_runs_into_another(sentence: Sentence) -> None:
    row = Row.of(parsed(sentence))
    for texts, size in ((row.words, WORD), (row.tags, TAG)):
        half = widths_of(texts, size, row.fonts) / 2
        edges = np.column_stack([row.centres - half, row.centres + half])
        assert edges.min() > 0 and edges.max() < row.width
        assert all(left[1] + 0.1 < right[0] for left, right in pairwise(edges))
    names, levels = widths_of(row.labels, LABEL, row.fonts), levels_of(sentence.heads)
    ends = {n: sorted((row.centres[n - 1], row.centres[head - 1])) for n, head in pairs_of(sentence.heads)}
    spans = [(levels[n], *ends[n], n) for n in ends]
    assert all(end - start > names[n - 1] + 0.15 for _, start, end, n in spans)
    for one, other in pairwise(sorted(spans)):
        assert one[0] != other[0] or one[2] <= other[1]


def test_a_sentence_of_25_words_is_readable_in_a_page() -> None:
    """At 850 pixels, letters are 8 high and more."""
    assert WORD / 72 / Row.of(parsed(SENTENCES[25])).width * 850 > 8


def test_doubt_is_a_colour(tmp_path: Path) -> None:
    for doubt, colour, other in ((0.0, ARC, WRONG), (1.0, WRONG, ARC)):
        draw_sentence(parsed(SENTENCES[5], doubt), tmp_path / "tree")
        svg = (tmp_path / "tree.svg").read_text()
        assert svg.count(colour.lower()) > svg.count(other.lower())


def test_the_same_sentence_is_the_same_file(tmp_path: Path) -> None:
    for name in ("one", "two"):
        draw_sentence(parsed(SENTENCES[5]), tmp_path / name)
    for ending in ("png", "svg"):
        assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()


def test_letters_that_the_usual_font_lacks_are_looked_for() -> None:
    assert fonts_for(frozenset("Łódź")) == ("DejaVu Sans",)
    assert not any(name.startswith("Last Resort") for name in fonts_for(frozenset("a東")))
    assert shown("a\u200bb\x07") == "ab" and shown("a" * 30) == "a" * 23 + "…"
