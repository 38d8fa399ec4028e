"""Simulator of a transition-based parser, on which Algorithm 1 runs.

A state is an int32 row: the page, the dependents of the latest three arcs (the latest first), the
configuration. An observation holds numbers, not pictures: the page and nine symbols, three each from the
top of the stack, the front of the buffer and the latest arcs (−1 where there is none). Policies look up the
features of these symbols, so that a page is encoded once and not at every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.core.rng import RandomStream, make_generator
from aggrevated.oracles.q_star import QStarSettings
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.transitions import TransitionSystem
from aggrevated.parsing.transitions.configurations import (
    NO_SYMBOL,
    ConfigurationView,
    add_root,
    count_wrong_heads,
    make_initial_configurations,
)
from aggrevated.parsing.transitions.gold import count_already_lost, select_best_transition
from aggrevated.parsing.transitions.systems import SYSTEMS

CONTEXT_SIZE = 3  # symbols each of the stack, the buffer and the arcs in an observation
ARCS = slice(1, 1 + CONTEXT_SIZE)
CONFIGURATION = slice(1 + CONTEXT_SIZE, None)
OBSERVATION_SPACE = Box(-1.0, np.inf, (1 + 3 * CONTEXT_SIZE,), np.float32)  # a page, then symbols


@dataclass(frozen=True)
class Corpus:
    """Lengths and gold trees of P pages, padded to the longest page.

    Attributes:
        lengths: number of symbols of each page, int [P].
        gold: gold heads by symbol number, NO_SYMBOL for ROOT and beyond a page, int [P, N+1].
    """

    lengths: Array
    gold: Array

    @classmethod
    def from_pages(cls, pages: Sequence[Page]) -> Corpus:
        """Return the corpus of these pages."""
        lengths = np.array([len(page) for page in pages])
        return cls(lengths, np.stack([add_root(page.heads, int(lengths.max())) for page in pages]))

    @property
    def most(self) -> int:
        """Return N, the number of symbols of the longest page."""
        return int(self.gold.shape[1]) - 1


@dataclass(frozen=True)
class Parser:
    """Simulator in which an episode parses one page of a corpus.

    The cost is 0 before the end of a parse. At the end, every symbol without its gold head costs 1, so that
    the cost measures UAS.

    Attributes:
        corpus: pages and their gold trees.
        chosen: indices of the pages of the corpus that episodes parse, int [pages].
        in_order: whether an episode with seed i parses page i of `chosen`; otherwise the seed draws a page.
        system: transition system.
        name: name of the simulator.
    """

    corpus: Corpus
    chosen: Array
    in_order: bool = False
    system: TransitionSystem = SYSTEMS["arc-eager"]
    name: str = "algebra"

    @property
    def horizon(self) -> int:
        """Return the largest number of transitions of an episode."""
        return self.system.max_transitions(int(self.corpus.lengths[self.chosen].max()))

    @property
    def gold(self) -> Array:
        """Return the gold heads of the pages of `chosen`, int [pages, N+1]."""
        gold: Array = self.corpus.gold[self.chosen]
        return gold

    @property
    def action_space(self) -> Discrete:
        return Discrete(len(self.system.actions))

    @property
    def observation_space(self) -> Box:
        return Box(-1.0, float(max(len(self.corpus.lengths), self.corpus.most)), (1 + 3 * CONTEXT_SIZE,), np.float32)

    def reset(self, seeds: Array) -> Array:
        """Return the first states of the episodes with these seeds, int32 [n, ...]."""
        if self.in_order:
            return self.start(self.chosen[np.asarray(seeds, np.int64) % len(self.chosen)])
        return self.start(
            self.chosen[[int(make_generator(int(s), RandomStream.SIMULATOR).integers(len(self.chosen))) for s in seeds]]
        )

    def start(self, page: Array) -> Array:
        """Return the states before the first transition of the pages with the indices `page` [n]."""
        rows = make_initial_configurations(self.corpus.lengths[page], self.corpus.most)
        arcs = np.full((len(page), CONTEXT_SIZE), NO_SYMBOL)
        return np.concatenate([page[:, None], arcs, rows], axis=1).astype(np.int32)

    def observe(self, state: Array) -> Array:
        """Return the page and three symbols each of stack, buffer and arcs, float32 [n, 10]."""
        view = ConfigurationView(state[:, CONFIGURATION])
        top = None
        stack = []
        for _ in range(CONTEXT_SIZE):
            top = view.find_top(below=top)
            stack.append(top)
        next_symbols = view.b[:, None] + np.arange(CONTEXT_SIZE)
        buffer = np.where(next_symbols <= view.n[:, None], next_symbols, NO_SYMBOL)
        components = [state[:, :1], np.stack(stack, axis=1), buffer, state[:, ARCS]]
        return np.concatenate(components, axis=1).astype(np.float32)

    def action_mask(self, state: Array) -> Array:
        """Return which transitions are legal, bool [n, A]."""
        return self.system.action_mask(state[:, CONFIGURATION])

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        """Return the next states, the costs [n] and whether each episode has ended [n]."""
        rows = state[:, CONFIGURATION]
        following = state.copy()
        following[:, CONFIGURATION] = self.system.step(rows, action)
        old_heads = ConfigurationView(rows).heads
        new_heads = ConfigurationView(following[:, CONFIGURATION]).heads
        is_new = old_heads != new_heads
        dependent = is_new.argmax(axis=1)
        has_new_arc = is_new.any(axis=1)
        following[has_new_arc, 2 : 1 + CONTEXT_SIZE] = state[has_new_arc, 1:CONTEXT_SIZE]
        following[has_new_arc, 1] = dependent[has_new_arc]
        done = self.system.is_done(following[:, CONFIGURATION])
        cost = done * count_wrong_heads(following[:, CONFIGURATION], self.corpus.gold[state[:, 0]])
        return following, cost.astype(np.float64), done

    def heads(self, state: Array) -> Array:
        """Return the predicted heads, NO_SYMBOL where there is none, [n, N]."""
        return ConfigurationView(state[:, CONFIGURATION]).heads[:, 1:]

    @cached_property
    def expert(self) -> GoldExpert:
        """Return π* of this parser."""
        return GoldExpert(self)


@dataclass(frozen=True)
class GoldExpert:
    """π*: computes the exact cost of each transition from the gold tree of the page, without rollouts."""

    parser: Parser
    name: str = "gold"

    def q(self, states: Array) -> Array:
        """Return Q*(s, a) [n, A]: arcs lost so far plus those that the transition, legal or not, loses."""
        rows = states[:, CONFIGURATION]
        gold = self.parser.corpus.gold[states[:, 0]]
        lost = self.parser.system.count_lost_arcs(rows, gold)
        q: Array = (lost + count_already_lost(self.parser.system, rows, gold)[:, None]).astype(np.float64)
        return q

    def act(self, states: Array, t: int) -> Array:
        """Return the best legal transition of each state, int [n]."""
        rows = states[:, CONFIGURATION]
        gold = self.parser.corpus.gold[states[:, 0]]
        return select_best_transition(self.parser.system, rows, gold)


@dataclass(frozen=True)
class GoldSettings(QStarSettings):
    """Q* of every transition, computed from the gold tree."""

    name = "gold"
