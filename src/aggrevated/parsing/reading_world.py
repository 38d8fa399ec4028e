"""The world of a reader: generated pages in very many hands, real ink beside them if there is some.

What is parsed, and what a mistake costs, is as in `world.Algebra`; the pages have exponents, fractions and roots, and
the policy learns the symbols' names and its own expected costs along.
"""

from __future__ import annotations

import os
from collections.abc import Container
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from aggrevated.errors import IdleError
from aggrevated.files import Facts
from aggrevated.parsing.confidence import Correcting
from aggrevated.parsing.dataset import library
from aggrevated.parsing.judging import judged as judged
from aggrevated.parsing.learners.reading import ReadingPolicy
from aggrevated.parsing.page_worlds import Monitor, Named, teach, world_of
from aggrevated.parsing.splits import Split, to_read
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated.parsing.world import CORRECTED, Algebra, asked_for, left_out_of
from aggrevated.policies import Policy
from aggrevated.settings import COUNT, SHARE, at_least, setting
from aggrevated.worlds import EvaluationSettings, World, WorldSettings


@dataclass(frozen=True)
class ReadPages(EvaluationSettings):
    """Test pages, real ink, or corrected pages."""

    crohme: str = setting("", "Real ink: a folder of InkML files or with dev/ in it; all that can be used of it.")
    pages: str = setting("", CORRECTED)
    verbose: bool = setting(False, "List the files of that folder that cannot be used.")

    def measure(self, world: WorldSettings, policy: Policy) -> Facts:
        """UAS, names, by kinds of pages and symbols, and how far the policy's sureness can be trusted."""
        assert isinstance(world, Handwriting) and isinstance(policy, ReadingPolicy)
        folders = asked_for(self.crohme, self.pages)
        if not folders:
            return judged(policy, world.split().test, named=bool(world.pages))
        core = () if self.pages else folders[0].core
        return judged(policy, folders[0].pages, core, bool(world.pages)) | left_out_of(folders, self.verbose)


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
        if self.pages:
            return self.with_pages(given)
        return replace(self, crohme=os.path.realpath(self.crohme)) if self.crohme else self

    @property
    def label_of_others(self) -> str:
        return ", with real ink" if self.crohme else ""

    def split_of_others(self) -> Split:
        return to_read(self.crohme, self.sets, self.data_seed, self.pictured)

    def build_others(self) -> World:
        pages = library(self.crohme, self.sets, self.data_seed, self.warps, self.pictured)
        world = world_of(pages, SYSTEMS[self.system], Correcting, lambda policy: teach(policy, pages))
        assert isinstance(world.monitor, Monitor)
        return replace(world, monitor=Named(world.monitor, pages))
