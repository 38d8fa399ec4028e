"""How good a reader is on pages with gold: heads, names, kinds of pages, and whether it is as sure as it is right."""

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
    """How good it is on these pages, for JSON; with the core of them apart, where it is known.

    `named`: what it is measured by is the share of symbols with the right head and the right name, not of heads alone.
    """
    parser = prepare_gold_parser(policy, pages)
    found = parse_greedily(policy, parser)
    heads = extract_predicted_heads(found, parser)
    names, _ = policy.predict_names(np.arange(len(pages)))
    right = names == encode_labels([label for page in pages for label in page.symbols], policy.classes)
    kinds = {name: np.array([test(page) for page in pages]) for name, test in KINDS.items()}
    if core:
        kinds |= {"core": np.array(core), "not core": ~np.array(core)}
    groups = {name: score_group(parser, heads, right, which) for name, which in kinds.items() if which.any()}
    whole = {
        "names": float(right.mean()),
        "by_page": groups,
        "by_symbol": score_by_kind(pages, heads, get_symbol_label),
    }
    facts = score_heads(heads, parser).to_dict() | (score_with_names(parser, heads, right) if named else {})
    return facts | whole | measure_calibration(policy, parser, found)


def score_with_names(parser: Parser, heads: Array, right: Array) -> JsonDict:
    """What stands for UAS where names count, too; `right` [Σn] tells which are."""
    gold = parser.gold[:, 1:]
    lengths = parser.corpus.lengths[parser.chosen]
    both = (heads == gold)[gold != NO_SYMBOL] & right
    of_pages = np.add.reduceat(both, np.cumsum(lengths) - lengths, dtype=np.int64)
    share = float(both.mean())
    return {
        "test_return": share,
        "ratio": share,
        "test_standard_error": estimate_standard_error_of_ratio(of_pages, lengths),
    }


class GroupScore(KindScore):
    """Of the pages of one kind."""

    names: float
    exact: float  # pages without a wrong head
    pages: int


def score_group(parser: Parser, heads: Array, right: Array, which: Array) -> GroupScore:
    """Of the pages `which` [P]."""
    lengths = parser.corpus.lengths[parser.chosen]
    wanted = (np.arange(heads.shape[1]) < lengths[:, None]) & which[:, None]
    good = (heads == parser.gold[:, 1:]) & wanted
    exact = good.sum(axis=1)[which] == lengths[which]
    return {
        "uas": float(good.sum() / wanted.sum()), "names": float(right[np.repeat(which, lengths)].mean()),
        "exact": float(exact.mean()), "symbols": int(wanted.sum()), "pages": int(which.sum()),
    }  # fmt: skip


def is_chain(page: Page) -> bool:
    """Two relations or more, and no more than one line is likely."""
    return sum(symbol in RELATIONS for symbol in page.symbols) > 1


KINDS: dict[str, Callable[[Page], bool]] = {
    "chains": is_chain,
    "brackets": lambda page: bool({*"()[]{}"} & {*page.symbols}),
    "square brackets": lambda page: bool({*"[]"} & {*page.symbols}),
    "fractions": lambda page: BAR in page.symbols,
}


def prepare_gold_parser(policy: ReadingPolicy, pages: Sequence[Page]) -> Parser:
    """The parser of these pages, which the policy now reads, with the answers."""
    corpus = Corpus.from_pages(pages)
    labels = encode_labels([label for page in pages for label in page.symbols], policy.classes)
    policy.with_pages(policy.projection(extract_detailed_features(pages)), corpus.lengths)
    policy.with_answers(labels, np.concatenate([page.heads for page in pages]))
    return Parser(corpus, np.arange(len(pages)), in_order=True, system=policy.system)
