"""The parser as a simulator: Algorithm 1 runs on it as on any other.

A state is an int32 row: the page, the dependents of the latest three arcs (the latest first), the configuration. What
the learner sees of it is where to look, not the pictures themselves: the page and the numbers of nine symbols, three
each of the stack's top, the buffer's front and the latest arcs (−1 where there is none). The policies look their
features up, so that a page is encoded once and not at every step.
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

CONTEXT_SIZE = 3  # of the stack, the buffer and the arcs
ARCS = slice(1, 1 + CONTEXT_SIZE)
CONFIGURATION = slice(1 + CONTEXT_SIZE, None)
OBSERVATION_SPACE = Box(-1.0, np.inf, (1 + 3 * CONTEXT_SIZE,), np.float32)  # a page, and numbers of symbols


@dataclass(frozen=True)
class Corpus:
    """Pages with their gold trees, as arrays padded to the longest."""

    lengths: Array  # int [P]
    gold: Array  # int [P, N+1], NONE for ROOT and beyond a page

    @classmethod
    def from_pages(cls, pages: Sequence[Page]) -> Corpus:
        lengths = np.array([len(page) for page in pages])
        return cls(lengths, np.stack([add_root(page.heads, int(lengths.max())) for page in pages]))

    @property
    def most(self) -> int:
        """N."""
        return int(self.gold.shape[1]) - 1


@dataclass(frozen=True)
class Parser:
    """Parse pages of a corpus: those at `chosen`, drawn by the episode's seed, or one after the other.

    Nothing costs before the end; then every symbol without its gold head costs 1, as nothing but UAS counts.
    """

    corpus: Corpus
    chosen: Array  # int [pages], which pages of the corpus
    in_order: bool = False  # an episode parses the page that its seed is the number of
    system: TransitionSystem = SYSTEMS["arc-eager"]
    name: str = "algebra"

    @property
    def horizon(self) -> int:
        return self.system.max_transitions(int(self.corpus.lengths[self.chosen].max()))

    @property
    def gold(self) -> Array:
        """[pages, N+1]: the gold heads of its pages."""
        gold: Array = self.corpus.gold[self.chosen]
        return gold

    @property
    def action_space(self) -> Discrete:
        return Discrete(len(self.system.actions))

    @property
    def observation_space(self) -> Box:
        return Box(-1.0, float(max(len(self.corpus.lengths), self.corpus.most)), (1 + 3 * CONTEXT_SIZE,), np.float32)

    def reset(self, seeds: Array) -> Array:
        if self.in_order:
            return self.start(self.chosen[np.asarray(seeds, np.int64) % len(self.chosen)])
        return self.start(
            self.chosen[[int(make_generator(int(s), RandomStream.LUCK).integers(len(self.chosen))) for s in seeds]]
        )

    def start(self, page: Array) -> Array:
        """The states before the first transition of these pages [n]."""
        rows = make_initial_configurations(self.corpus.lengths[page], self.corpus.most)
        arcs = np.full((len(page), CONTEXT_SIZE), NO_SYMBOL)
        return np.concatenate([page[:, None], arcs, rows], axis=1).astype(np.int32)

    def observe(self, state: Array) -> Array:
        """[n, 10] float32: the page, then the latest three of stack, buffer and arcs."""
        view = ConfigurationView(state[:, CONFIGURATION])
        top = None
        stack = []
        for _ in range(CONTEXT_SIZE):
            top = view.find_top(below=top)
            stack.append(top)
        ahead = view.b[:, None] + np.arange(CONTEXT_SIZE)
        buffer = np.where(ahead <= view.n[:, None], ahead, NO_SYMBOL)
        seen = [state[:, :1], np.stack(stack, axis=1), buffer, state[:, ARCS]]
        return np.concatenate(seen, axis=1).astype(np.float32)

    def action_mask(self, state: Array) -> Array:
        """[n, A] which transitions may be taken."""
        return self.system.action_mask(state[:, CONFIGURATION])

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        rows = state[:, CONFIGURATION]
        following = state.copy()
        following[:, CONFIGURATION] = self.system.step(rows, action)
        before = ConfigurationView(rows).heads
        after = ConfigurationView(following[:, CONFIGURATION]).heads
        new = before != after
        dependent = new.argmax(axis=1)
        made = new.any(axis=1)
        following[made, 2 : 1 + CONTEXT_SIZE] = state[made, 1:CONTEXT_SIZE]
        following[made, 1] = dependent[made]
        done = self.system.is_done(following[:, CONFIGURATION])
        cost = done * count_wrong_heads(following[:, CONFIGURATION], self.corpus.gold[state[:, 0]])
        return following, cost.astype(np.float64), done

    def heads(self, state: Array) -> Array:
        """[n, N]: the heads that were given, NONE where there is none."""
        return ConfigurationView(state[:, CONFIGURATION]).heads[:, 1:]

    @cached_property
    def expert(self) -> GoldExpert:
        """π*."""
        return GoldExpert(self)


@dataclass(frozen=True)
class GoldExpert:
    """π* knows the gold tree of every page, and by it exactly what each transition costs, without a roll-out."""

    parser: Parser
    name: str = "gold"

    def q(self, states: Array) -> Array:
        """Q*(s, a): arcs that are lost already, and those that the transition loses; for illegal ones the same."""
        rows = states[:, CONFIGURATION]
        gold = self.parser.corpus.gold[states[:, 0]]
        lost = self.parser.system.count_lost_arcs(rows, gold)
        q: Array = (lost + count_already_lost(self.parser.system, rows, gold)[:, None]).astype(np.float64)
        return q

    def act(self, states: Array, t: int) -> Array:
        rows = states[:, CONFIGURATION]
        gold = self.parser.corpus.gold[states[:, 0]]
        return select_best_transition(self.parser.system, rows, gold)


@dataclass(frozen=True)
class GoldSettings(QStarSettings):
    """Q* of every transition, from the gold tree."""

    name = "gold"
