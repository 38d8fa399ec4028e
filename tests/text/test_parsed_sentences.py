"""What is written of a parse."""

import numpy as np

from aggrevated.text.conllu import ConlluReader
from aggrevated.text.reading import ParsedSentence, named, until_enough
from aggrevated.text.sentence import Sentence


def parsed(sentence):
    n = len(sentence)
    return ParsedSentence(
        sentence, np.array([2, 0, 2])[:n], ("det", "root", "obj")[:n], ("DET", "VERB", "NOUN")[:n],
        np.array([0.9, 0.8, 0.7])[:n], np.array([0.9, 0.5, 0.25])[:n], 0.6,
    )  # fmt: skip


def test_tags_are_filled_in_where_there_are_none_and_all_else_is_kept():
    lines = [
        b"# sent_id = a\n",
        b"1\tthe\tthe\t_\tDT\t_\t_\t_\t_\tA=1\n",
        b"2\truns\trun\tNOUN\t_\t_\t_\t_\t_\t_\n",
        b"\n",
    ]
    (sentence,) = ConlluReader(lines, trees=False)
    rows = parsed(sentence).conllu().splitlines()
    assert rows[0] == "# sent_id = a" and rows[1] == "# expected_loss = 0.600"
    assert rows[3] == "1\tthe\tthe\tDET\tDT\t_\t2\tdet\t_\tA=1|ExpectedLoss=0.100"
    assert rows[4] == "2\truns\trun\tNOUN\t_\t_\t0\troot\t_\tExpectedLoss=0.500"


def test_plain_text_gets_all_columns():
    found = parsed(Sentence.of(("a", "b", "c")))
    assert found.expected_loss == 0.1 + 0.5 + 0.75
    assert "3\tc\t_\tNOUN\t_\t_\t2\tobj\t_\tExpectedLoss=0.750" in found.conllu()
    facts = found.facts()
    assert facts["text"] == "a b c" and facts["words"][2]["head"] == 2 and facts["words"][2]["arc_confidence"] == 0.25


def test_classes_without_a_name_are_unknown():
    assert named(np.array([1, 5]), ("x", "y")) == ("y", "_")


def test_so_many_words_are_waited_for_and_no_more():
    sentences = iter([Sentence.of(("w",) * 400) for _ in range(40)])
    assert len(list(until_enough(sentences))) == 15 and len(list(sentences)) == 25
