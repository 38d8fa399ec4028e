"""Parsing: pages of handwriting, an expert that knows their gold trees, other pages to choose on and to report."""

from __future__ import annotations

import os
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from gymnasium.spaces import Discrete, Space

from aggrevated.core.settings import (
    COUNT,
    MOST,
    SEED,
    Chosen,
    at_least,
    flag,
    one_of,
    require,
    setting,
)
from aggrevated.errors import IdleError, UsageError
from aggrevated.parsing.dataset import dataset, of_pages
from aggrevated.parsing.page_problems import Reader, show, world_of
from aggrevated.parsing.pages.crohme import Folder, compose, read_folder
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.parser import OBSERVATIONS, Parser
from aggrevated.parsing.scoring import Micro, arc_length, by_kind, parsed, scores, symbol
from aggrevated.parsing.splits import Split, evaluated, folders, left_out, pages_of, to_evaluate
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated.policies import Policy
from aggrevated.problems import EvaluationSettings, World, WorldSettings
from aggrevated.storage import Facts

SPLIT = "{} has no train/ and dev/: its own files are split by writers, 80/10/10"


@dataclass(frozen=True)
class OnPages(EvaluationSettings):
    """Test pages, or real ink."""

    crohme: str = setting(
        "", "Real ink: a folder of InkML files or with dev/ in it; only its core expressions are used."
    )
    composed: bool = setting(False, "Put the expressions of each writer together to pages of one to three lines.")
    verbose: bool = setting(False, "List the files of that folder that cannot be used.")

    def measure(self, world: WorldSettings, policy: Policy) -> Facts:
        """UAS in all its forms, and by kind of symbol."""
        assert isinstance(world, Algebra)
        pages = self.chosen_pages(world)
        parser = world.parser_of(policy, pages)
        heads = parsed(policy, parser)
        kinds = {"by_symbol": by_kind(pages, heads, symbol), "by_arc_length": by_kind(pages, heads, arc_length)}
        return scores(heads, parser).facts() | kinds | self.left_out

    @property
    def left_out(self) -> Facts:
        """What is told of files that cannot be used."""
        return left_out_of(asked_for(self.crohme), self.verbose)

    def chosen_pages(self, world: Algebra) -> list[Page]:
        """Of what the policy learned from, only the test pages."""
        if self.composed and not self.crohme and not world.crohme:
            raise UsageError("generated pages have one to three lines already; --composed needs --crohme")
        seen = not self.crohme or os.path.realpath(self.crohme) == world.crohme
        pages = world.split().test if seen else to_evaluate(Path(self.crohme))
        return compose(pages, np.random.default_rng(0)) if self.composed else pages


def asked_for(crohme: str) -> list[Folder]:
    """The folder of real ink that is named; none where none is."""
    return [read_folder(evaluated(Path(crohme)))] if crohme else []


def left_out_of(folders: Sequence[Folder], verbose: bool) -> Facts:
    """How many files of these folders cannot be used, by reason, and which, if asked; nothing where all can."""
    for found in folders:
        if found.skipped:
            files = {"files_left_out": dict(found.skipped)} if verbose else {}
            return {"left_out": dict(found.counts)} | files
    return {}


@dataclass(frozen=True, kw_only=True)
class Algebra(WorldSettings):
    """Handwritten algebra, generated or real. What is measured is UAS, so the expert's is 1."""

    name = "algebra"
    expert_name = "gold"
    digits = 3
    measured_on: ClassVar[tuple[str, ...]] = ("crohme", "sets", "single_writer", "data_seed")
    evaluation: ClassVar[type[EvaluationSettings]] = OnPages
    system: str = setting("arc-eager", f"The transition system: {' or '.join(SYSTEMS)}.", one_of(SYSTEMS))
    warps: int = setting(0, "Rewritten copies of each training page.", COUNT)
    crohme: str = setting(
        "", "Learn from CROHME's InkML files in this folder (train/ and dev/), not from generated ink."
    )
    sets: int = setting(400, "How many sets of equations are generated.", at_least(1))
    single_writer: bool = setting(False, "One hand writes all generated sets, as in the paper's data.")
    data_seed: int = setting(0, "The seed of the generated pages, and of the choice of writers for validation.", SEED)

    def completed(self, iterations: int, given: Container[str]) -> Self:
        """A folder of real ink is found again from everywhere."""
        if not self.crohme:
            return self
        for name in ("sets", "single_writer"):
            if name in given:
                idle = f"{flag(name)} has no effect on real ink"
                raise IdleError(f"{idle}; leave --crohme out, or leave it out", name)
        return replace(self, crohme=os.path.realpath(self.crohme))

    def check(self, chosen: Chosen) -> None:
        pages = self.sets * (1 + self.warps)
        require(pages <= MOST, "warps", self.warps, f"fewer: with {self.sets} sets that is {pages:,} pages of {MOST:,}")

    measured = "UAS"

    @property
    def steps(self) -> int:
        return 30  # two for each symbol

    @property
    def label(self) -> str:
        """What a legend adds."""
        return ", real ink" if self.crohme else ", one writer" if self.single_writer else ""

    @property
    def notice(self) -> str:
        if not self.crohme:
            return ""
        lines = [] if len(folders(Path(self.crohme))) == 2 else [SPLIT.format(self.crohme)]
        return "\n".join([*lines, *left_out(Path(self.crohme))])

    def spaces(self) -> tuple[Space[Any], Space[Any]]:
        return OBSERVATIONS, Discrete(len(SYSTEMS[self.system].actions))

    def split(self) -> Split:
        """The pages."""
        return pages_of(self.crohme, self.sets, self.data_seed, self.single_writer)

    def parser_of(self, policy: Policy, pages: Sequence[Page]) -> Parser:
        """The parser of these pages, which the policy now reads."""
        assert isinstance(policy, Reader)
        corpus, features = of_pages(pages, policy.projection)
        policy.with_pages(features, corpus.lengths)
        return Parser(corpus, np.arange(len(pages)), in_order=True, system=SYSTEMS[self.system])

    def build(self, seed: int) -> World:
        pages = dataset(self.crohme, self.sets, self.data_seed, self.single_writer, self.warps)
        return world_of(pages, SYSTEMS[self.system], Micro, lambda policy: show(policy, pages))
