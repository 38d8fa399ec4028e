"""UAS in all its forms, by hand."""

from fractions import Fraction

import numpy as np
import pytest

from aggrevated.parsing.parser import Corpus, Parser
from aggrevated.parsing.scoring import (
    evaluate_micro_uas,
    evaluate_next_symbol_baseline,
    evaluate_random_baseline,
    format_arc_length,
    get_symbol_label,
    parse_batch,
    score_by_kind,
    score_heads,
)
from aggrevated.parsing.transitions.configurations import NO_SYMBOL
from aggrevated.parsing.transitions.systems import SYSTEMS
from helpers.parser_policies import LIBRARY_KINDS, assert_parse_batch_is_greedy, corpus, page, reader

every_system = pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)


def make_parser(*trees, system=SYSTEMS["arc-eager"]):
    return Parser(
        Corpus.from_pages([page(tree) for tree in trees]), np.arange(len(trees)), in_order=True, system=system
    )


@every_system
def test_parse_batch_of_the_expert_gives_gold_heads(system):
    pages = corpus(40)
    parser = Parser(pages, np.arange(10, 40), in_order=True, system=system)
    heads = parse_batch(parser.expert, parser)
    assert heads.shape == (30, pages.most)
    np.testing.assert_array_equal(heads, pages.gold[10:, 1:])  # NONE beyond a page in both
    assert evaluate_micro_uas(parser.expert, parser) == 1.0


@pytest.mark.parametrize("kind", LIBRARY_KINDS)
def test_parse_batch_follows_most_likely_legal_transitions(kind):
    pages = corpus(12)
    assert_parse_batch_is_greedy(reader(kind, pages), pages)


def test_parse_batch_requires_pages_in_order():
    parser = Parser(corpus(3), np.arange(3))
    with pytest.raises(AssertionError, match="each once"):
        parse_batch(parser.expert, parser)


def test_next_symbol_baseline_matches_hand_computed_value():
    """1→2, 2→3, 3→ROOT is right for all of the first page, for 1 of 3 and 2 of 2 of the others: 6 of 8."""
    assert evaluate_next_symbol_baseline(make_parser([2, 3, 0])) == 1.0
    assert evaluate_next_symbol_baseline(make_parser([2, 3, 0], [2, 0, 2], [2, 0])) == 6 / 8
    assert evaluate_next_symbol_baseline(make_parser([0])) == 1.0
    parser = Parser(Corpus.from_pages([page(tree) for tree in ([0, 1, 1], [2, 0])]), np.array([1]), in_order=True)
    assert evaluate_next_symbol_baseline(parser) == 1.0


def expected_random_loss(parser, state):
    """Return the mean number of wrong heads over all parses, every legal transition with equal probability."""
    actions = np.flatnonzero(parser.action_mask(state)[0])
    total = Fraction(0)
    for action in actions:
        following, cost, done = parser.step(state, np.array([action]))
        total += Fraction(int(cost[0])) if done[0] else expected_random_loss(parser, following)
    return total / len(actions)


@every_system
@pytest.mark.parametrize("tree", [[2, 0], [0, 1], [2, 3, 0]])
def test_random_baseline_matches_exact_expectation(system, tree):
    parser = make_parser(tree, system=system)
    exact = 1 - expected_random_loss(parser, parser.start(np.array([0]))) / len(tree)
    assert 0 < exact < 1
    assert evaluate_random_baseline(parser, parses=4000) == pytest.approx(float(exact), abs=0.03)
    assert evaluate_random_baseline(parser) == evaluate_random_baseline(parser)  # repeatable


def test_random_baseline_weights_symbols_not_pages():
    """A page of one symbol is right about half of the time; a page of nine has nine times its weight."""
    long = [2, 3, 4, 5, 6, 7, 8, 9, 0]
    short = [0]
    alone = [evaluate_random_baseline(make_parser(tree), 2000) for tree in (long, short)]
    both = evaluate_random_baseline(make_parser(long, short), 2000)
    assert both == pytest.approx((9 * alone[0] + alone[1]) / 10, abs=0.02)
    assert abs(both - sum(alone) / 2) > 0.05


def test_score_heads_matches_hand_computed_values():
    parser = make_parser([2, 0], [0, 1, 2])
    actual = score_heads(np.array([[2, 0, NO_SYMBOL], [0, 1, 1]]), parser).to_dict()
    assert actual == {
        "expert_return": 1.0,
        "expert_standard_error": 0.0,
        "test_return": 4 / 5,
        "test_standard_error": pytest.approx(0.16),  # e = 2 - 8/5, 2 - 12/5: sqrt(2 * (0.16 + 0.16)) / 5
        "ratio": 4 / 5,
        "expert_diverged": 0,
        "test_diverged": 0,
        "uas_micro": 4 / 5,
        "uas_macro": (1 + 2 / 3) / 2,
        "exact_match": 0.5,
        "pages": 2,
        "symbols": 5,
        "uas_next_head": 2 / 5,
    }


def test_scores_by_kind_match_hand_computed_values():
    pages = [page([2, 0, 2], "x=3"), page([2, 0], "x=")]
    heads = np.array([[3, 0, 1], [2, 0, NO_SYMBOL]])  # wrong: the first x, and the 3
    assert score_by_kind(pages, heads, get_symbol_label) == {
        "x": {"uas": 0.5, "symbols": 2},
        "=": {"uas": 1.0, "symbols": 2},
        "3": {"uas": 0.0, "symbols": 1},
    }
    assert score_by_kind(pages, heads, format_arc_length) == {
        "1": {"uas": 1 / 3, "symbols": 3},
        "ROOT": {"uas": 1.0, "symbols": 2},
    }
    often = score_by_kind([page([0, 1, 1], "abb")], np.array([[0, 1, 1]]), get_symbol_label)
    assert list(often) == ["b", "a"]  # the most frequent first


@pytest.mark.parametrize(
    ("length", "name"),
    [(1, "1"), (2, "2"), (3, "3-4"), (4, "3-4"), (5, "5-8"), (8, "5-8"), (9, "9+"), (30, "9+")],
)
def test_arc_length_is_the_same_in_both_directions(length, name):
    n = 31
    forwards = np.zeros(n, int)
    backwards = np.zeros(n, int)
    forwards[0] = length + 1
    backwards[length] = 1
    assert format_arc_length(page(forwards), 0) == format_arc_length(page(backwards), length) == name
    assert format_arc_length(page(forwards), 1) == "ROOT"
