"""The world of a reader: generated pages in very many hands, real ink beside them if there is some.

What is parsed, and what a mistake costs, is as in `world.Algebra`; the pages have exponents, fractions and roots, and
the policy learns the symbols' names and its own expected costs along.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from aggrevated.arrays import Array
from aggrevated.engines import Engine
from aggrevated.errors import IdleError
from aggrevated.files import Facts
from aggrevated.parsing.confidence import Correcting, measured
from aggrevated.parsing.dataset import Library, library
from aggrevated.parsing.features.symbols import detailed
from aggrevated.parsing.learners.names import numbers_of
from aggrevated.parsing.learners.reading import ReadingPolicy
from aggrevated.parsing.pages.algebra import BAR, RELATIONS
from aggrevated.parsing.pages.crohme import read_folder
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.parser import Corpus, Parser
from aggrevated.parsing.scoring import KindScore, by_kind, heads_of, parses, scores, symbol
from aggrevated.parsing.splits import Split, evaluated, to_read
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated.parsing.world import Algebra, Monitor, left_out_of, world_of
from aggrevated.policies import Policy
from aggrevated.settings import COUNT, SHARE, at_least, setting
from aggrevated.worlds import EvaluationSettings, World, WorldSettings


@dataclass(frozen=True)
class ReadPages(EvaluationSettings):
    """Test pages, or real ink."""

    crohme: str = setting("", "Real ink: a folder of InkML files or with dev/ in it; all that can be used of it.")
    verbose: bool = setting(False, "List the files of that folder that cannot be used.")

    def measure(self, world: WorldSettings, policy: Policy) -> Facts:
        """UAS, names, by kinds of pages and symbols, and how far the policy's sureness can be trusted."""
        assert isinstance(world, Handwriting) and isinstance(policy, ReadingPolicy)
        if not self.crohme:
            return judged(policy, world.split().test, ())
        folder = read_folder(evaluated(Path(self.crohme)))
        return judged(policy, folder.pages, folder.core) | left_out_of(self.crohme, self.verbose)


def judged(policy: ReadingPolicy, pages: Sequence[Page], core: Sequence[bool] = ()) -> Facts:
    """How good it is on these pages, for JSON; with the core of them apart, where it is known."""
    parser = shown(policy, pages)
    found = parses(policy, parser)
    heads = heads_of(found, parser)
    names, _ = policy.named(np.arange(len(pages)))
    right = names == numbers_of([label for page in pages for label in page.symbols], policy.classes)
    kinds = {name: np.array([test(page) for page in pages]) for name, test in KINDS.items()}
    if core:
        kinds |= {"core": np.array(core), "not core": ~np.array(core)}
    groups = {name: group(parser, heads, right, which) for name, which in kinds.items() if which.any()}
    whole = {"names": float(right.mean()), "by_page": groups, "by_symbol": by_kind(pages, heads, symbol)}
    return scores(heads, parser).facts() | whole | measured(policy, parser, found)


class GroupScore(KindScore):
    """Of the pages of one kind."""

    names: float
    exact: float  # pages without a wrong head
    pages: int


def group(parser: Parser, heads: Array, right: Array, which: Array) -> GroupScore:
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


def shown(policy: ReadingPolicy, pages: Sequence[Page]) -> Parser:
    """The parser of these pages, which the policy now reads, with the answers."""
    corpus = Corpus.of(pages)
    labels = numbers_of([label for page in pages for label in page.symbols], policy.classes)
    policy.with_pages(policy.projection(detailed(pages)), corpus.lengths)
    policy.with_answers(labels, np.concatenate([page.heads for page in pages]))
    return Parser(corpus, np.arange(len(pages)), in_order=True, system=policy.system)


@dataclass(frozen=True, kw_only=True)
class Handwriting(Algebra):
    """Pages to be read: generated ones, and real ink beside them. What is measured is UAS."""

    name = "handwriting"
    evaluation: ClassVar[type[EvaluationSettings]] = ReadPages
    crohme: str = setting(
        "", "Learn from CROHME's InkML files in this folder (train/ and dev/), too: all that can be used of them."
    )
    sets: int = setting(20_000, "How many pages are generated.", at_least(20))
    warps: int = setting(4, "Rewritten copies of each page of real ink.", COUNT)
    pictured: float = setting(0.2, "The share of the pages whose ink looks as if it was read from a picture.", SHARE)

    def completed(self, iterations: int, given: Container[str]) -> Self:
        """A folder of real ink is found again from everywhere."""
        if "single_writer" in given:
            raise IdleError("--single-writer has no effect on pages in many hands; leave it out", "single_writer")
        return replace(self, crohme=os.path.realpath(self.crohme)) if self.crohme else self

    @property
    def label(self) -> str:
        return ", with real ink" if self.crohme else ""

    def split(self) -> Split:
        """The pages."""
        return to_read(self.crohme, self.sets, self.data_seed, self.pictured)

    def parser_of(self, policy: Policy, pages: Sequence[Page]) -> Parser:
        """The parser of these pages, which the policy now reads."""
        assert isinstance(policy, ReadingPolicy)
        return shown(policy, pages)

    def build(self, seed: int) -> World:
        pages = library(self.crohme, self.sets, self.data_seed, self.warps, self.pictured)
        world = world_of(pages, SYSTEMS[self.system], Correcting, lambda policy: show(policy, pages))
        assert isinstance(world.monitor, Monitor)
        return replace(world, monitor=Named(world.monitor, pages))


def show(policy: Policy, pages: Library) -> None:
    """Give a policy the pages, the projection that made their features, and the answers to learn from."""
    assert isinstance(policy, ReadingPolicy)
    policy.projection = pages.projection
    policy.with_names(pages.names).with_pages(pages.features, pages.corpus.lengths)
    policy.with_answers(pages.labels, pages.heads)


@dataclass(frozen=True)
class Named:
    """UAS on the test pages, and the share of symbols there that the policy names right."""

    monitor: Monitor
    pages: Library

    def over(self, engine: Engine) -> Named:
        """The same by another engine."""
        return replace(self, monitor=self.monitor.over(engine))

    def __call__(self, policy: Policy) -> dict[str, float]:
        assert isinstance(policy, ReadingPolicy)
        names, _ = policy.named(self.pages.test)
        first = int(self.pages.corpus.lengths[: self.pages.test[0]].sum())  # the test pages are the last
        return self.monitor(policy) | {"test_names": float((names == self.pages.labels[first:]).mean())}
