"""How good a parse is: UAS, and where it fails."""

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

LENGTHS = ((1, 1), (2, 2), (3, 4), (5, 8), (9, 10**6))  # of arcs, in symbols


def compute_uas(heads: Array, gold: Array) -> tuple[float, float, float]:
    """(micro, macro, exact match) of heads [P, N] against gold [P, N+1]: shares of symbols, mean over pages, pages."""
    wanted = gold[:, 1:] != NO_SYMBOL
    right = (heads == gold[:, 1:]) & wanted
    per_page = right.sum(axis=1) / wanted.sum(axis=1)
    return float(right.sum() / wanted.sum()), float(per_page.mean()), float((per_page == 1).mean())


def parse_greedily(policy: Policy | Expert, parser: Parser) -> Trajectories:
    """One greedy parse of each of the parser's pages by a policy, or by an expert."""
    assert parser.in_order, "the pages are scored one after the other, each once"
    alone = RollInPolicy(None, policy.actor()) if isinstance(policy, Policy) else RollInPolicy(policy, None, alpha=1.0)
    return roll_in(parser, alone, list_page_numbers(parser), deterministic=True)


def list_page_numbers(parser: Parser) -> Array:
    """Those of its pages, which take the place of seeds."""
    return np.arange(len(parser.chosen), dtype=np.uint64)


def parse_batch(policy: Policy | Expert, parser: Parser) -> Array:
    """[P, N]: the heads that a greedy policy, or an expert, gives to each of the parser's pages."""
    return extract_predicted_heads(parse_greedily(policy, parser), parser)


def extract_predicted_heads(found: Trajectories, parser: Parser) -> Array:
    """[P, N]: the heads that these parses came to, NONE where there is none."""
    lane = np.arange(found.count)
    last = found.mask.sum(axis=1) - 1
    final, _, _ = parser.step(found.states[lane, last], found.actions[lane, last])
    return parser.heads(final)


@dataclass(frozen=True)
class MicroUasEvaluator:
    """The share of symbols with their gold head, which is what the parses cost; with the transitions they took."""

    parser: Parser
    engine: Engine = IN_PROCESS

    def with_engine(self, engine: Engine) -> Self:
        """The same by another engine."""
        return replace(self, engine=engine)

    def __call__(self, policy: Policy | Expert) -> ValidationScore:
        assert self.parser.in_order, "the pages are scored one after the other, each once"
        symbols = int(self.parser.corpus.lengths[self.parser.chosen].sum())
        returns, steps = evaluate_returns(policy, self._kept, list_page_numbers(self.parser), True, self.engine)
        return ValidationScore(float((symbols + returns.sum()) / symbols), steps)

    @cached_property
    def _kept(self) -> CachedObject[WorkerContext]:
        return CachedObject(WorkerContext(self.parser))


def evaluate_micro_uas(policy: Policy | Expert, parser: Parser) -> float:
    """Return the share of the parser's symbols to which the policy gives their gold head."""
    return MicroUasEvaluator(parser)(policy).value


def evaluate_next_symbol_baseline(parser: Parser) -> float:
    """The micro UAS of the simplest parser: every symbol's head is the next one, and the last one's is ROOT."""
    lengths = parser.corpus.lengths[parser.chosen]
    heads = np.tile(np.arange(2, parser.corpus.most + 2), (len(lengths), 1))
    heads[np.arange(len(lengths)), lengths - 1] = 0
    return compute_uas(heads, parser.gold)[0]


def evaluate_random_baseline(parser: Parser, parses: int = 20) -> float:
    """The micro UAS of legal transitions drawn at random: mean over so many parses of every page."""
    pages = np.tile(parser.chosen, parses)
    state = parser.start(pages)
    generator = np.random.default_rng(0)
    wrong = 0.0
    while len(state):
        chance = np.where(parser.action_mask(state), generator.random((len(state), int(parser.action_space.n))), -1.0)
        state, cost, done = parser.step(state, chance.argmax(axis=1))
        wrong += cost.sum()
        state = state[~done]
    return float(1 - wrong / parser.corpus.lengths[pages].sum())


@dataclass(frozen=True)
class UasScore(Score):
    """UAS in all its forms, beside the expert's and that of the simplest parser; `test_return` is the micro UAS."""

    uas_micro: float
    uas_macro: float
    exact_match: float
    pages: int
    symbols: int
    uas_next_head: float


def score_heads(heads: Array, parser: Parser) -> UasScore:
    """Of these heads [P, N]."""
    share, macro, exact = compute_uas(heads, parser.gold)
    lengths = parser.corpus.lengths[parser.chosen]
    right = ((heads == parser.gold[:, 1:]) & (parser.gold[:, 1:] != NO_SYMBOL)).sum(axis=1)
    returns, _ = evaluate_returns(parser.expert, parser, list_page_numbers(parser), True)
    symbols = int(lengths.sum())
    expert_error = estimate_standard_error_of_ratio(lengths + returns, lengths)
    return UasScore(
        float((symbols + returns.sum()) / symbols), share, share, share, macro, exact,
        len(parser.chosen), symbols, evaluate_next_symbol_baseline(parser),
        expert_standard_error=expert_error, test_standard_error=estimate_standard_error_of_ratio(right, lengths),
    )  # fmt: skip


class KindScore(TypedDict):
    """Of the symbols of one kind."""

    uas: float
    symbols: int


def score_by_kind(pages: Sequence[Page], heads: Array, kind: Callable[[Page, int], str]) -> dict[str, KindScore]:
    """UAS and number of the symbols of each kind, the most frequent first; `kind` is of a page and a place in it."""
    right: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for page, given in zip(pages, heads, strict=True):
        for place, head in enumerate(page.heads):
            seen[kind(page, place)] += 1
            right[kind(page, place)] += int(given[place] == head)
    return {name: {"uas": right[name] / count, "symbols": count} for name, count in seen.most_common()}


def get_symbol_label(page: Page, place: int) -> str:
    """What was written there."""
    return page.symbols[place]


def format_arc_length(page: Page, place: int) -> str:
    """How far away the symbol's head is."""
    head = int(page.heads[place])
    if head == 0:
        return "ROOT"
    low, high = next(bounds for bounds in LENGTHS if abs(head - place - 1) <= bounds[1])
    return str(low) if low == high else f"{low}+" if high == LENGTHS[-1][1] else f"{low}-{high}"
