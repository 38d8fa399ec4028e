"""Problem of a reader: generated pages by very many writers, optionally together with real ink.

Transitions and their costs are those of `aggrevated.parsing.problem`. The pages also have exponents,
fractions and roots, and the policy also learns the symbols' names and its own expected costs.
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

CORRECTED = "Evaluate on the corrected pages in this folder: InkML files that 'draw' saved."


def find_evaluation_folders(crohme: str, pages: str) -> list[Folder]:
    """Return the named folder of real ink or of corrected pages, or nothing if neither is named."""
    if crohme and pages:
        raise UsageError("--crohme and --corrected-pages name different pages; give one of them")
    return [read_corrected_folder(Path(pages))] if pages else find_named_folders(crohme)


@dataclass(frozen=True)
class ReaderEvaluationSettings(EvaluationSettings):
    """Which pages to evaluate on: test pages, real ink or corrected pages."""

    crohme: str = setting("", "Evaluate on the real ink in this folder: InkML files, or a dev/ folder of them.")
    corrected_pages: str = setting("", CORRECTED)
    verbose: bool = setting(False, "List the files in the folder that cannot be used.")

    def measure(self, problem: ProblemSettings, policy: Policy) -> JsonDict:
        """Return UAS, names, scores by kind of page and symbol, and calibration."""
        assert isinstance(problem, ReaderProblemSettings) and isinstance(policy, ReadingPolicy)
        folders = find_evaluation_folders(self.crohme, self.corrected_pages)
        if not folders:
            return evaluate_reader(policy, problem.split().test, named=bool(problem.corrected_pages))
        core = () if self.corrected_pages else folders[0].core
        return evaluate_reader(policy, folders[0].pages, core, bool(problem.corrected_pages)) | count_skipped_files(
            folders, self.verbose
        )


@dataclass(frozen=True, kw_only=True)
class ReaderProblemSettings(AlgebraProblemSettings):
    """Pages to read: generated ones and optionally real ink. The metric is UAS."""

    name = "handwriting"
    protocol_settings = (*AlgebraProblemSettings.protocol_settings, "corrected_pages")
    selection_settings = ("corrected_pages",)
    evaluation: ClassVar[type[EvaluationSettings]] = ReaderEvaluationSettings
    crohme: str = setting("", "Also learn from CROHME's InkML files in this folder, which has train/ and dev/ in it.")
    corrected_pages: str = setting(
        "", "Train the builtin reader on the corrected pages in this folder: InkML files that 'draw' saved."
    )
    generated_pages: int = setting(20_000, "Number of generated pages to learn from.", at_least(20))
    augmented_copies: int = setting(4, "Number of rewritten copies of each page of real ink.", COUNT)
    rasterized_fraction: float = setting(
        0.2, "Share of the pages whose ink looks as if it was read from a picture.", UNIT_INTERVAL
    )

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        """Return the settings with absolute folders; raise for settings that have no effect."""
        if "single_writer" in given:
            raise UnusedSettingError(
                "--single-writer has no effect on pages by many writers; leave it out", "single_writer"
            )
        if self.corrected_pages:
            return self._fill_corrected_pages(given)
        return replace(self, crohme=os.path.realpath(self.crohme)) if self.crohme else self

    def _fill_corrected_pages(self, given: Container[str]) -> Self:
        """Return the settings of corrected pages with an absolute folder."""
        for name in get_declared_settings(type(self)):
            if name in given and name not in ("corrected_pages", "data_seed", "transition_system"):
                reason = f"{to_flag(name)} has no effect on corrected pages"
                raise UnusedSettingError(f"{reason}; leave out one of the two", name)
        return replace(self, corrected_pages=os.path.realpath(self.corrected_pages))

    def recommended_components(self) -> dict[str, str]:
        """Return the builtin policy and start if there are corrected pages."""
        return {"policy": "builtin", "start": "builtin"} if self.corrected_pages else {}

    def check(self, chosen: SelectedComponents) -> None:
        if self.corrected_pages:
            rule = "builtin with --corrected-pages, which train the builtin reader; or leave --corrected-pages out"
            check_setting(chosen.policy.name == "builtin", "policy", chosen.policy.name, rule)
            builtin_system = load_builtin_reader().system.name
            check_setting(
                self.transition_system == builtin_system,
                "transition_system",
                self.transition_system,
                f"{builtin_system} with --corrected-pages, which is the builtin reader's",
            )
        else:
            rule = "another one without --corrected-pages; or give --corrected-pages"
            check_setting(chosen.policy.name != "builtin", "policy", chosen.policy.name, rule)
        super().check(chosen)

    @property
    def metric_name(self) -> str:  # type: ignore[override]  # a constant in other problems
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
        problem = make_problem(
            pages,
            SYSTEMS[self.transition_system],
            CalibratingEvaluator,
            lambda policy: attach_training_pages(policy, pages),
        )
        assert isinstance(problem.monitor, Monitor)
        return replace(problem, monitor=NamesMonitor(problem.monitor, pages))
