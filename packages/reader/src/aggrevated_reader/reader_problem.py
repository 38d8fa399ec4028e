"""The world of a reader: generated pages in very many hands, real ink beside them if there is some.

What is parsed, and what a mistake costs, is as in `world.Algebra`; the pages have exponents, fractions and roots, and
the policy learns the symbols' names and its own expected costs along.
"""

from __future__ import annotations

import os
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

from aggrevated.core.errors import UnusedSettingError, UsageError
from aggrevated.core.settings import (
    COUNT,
    UNIT_INTERVAL,
    SelectedComponents,
    at_least,
    check_setting,
    get_declared_settings,
    setting,
    to_flag,
)
from aggrevated.parsing.pages.crohme import Folder
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.parser import Parser
from aggrevated.parsing.problem import (
    AlgebraProblemSettings,
    Monitor,
    count_skipped_files,
    find_named_folders,
    make_problem,
)
from aggrevated.parsing.splits import Split
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated.policies import Policy
from aggrevated.problems import EvaluationSettings, Problem, ProblemSettings
from aggrevated.storage import JsonDict
from aggrevated_reader.calibration import CalibratingEvaluator
from aggrevated_reader.corrected_pages_problem import (
    describe_corrected_pages,
    load_corrected_pages,
    make_corrected_pages_problem,
)
from aggrevated_reader.dataset import NamesMonitor, attach_training_pages, load_page_arrays
from aggrevated_reader.evaluation import evaluate_reader as evaluate_reader
from aggrevated_reader.evaluation import prepare_gold_parser
from aggrevated_reader.learners.reading_policy import ReadingPolicy
from aggrevated_reader.learners.shipped_reader import load_builtin_reader
from aggrevated_reader.pages.corrected_files import read_folder as read_corrected_folder
from aggrevated_reader.splits import load_reader_split

CORRECTED = "Corrected pages: a folder of InkML files as 'draw' saves them."


def find_evaluation_folders(crohme: str, pages: str) -> list[Folder]:
    """The folder of real ink or of corrected pages that is named; none where neither is."""
    if crohme and pages:
        raise UsageError("--crohme and --corrected-pages name different pages; give one of them")
    return [read_corrected_folder(Path(pages))] if pages else find_named_folders(crohme)


@dataclass(frozen=True)
class ReaderEvaluationSettings(EvaluationSettings):
    """Test pages, real ink, or corrected pages."""

    crohme: str = setting("", "Real ink: a folder of InkML files or with dev/ in it; all that can be used of it.")
    corrected_pages: str = setting("", CORRECTED)
    verbose: bool = setting(False, "List the files of that folder that cannot be used.")

    def measure(self, world: ProblemSettings, policy: Policy) -> JsonDict:
        """UAS, names, by kinds of pages and symbols, and how far the policy's sureness can be trusted."""
        assert isinstance(world, ReaderProblemSettings) and isinstance(policy, ReadingPolicy)
        folders = find_evaluation_folders(self.crohme, self.corrected_pages)
        if not folders:
            return evaluate_reader(policy, world.split().test, named=bool(world.corrected_pages))
        core = () if self.corrected_pages else folders[0].core
        return evaluate_reader(policy, folders[0].pages, core, bool(world.corrected_pages)) | count_skipped_files(
            folders, self.verbose
        )


@dataclass(frozen=True, kw_only=True)
class ReaderProblemSettings(AlgebraProblemSettings):
    """Pages to be read: generated ones, and real ink beside them. What is measured is UAS."""

    name = "handwriting"
    protocol_settings = (*AlgebraProblemSettings.protocol_settings, "corrected_pages")
    selection_settings = ("corrected_pages",)
    evaluation: ClassVar[type[EvaluationSettings]] = ReaderEvaluationSettings
    crohme: str = setting(
        "", "Learn from CROHME's InkML files in this folder (train/ and dev/), too: all that can be used of them."
    )
    corrected_pages: str = setting(
        "", "Teach the reader in the package the corrected pages in this folder, InkML files as 'draw' saves them."
    )
    generated_pages: int = setting(20_000, "How many pages are generated.", at_least(20))
    augmented_copies: int = setting(4, "Rewritten copies of each page of real ink.", COUNT)
    rasterized_fraction: float = setting(
        0.2, "The share of the pages whose ink looks as if it was read from a picture.", UNIT_INTERVAL
    )

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        """A folder of real ink is found again from everywhere."""
        if "single_writer" in given:
            raise UnusedSettingError(
                "--single-writer has no effect on pages in many hands; leave it out", "single_writer"
            )
        if self.corrected_pages:
            return self._fill_corrected_pages(given)
        return replace(self, crohme=os.path.realpath(self.crohme)) if self.crohme else self

    def _fill_corrected_pages(self, given: Container[str]) -> Self:
        """The same for corrected pages, whose folder is found again from everywhere."""
        for name in get_declared_settings(type(self)):
            if name in given and name not in ("corrected_pages", "data_seed", "transition_system"):
                idle = f"{to_flag(name)} has no effect on corrected pages"
                raise UnusedSettingError(f"{idle}; leave --corrected-pages out, or leave it out", name)
        return replace(self, corrected_pages=os.path.realpath(self.corrected_pages))

    def recommended_components(self) -> dict[str, str]:
        """Corrected pages are for a reader that is good already."""
        return {"policy": "builtin", "start": "builtin"} if self.corrected_pages else {}

    def check(self, chosen: SelectedComponents) -> None:
        if self.corrected_pages:
            rule = "builtin with --corrected-pages, which teach the builtin reader; or leave --corrected-pages out"
            check_setting(chosen.policy.name == "builtin", "policy", chosen.policy.name, rule)
            own = load_builtin_reader().system.name
            check_setting(
                self.transition_system == own,
                "transition_system",
                self.transition_system,
                f"{own} with --corrected-pages, as that of the reader",
            )
        else:
            rule = "another: it is for corrected pages; or give --corrected-pages"
            check_setting(chosen.policy.name != "builtin", "policy", chosen.policy.name, rule)
        super().check(chosen)

    @property
    def metric_name(self) -> str:  # type: ignore[override]  # in other worlds the same whatever is set
        return "heads with names" if self.corrected_pages else "UAS"

    @property
    def label(self) -> str:
        return ", corrected pages" if self.corrected_pages else ", with real ink" if self.crohme else ""

    @property
    def notice(self) -> str:
        return (
            "\n".join(describe_corrected_pages(self.corrected_pages, self.data_seed))
            if self.corrected_pages
            else super().notice
        )

    def split(self) -> Split:
        if self.corrected_pages:
            return load_corrected_pages(self.corrected_pages, self.data_seed).split
        return load_reader_split(self.crohme, self.generated_pages, self.data_seed, self.rasterized_fraction)

    def make_parser(self, policy: Policy, pages: Sequence[Page]) -> Parser:
        assert isinstance(policy, ReadingPolicy)
        return prepare_gold_parser(policy, pages)

    def build(self, seed: int) -> Problem:
        if self.corrected_pages:
            return make_corrected_pages_problem(self.corrected_pages, self.data_seed)
        pages = load_page_arrays(
            self.crohme, self.generated_pages, self.data_seed, self.augmented_copies, self.rasterized_fraction
        )
        world = make_problem(
            pages,
            SYSTEMS[self.transition_system],
            CalibratingEvaluator,
            lambda policy: attach_training_pages(policy, pages),
        )
        assert isinstance(world.monitor, Monitor)
        return replace(world, monitor=NamesMonitor(world.monitor, pages))
