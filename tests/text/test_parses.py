"""Parses: trees with one root, blocks that change nothing, and how far sureness can be trusted."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated.text.generated import generated
from aggrevated.text.library import Library, Split, corrupted
from aggrevated.text.parses import in_blocks, parsed, whole
from aggrevated.text.policy import SentencePolicy
from aggrevated.text.projective import is_projective, tree_fault
from aggrevated.text.scoring import Judge, correct, joined, judged, reached, score
from problems import randomise

SENTENCES = tuple(generated(40, seed=5))
LIBRARY = Library.of(Split(SENTENCES[:20], SENTENCES[20:], ()))


def a_policy(seed=2, system="arc-eager"):
    policy = SentencePolicy(SYSTEMS[system], hidden=6, word=5, rows=64, width=10)
    policy.with_names(*LIBRARY.names)
    LIBRARY.show(policy)
    policy.encoder.meet(LIBRARY.shown, LIBRARY.shown.places(LIBRARY.train))
    return randomise(policy, seed=seed, scale=0.4)


def test_whole_trees_have_one_root_and_everybody_a_head():
    heads = np.array([[0, 0, 2, -1], [-1, 1, -1, 9], [2, 0, -1, 0], [2, 3, 0, 3]])
    sure = np.array([[0.2, 0.9, 0.5, 0.5], [0.3, 0.5, 0.4, 0.5], [0.5, 0.6, 0.5, 0.7], [1.0, 1, 1, 1]])
    found = whole(heads, sure, np.array([4, 3, 4, 4]))
    assert found[0].tolist() == [2, 0, 2, 2]  # the surer root; who has no head depends on it
    assert found[1, :3].tolist() == [3, 1, 0]  # no root at all: the surest of those without a head
    assert found[2].tolist() == [2, 4, 4, 0]
    assert found[3].tolist() == [2, 3, 0, 3]


@pytest.mark.parametrize("system", SYSTEMS)
def test_parses_are_trees_however_bad_the_policy(system):
    policy = a_policy(system=system)
    every = joined([said for said, _, _ in parsed(policy, LIBRARY.corpus, np.arange(40))])
    assert sorted(every.sentences.tolist()) == list(range(40))
    for heads in np.split(every.heads, np.cumsum(every.lengths)[:-1]):
        assert tree_fault(heads) is None
    assert ((every.head_right >= 0) & (every.head_right <= 1) & (every.arc_right <= every.head_right)).all()
    assert (every.wrong_heads <= every.lengths).all() and (every.log_likelihood <= 0).all()


def test_blocks_hold_every_sentence_once_and_are_bounded():
    lengths = np.random.default_rng(0).integers(1, 400, 500)
    blocks = list(in_blocks(lengths, np.arange(500)))
    assert sorted(np.concatenate(blocks).tolist()) == list(range(500))
    assert all(len(block) == 1 or len(block) * lengths[block].max() <= 2048 for block in blocks)


def test_a_parse_does_not_hang_on_what_is_parsed_beside_it():
    policy = a_policy()
    every = joined([said for said, _, _ in parsed(policy, LIBRARY.corpus, np.arange(40))])
    found = dict(zip(every.sentences.tolist(), np.split(every.heads, np.cumsum(every.lengths)[:-1]), strict=True))
    for number in range(0, 40, 7):
        alone = joined([said for said, _, _ in parsed(policy, LIBRARY.corpus, np.array([number]))])
        assert np.array_equal(alone.heads, found[number])


def test_scores_of_known_parses():
    policy = a_policy()
    found = judged(policy, LIBRARY, LIBRARY.validation)
    places = LIBRARY.shown.places(found.parsed.sentences)
    right = sum(a == b for a, b in zip(found.parsed.heads, LIBRARY.heads[places], strict=True))
    assert found.uas == right / len(places) and found.las <= found.uas
    told = score(policy, LIBRARY, LIBRARY.validation)
    assert told.uas == found.uas and told.test_return == told.las == found.las
    assert told.words == len(places) and told.sentences == 20
    gold = np.concatenate([LIBRARY.sentences[number].labels for number in found.parsed.sentences])
    counted = gold != "punct"
    assert told.uas_without_punctuation == pytest.approx(found.head_right[counted].mean())


def test_the_expert_reaches_all_but_what_is_not_projective():
    share = reached(LIBRARY, LIBRARY.validation).sum() / LIBRARY.shown.lengths[LIBRARY.validation].sum()
    projective = [is_projective(LIBRARY.sentences[number].heads) for number in LIBRARY.validation]
    assert bool(share == 1.0) == all(projective)


def test_correcting_makes_sureness_the_share_of_right_heads():
    policy = a_policy()
    correct(policy, LIBRARY, judged(policy, LIBRARY, LIBRARY.validation))
    found = judged(policy, LIBRARY, LIBRARY.validation)
    sure, right = found.choices.arcs
    assert sure.mean() == pytest.approx(right.mean(), abs=0.02)
    left = found.parsed.left
    assert found.parsed.head_right[left].mean() == pytest.approx(found.head_right[left].mean(), abs=0.1)
    expected, lost = found.choices.losses
    assert expected.sum() == pytest.approx(lost.sum(), rel=0.05)


def test_what_the_judge_saw_is_not_parsed_again():
    policy, judge = a_policy(), Judge(LIBRARY)
    told = judge(policy)
    seen = judge._latest
    assert judge.monitor(policy)["validation_uas"] >= float(told) and judge._latest is seen
    with torch.no_grad():
        policy.readout.bias += torch.arange(len(policy.readout.bias))
    judge.monitor(policy)
    assert judge._latest is not seen


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_poor_expert_is_wrong_in_about_that_share(share):
    found = corrupted(LIBRARY.corpus, share, seed=1)
    words = LIBRARY.corpus.gold[:, 1:] >= 0
    wrong = (found.gold[:, 1:] != LIBRARY.corpus.gold[:, 1:])[words].mean()
    assert wrong == pytest.approx(share, abs=0.08)
    for heads, n in zip(found.gold, found.lengths, strict=True):
        assert tree_fault(heads[1 : n + 1]) is None and is_projective(heads[1 : n + 1])


def test_who_learns_from_a_poor_expert_hears_nothing_of_the_gold_heads():
    """But what it is chosen by, and how sure it may be, is told by them."""
    heads = LIBRARY.heads_by(corrupted(LIBRARY.corpus, 0.3, seed=1))
    differ = heads != LIBRARY.heads
    learned = LIBRARY.shown.places(LIBRARY.train)
    assert differ[learned].mean() > 0.15 and not differ[LIBRARY.shown.places(LIBRARY.validation)].any()


@pytest.mark.parametrize("system", SYSTEMS)
def test_heads_that_no_transition_of_their_own_gave_are_as_sure_as_right(system):
    """In arc-hybrid that is every root."""
    policy = a_policy(system=system)
    correct(policy, LIBRARY, judged(policy, LIBRARY, LIBRARY.validation))
    found = judged(policy, LIBRARY, LIBRARY.validation)
    left = found.parsed.left
    if system == "arc-hybrid":
        assert left[found.parsed.heads == 0].all()
    assert found.parsed.head_right[left] == pytest.approx((1 + found.head_right[left].sum()) / (2 + left.sum()))


def without(sentence, *columns):
    return replace(sentence, **{column: ("_",) * len(sentence) for column in columns})


def test_a_treebank_without_relations_and_tags_is_chosen_on_by_heads():
    bare = tuple(without(one, "labels", "tags", "fine_tags") for one in SENTENCES)
    library = Library.of(Split(bare[:20], bare[20:], ()))
    policy = a_policy().with_names(*library.names)
    library.show(policy)
    told = score(policy, library, library.validation)
    assert told.las == told.uas > 0 and told.tags is None
    assert float(Judge(library)(policy)) == told.uas
    found = judged(policy, library, library.validation)
    assert np.array_equal(found.parsed.arc_right, found.parsed.head_right)


def test_nothing_but_punctuation_has_no_score_without_it():
    signs = tuple(replace(one, labels=("punct",) * len(one)) for one in SENTENCES)
    library = Library.of(Split(signs[:20], signs[20:], ()))
    policy = a_policy().with_names(*library.names)
    library.show(policy)
    assert score(policy, library, library.validation).uas_without_punctuation is None
