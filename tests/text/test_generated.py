"""Generated sentences are trees as Universal Dependencies has them, the same for everybody, and no two lists alike."""

from collections.abc import Iterable

import numpy as np
import pytest

from aggrevated.text.generated import LONGEST, Verb, generated, with_s
from aggrevated.text.sentence import Sentence

RELATIONS = """
    acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated expl fixed
    flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct reparandum root vocative xcomp
"""
SUBTYPES = "acl:relcl aux:pass compound:prt nmod:poss nsubj:pass obl:agent obl:tmod"
TAGS = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X"
FINE_TAGS = """
    `` '' , . CC CD DT EX IN JJ MD NN NNP NNS POS PRP PRP$ RB RP TO UH VB VBD VBG VBN VBP VBZ WDT WP WRB
"""


@pytest.fixture(scope="module")
def sentences() -> list[Sentence]:
    return generated(2000, seed=1)


@pytest.fixture(scope="module")
def others() -> list[Sentence]:
    return generated(2000, seed=2)


def tagged(sentences: Iterable[Sentence]) -> list[tuple[str, str]]:
    """Their words with their tags."""
    return [pair for sentence in sentences for pair in zip(sentence.words, sentence.tags, strict=True)]


def above(sentence: Sentence, place: int) -> list[int]:
    """The heads over a word, up to ROOT, or as many as there are words."""
    found = [place]
    while found[-1] and len(found) <= len(sentence) + 1:
        found.append(int(sentence.heads[found[-1] - 1]))
    return found


def crosses(sentence: Sentence) -> bool:
    """Whether two of its arcs cross."""
    arcs = [sorted((place, int(head))) for place, head in enumerate(sentence.heads, start=1)]
    return any(a < c < b < d for a, b in arcs for c, d in arcs)


def test_trees_have_one_root_and_no_cycle(sentences: list[Sentence]) -> None:
    for sentence in sentences:
        assert len(sentence.labels) == len(sentence.tags) == len(sentence.fine_tags) == len(sentence)
        assert sentence.heads.dtype == np.int64 and sentence.heads.shape == (len(sentence),)
        assert [label == "root" for label in sentence.labels] == [head == 0 for head in sentence.heads]
        assert (sentence.heads == 0).sum() == 1
        assert all(above(sentence, place)[-1] == 0 for place in range(1, len(sentence) + 1))


def test_labels_and_tags_are_those_of_universal_dependencies(sentences: list[Sentence]) -> None:
    labels, tags, fine_tags = (
        {one for sentence in sentences for one in getattr(sentence, name)} for name in ("labels", "tags", "fine_tags")
    )
    assert {label.split(":")[0] for label in labels} <= set(RELATIONS.split())
    assert {label for label in labels if ":" in label} == set(SUBTYPES.split())
    assert tags <= set(TAGS.split()) and len(tags) == 15
    assert fine_tags == set(FINE_TAGS.split())


def test_nothing_depends_on_words_that_only_serve_others(sentences: list[Sentence]) -> None:
    leaves = {"aux", "aux:pass", "case", "cc", "cop", "det", "expl", "mark", "punct"}
    for sentence in sentences:
        assert not [head for head in sentence.heads if head and sentence.labels[head - 1] in leaves]


def test_about_one_in_twenty_has_arcs_that_cross(sentences: list[Sentence]) -> None:
    assert 0.02 < np.mean([crosses(sentence) for sentence in sentences]) < 0.08


def test_lengths_are_those_of_sentences(sentences: list[Sentence]) -> None:
    lengths = [len(sentence) for sentence in sentences]
    assert min(lengths) == 2 and 30 < max(lengths) <= LONGEST and 12 < np.mean(lengths) < 14


def test_the_same_seed_says_the_same_and_a_longer_list_begins_with_the_shorter(sentences: list[Sentence]) -> None:
    for one, other in zip(generated(30, seed=1), sentences, strict=False):
        assert one.words == other.words and one.labels == other.labels and (one.heads == other.heads).all()
        assert one.tags == other.tags and one.fine_tags == other.fine_tags


def test_what_the_first_sentences_are_on_every_machine() -> None:
    asked, _, helped = generated(3, seed=0)
    assert " ".join(asked.words) == "Was she seeing Fusivo ?" and asked.heads.tolist() == [3, 3, 0, 3, 3]
    assert asked.labels == ("aux", "nsubj", "root", "obj", "punct")
    assert " ".join(helped.words) == "Mrs Berg helped it after this dinner of Tokanda ."
    assert helped.heads.tolist() == [3, 1, 0, 3, 7, 7, 3, 9, 7, 3]


def test_another_seed_says_something_else(sentences: list[Sentence], others: list[Sentence]) -> None:
    said = {sentence.words for sentence in sentences}
    assert np.mean([sentence.words in said for sentence in others]) < 0.05


def test_some_words_are_new_wherever_one_looks(sentences: list[Sentence], others: list[Sentence]) -> None:
    seen = {word for sentence in sentences for word in sentence.words}
    assert 0.03 < np.mean([word not in seen for sentence in others[:500] for word in sentence.words]) < 0.15


@pytest.mark.parametrize(
    ("ending", "tag"), [("ation", "NOUN"), ("ously", "ADV"), ("izing", "VERB"), ("ated", "VERB"), ("ous", "ADJ")]
)
def test_the_spelling_of_a_new_word_tells_what_it_is(sentences: list[Sentence], ending: str, tag: str) -> None:
    assert {told for word, told in tagged(sentences) if word.endswith(ending)} == {tag}


@pytest.mark.parametrize("word", ["book", "plan", "watch", "that", "to", "after", "open"])
def test_some_words_are_ambiguous(sentences: list[Sentence], others: list[Sentence], word: str) -> None:
    assert len({tag for form, tag in tagged(sentences + others) if form == word}) > 1


@pytest.mark.parametrize(
    ("noun", "label"), [("telescope", "obl"), ("hammer", "obl"), ("hat", "nmod"), ("scar", "nmod")]
)
def test_words_decide_what_a_phrase_belongs_to(
    sentences: list[Sentence], others: list[Sentence], noun: str, label: str
) -> None:
    """Somebody is seen with a telescope, but somebody with a hat is seen."""
    found = {
        sentence.labels[head - 1]
        for sentence in sentences + others
        for word, head in zip(sentence.words, sentence.heads, strict=True)
        if word == "with" and sentence.words[head - 1] == noun
    }
    assert found == {label}


def test_forms_of_verbs_and_nouns() -> None:
    assert [Verb.of("stop").form(ending, "it")[0] for ending in ("VB", "VBP", "VBD", "VBG")] == [
        "stop", "stops", "stopped", "stopping",
    ]  # fmt: skip
    assert [Verb.of("see/saw/seen").form(ending, "they") for ending in ("VBP", "VBD", "VBN", "VBG")] == [
        ("see", "VBP"), ("saw", "VBD"), ("seen", "VBN"), ("seeing", "VBG"),
    ]  # fmt: skip
    assert Verb.of("carry").past == "carried" and Verb.of("pick+up").particle == "up"
    assert [with_s(word) for word in ("story", "box", "church", "key")] == ["stories", "boxes", "churches", "keys"]
