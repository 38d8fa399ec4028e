"""Scores of parses: unlabeled attachment score (UAS), in total and by kind of symbol."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self, TypedDict

import numpy as np

from aggrevated.collection import WorkerContext
from aggrevated.core.arrays import Array
from aggrevated.core.statistics import estimate_standard_error_of_ratio
from aggrevated.engines import IN_PROCESS, Engine
from aggrevated.engines.serialization import CachedObject
from aggrevated.experts import Expert
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.parser import Parser
from aggrevated.parsing.transitions.configurations import NO_SYMBOL
from aggrevated.policies import Policy
from aggrevated.problems import Score
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.validation import ValidationScore, evaluate_returns

LENGTHS = ((1, 1), (2, 2), (3, 4), (5, 8), (9, 10**6))  # ranges of arc lengths, in symbols


def compute_uas(heads: Array, gold: Array) -> tuple[float, float, float]:
    """Compare predicted heads with gold heads.

    Args:
        heads: predicted heads, int [P, N].
        gold: gold heads by symbol number, int [P, N+1].

    Returns:
        Micro UAS (share of all symbols), macro UAS (mean over pages) and the share of pages without an error.
    """
    has_gold_head = gold[:, 1:] != NO_SYMBOL
    correct = (heads == gold[:, 1:]) & has_gold_head
    per_page = correct.sum(axis=1) / has_gold_head.sum(axis=1)
    return float(correct.sum() / has_gold_head.sum()), float(per_page.mean()), float((per_page == 1).mean())


def parse_greedily(policy: Policy | Expert, parser: Parser) -> Trajectories:
    """Return one greedy parse of each page of the parser by a policy or an expert."""
    assert parser.in_order, "pages are scored in order, each once: set in_order=True"
    roll_in_policy = (
        RollInPolicy(None, policy.actor()) if isinstance(policy, Policy) else RollInPolicy(policy, None, alpha=1.0)
    )
    return roll_in(parser, roll_in_policy, list_page_numbers(parser), deterministic=True)


def list_page_numbers(parser: Parser) -> Array:
    """Return the page numbers that an in-order parser takes as seeds, uint64 [pages]."""
    return np.arange(len(parser.chosen), dtype=np.uint64)


def parse_batch(policy: Policy | Expert, parser: Parser) -> Array:
    """Return the heads that a greedy policy or an expert predicts.

    Args:
        policy: policy or expert that parses.
        parser: parser of the pages, with `in_order=True`.

    Returns:
        Heads, NO_SYMBOL where there is none, int [pages, N].
    """
    return extract_predicted_heads(parse_greedily(policy, parser), parser)


def extract_predicted_heads(trajectories: Trajectories, parser: Parser) -> Array:
    """Return the heads at the end of these parses, NO_SYMBOL where there is none, int [pages, N]."""
    k = np.arange(trajectories.count)
    last = trajectories.mask.sum(axis=1) - 1
    final, _, _ = parser.step(trajectories.states[k, last], trajectories.actions[k, last])
    return parser.heads(final)


@dataclass(frozen=True)
class MicroUasEvaluator:
    """Evaluator of the micro UAS (share of symbols with their gold head) from the costs of greedy parses."""

    parser: Parser
    engine: Engine = IN_PROCESS

    def with_engine(self, engine: Engine) -> Self:
        """Return a copy that evaluates on `engine`."""
        return replace(self, engine=engine)

    def __call__(self, policy: Policy | Expert) -> ValidationScore:
        """Return the micro UAS of a policy and the number of transitions taken."""
        assert self.parser.in_order, "pages are scored in order, each once: set in_order=True"
        symbols = int(self.parser.corpus.lengths[self.parser.chosen].sum())
        seeds = list_page_numbers(self.parser)
        returns, steps = evaluate_returns(policy, self._worker_context, seeds, True, self.engine)
        return ValidationScore(float((symbols + returns.sum()) / symbols), steps)

    @cached_property
    def _worker_context(self) -> CachedObject[WorkerContext]:
        return CachedObject(WorkerContext(self.parser))


def evaluate_micro_uas(policy: Policy | Expert, parser: Parser) -> float:
    """Return the share of the parser's symbols to which the policy gives their gold head."""
    return MicroUasEvaluator(parser)(policy).value


def evaluate_next_symbol_baseline(parser: Parser) -> float:
    """Return the micro UAS if the head of each symbol is the next symbol and that of the last is ROOT."""
    lengths = parser.corpus.lengths[parser.chosen]
    heads = np.tile(np.arange(2, parser.corpus.most + 2), (len(lengths), 1))
    heads[np.arange(len(lengths)), lengths - 1] = 0
    return compute_uas(heads, parser.gold)[0]


def evaluate_random_baseline(parser: Parser, parses: int = 20) -> float:
    """Return the micro UAS of random legal transitions, as the mean over `parses` parses of every page."""
    pages = np.tile(parser.chosen, parses)
    state = parser.start(pages)
    generator = np.random.default_rng(0)
    wrong = 0.0
    while len(state):
        draws = generator.random((len(state), int(parser.action_space.n)))
        priorities = np.where(parser.action_mask(state), draws, -1.0)
        state, cost, done = parser.step(state, priorities.argmax(axis=1))
        wrong += cost.sum()
        state = state[~done]
    return float(1 - wrong / parser.corpus.lengths[pages].sum())


@dataclass(frozen=True)
class UasScore(Score):
    """UAS of a policy, of its expert and of a baseline; `test_return` is the micro UAS.

    Attributes:
        uas_micro: share of all symbols with their gold head.
        uas_macro: mean over pages of the share of symbols with their gold head.
        exact_match: share of pages without an error.
        pages: number of pages.
        symbols: number of symbols.
        uas_next_head: micro UAS if the head of each symbol is the next symbol.
    """

    uas_micro: float
    uas_macro: float
    exact_match: float
    pages: int
    symbols: int
    uas_next_head: float


def score_heads(heads: Array, parser: Parser) -> UasScore:
    """Return the score of predicted heads [pages, N] on the pages of an in-order parser."""
    micro, macro, exact = compute_uas(heads, parser.gold)
    lengths = parser.corpus.lengths[parser.chosen]
    correct = ((heads == parser.gold[:, 1:]) & (parser.gold[:, 1:] != NO_SYMBOL)).sum(axis=1)
    returns, _ = evaluate_returns(parser.expert, parser, list_page_numbers(parser), True)
    symbols = int(lengths.sum())
    expert_error = estimate_standard_error_of_ratio(lengths + returns, lengths)
    return UasScore(
        float((symbols + returns.sum()) / symbols), micro, micro, micro, macro, exact,
        len(parser.chosen), symbols, evaluate_next_symbol_baseline(parser),
        expert_standard_error=expert_error, test_standard_error=estimate_standard_error_of_ratio(correct, lengths),
    )  # fmt: skip


class KindScore(TypedDict):
    """UAS and number of the symbols of one kind."""

    uas: float
    symbols: int


def score_by_kind(pages: Sequence[Page], heads: Array, kind: Callable[[Page, int], str]) -> dict[str, KindScore]:
    """Return UAS and number of the symbols of each kind, the most frequent first.

    Args:
        pages: pages with their gold heads.
        heads: predicted heads, int [pages, N].
        kind: function of a page and a symbol's index in it that returns the name of the symbol's kind.

    Returns:
        Scores by the name of the kind.
    """
    correct: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for page, predicted in zip(pages, heads, strict=True):
        for index, head in enumerate(page.heads):
            total[kind(page, index)] += 1
            correct[kind(page, index)] += int(predicted[index] == head)
    return {name: {"uas": correct[name] / count, "symbols": count} for name, count in total.most_common()}


def get_symbol_label(page: Page, index: int) -> str:
    """Return the label of the symbol with the index `index` of a page."""
    return page.symbols[index]


def format_arc_length(page: Page, index: int) -> str:
    """Return the distance between a symbol and its head, as a range of `LENGTHS`, or "ROOT"."""
    head = int(page.heads[index])
    if head == 0:
        return "ROOT"
    low, high = next(bounds for bounds in LENGTHS if abs(head - index - 1) <= bounds[1])
    return str(low) if low == high else f"{low}+" if high == LENGTHS[-1][1] else f"{low}-{high}"
