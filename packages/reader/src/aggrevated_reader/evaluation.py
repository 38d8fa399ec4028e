"""Scores of a reader on pages with gold trees: heads, names, kinds of pages, and calibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.statistics import estimate_standard_error_of_ratio
from aggrevated.parsing.features.symbols import extract_detailed_features
from aggrevated.parsing.pages.algebra import BAR, RELATIONS
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.parser import Corpus, Parser
from aggrevated.parsing.scoring import (
    KindScore,
    extract_predicted_heads,
    get_symbol_label,
    parse_greedily,
    score_by_kind,
    score_heads,
)
from aggrevated.parsing.transitions.configurations import NO_SYMBOL
from aggrevated.storage import JsonDict
from aggrevated_reader.calibration import measure_calibration
from aggrevated_reader.learners.reading_policy import ReadingPolicy
from aggrevated_reader.learners.symbol_names import encode_labels


def evaluate_reader(
    policy: ReadingPolicy, pages: Sequence[Page], core: Sequence[bool] = (), named: bool = False
) -> JsonDict:
    """Return the scores of a policy on pages, for JSON.

    Args:
        policy: The policy to score; it keeps these pages and their answers.
        pages: Pages with gold heads and labels.
        core: Whether each page belongs to the core of the data; empty if that is unknown.
        named: Whether the return is the share of symbols with the correct head and name, not of heads alone.

    Returns:
        UAS, the share of correct names, scores by kind of page and symbol, and calibration.
    """
    parser = prepare_gold_parser(policy, pages)
    trajectories = parse_greedily(policy, parser)
    heads = extract_predicted_heads(trajectories, parser)
    names, _ = policy.predict_names(np.arange(len(pages)))
    is_named = names == encode_labels([label for page in pages for label in page.symbols], policy.classes)
    page_kinds = {name: np.array([test(page) for page in pages]) for name, test in KINDS.items()}
    if core:
        page_kinds |= {"core": np.array(core), "not core": ~np.array(core)}
    groups = {
        name: score_group(parser, heads, is_named, selected) for name, selected in page_kinds.items() if selected.any()
    }
    details = {
        "names": float(is_named.mean()),
        "by_page": groups,
        "by_symbol": score_by_kind(pages, heads, get_symbol_label),
    }
    scores = score_heads(heads, parser).to_dict() | (score_with_names(parser, heads, is_named) if named else {})
    return scores | details | measure_calibration(policy, parser, trajectories)


def score_with_names(parser: Parser, heads: Array, right: Array) -> JsonDict:
    """Return the scores that replace UAS where names count, too; `right` is bool [Σn]."""
    gold = parser.gold[:, 1:]
    lengths = parser.corpus.lengths[parser.chosen]
    is_correct = (heads == gold)[gold != NO_SYMBOL] & right
    correct_per_page = np.add.reduceat(is_correct, np.cumsum(lengths) - lengths, dtype=np.int64)
    share = float(is_correct.mean())
    return {
        "test_return": share,
        "ratio": share,
        "test_standard_error": estimate_standard_error_of_ratio(correct_per_page, lengths),
    }


class GroupScore(KindScore):
    """Score of the pages of one kind."""

    names: float
    exact: float  # pages without a wrong head
    pages: int


def score_group(parser: Parser, heads: Array, right: Array, selection: Array) -> GroupScore:
    """Return the score of the pages that `selection` [P] selects."""
    lengths = parser.corpus.lengths[parser.chosen]
    selected = (np.arange(heads.shape[1]) < lengths[:, None]) & selection[:, None]
    correct = (heads == parser.gold[:, 1:]) & selected
    exact = correct.sum(axis=1)[selection] == lengths[selection]
    return {
        "uas": float(correct.sum() / selected.sum()), "names": float(right[np.repeat(selection, lengths)].mean()),
        "exact": float(exact.mean()), "symbols": int(selected.sum()), "pages": int(selection.sum()),
    }  # fmt: skip


def is_chain(page: Page) -> bool:
    """Return whether a page has two relations or more, and so probably only one line."""
    return sum(symbol in RELATIONS for symbol in page.symbols) > 1


KINDS: dict[str, Callable[[Page], bool]] = {
    "chains": is_chain,
    "brackets": lambda page: bool({*"()[]{}"} & {*page.symbols}),
    "square brackets": lambda page: bool({*"[]"} & {*page.symbols}),
    "fractions": lambda page: BAR in page.symbols,
}


def prepare_gold_parser(policy: ReadingPolicy, pages: Sequence[Page]) -> Parser:
    """Give the policy these pages with their answers, and return the parser of the pages."""
    corpus = Corpus.from_pages(pages)
    labels = encode_labels([label for page in pages for label in page.symbols], policy.classes)
    policy.with_pages(policy.projection(extract_detailed_features(pages)), corpus.lengths)
    policy.with_answers(labels, np.concatenate([page.heads for page in pages]))
    return Parser(corpus, np.arange(len(pages)), in_order=True, system=policy.system)
