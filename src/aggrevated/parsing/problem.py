"""What all worlds of pages are built of: parsers to learn from, to choose on and to report, and what is measured."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import torch
from gymnasium.spaces import Discrete, Space

from aggrevated.core.errors import UnusedSettingError, UsageError
from aggrevated.core.settings import (
    COUNT,
    MAX_COUNT,
    SEED,
    SelectedComponents,
    at_least,
    check_setting,
    one_of,
    setting,
    to_flag,
)
from aggrevated.engines import Engine
from aggrevated.parsing.dataset import Dataset, load_dataset, make_corpus_and_features
from aggrevated.parsing.learners.kernel import KernelPolicy
from aggrevated.parsing.learners.parser_policies import ParsingPolicy
from aggrevated.parsing.pages.crohme import Folder, read_folder, stack_expressions
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.parser import OBSERVATION_SPACE, Parser
from aggrevated.parsing.scoring import (
    MicroUasEvaluator,
    format_arc_length,
    get_symbol_label,
    parse_batch,
    score_by_kind,
    score_heads,
)
from aggrevated.parsing.splits import (
    Split,
    describe_skipped_files,
    find_evaluation_folder,
    find_inkml_folders,
    load_evaluation_pages,
    load_page_split,
)
from aggrevated.parsing.transitions import TransitionSystem
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated.policies import Policy
from aggrevated.problems import EvaluationSettings, Problem, ProblemSettings
from aggrevated.storage import JsonDict
from aggrevated.validation import ValidationScore

Reader: TypeAlias = ParsingPolicy | KernelPolicy


def make_problem(
    pages: Dataset,
    system: TransitionSystem,
    validate: Callable[[Parser], Callable[[Policy], ValidationScore]],
    prepare: Callable[[Policy], None],
) -> Problem:
    """The parser of the pages to learn from, its expert, and the parsers of those to choose on and to report."""
    simulator = Parser(pages.corpus, pages.train, system=system)
    chosen_on, reported = (Parser(pages.corpus, part, True, system) for part in (pages.validation, pages.test))
    return Problem(
        simulator,
        simulator.expert,
        validate=validate(chosen_on),
        test=lambda policy: score_heads(parse_batch(policy, reported), reported),
        fingerprint={"pages": torch.tensor(list(bytes.fromhex(pages.key)), dtype=torch.uint8)},
        monitor=Monitor(MicroUasEvaluator(reported)),
        prepare=prepare,
    )


def attach_pages(policy: Policy, pages: Dataset) -> None:
    """Give a policy the pages, and the projection that made their features, with geometry if it is to see that."""
    assert isinstance(policy, Reader)
    whole = pages.projection
    width = policy.projection.width
    policy.projection = whole if width == whole.width else whole.drop_geometry()
    policy.with_pages(pages.features[:, :, :width], pages.corpus.lengths)


@dataclass(frozen=True)
class Monitor:
    """UAS on the test pages, which no choice looks at."""

    measure: MicroUasEvaluator

    def with_engine(self, engine: Engine) -> Monitor:
        """The same by another engine."""
        return Monitor(self.measure.with_engine(engine))

    def __call__(self, policy: Policy) -> dict[str, float]:
        return {"test_uas": self.measure(policy).value}


SPLIT = "{} has no train/ and dev/: its own files are split by writers, 80/10/10"


@dataclass(frozen=True)
class PageEvaluationSettings(EvaluationSettings):
    """Test pages, or real ink."""

    crohme: str = setting(
        "", "Real ink: a folder of InkML files or with dev/ in it; only its core expressions are used."
    )
    compose_pages: bool = setting(False, "Put the expressions of each writer together to pages of one to three lines.")
    verbose: bool = setting(False, "List the files of that folder that cannot be used.")

    def measure(self, world: ProblemSettings, policy: Policy) -> JsonDict:
        """UAS in all its forms, and by kind of symbol."""
        assert isinstance(world, AlgebraProblemSettings)
        pages = self.select_pages(world)
        parser = world.make_parser(policy, pages)
        heads = parse_batch(policy, parser)
        kinds = {
            "by_symbol": score_by_kind(pages, heads, get_symbol_label),
            "by_arc_length": score_by_kind(pages, heads, format_arc_length),
        }
        return score_heads(heads, parser).to_dict() | kinds | self.left_out

    @property
    def left_out(self) -> JsonDict:
        """What is told of files that cannot be used."""
        return count_skipped_files(find_named_folders(self.crohme), self.verbose)

    def select_pages(self, world: AlgebraProblemSettings) -> list[Page]:
        """Of what the policy learned from, only the test pages."""
        if self.compose_pages and not self.crohme and not world.crohme:
            raise UsageError("generated pages have one to three lines already; --compose-pages needs --crohme")
        seen = not self.crohme or os.path.realpath(self.crohme) == world.crohme
        pages = world.split().test if seen else load_evaluation_pages(Path(self.crohme))
        return stack_expressions(pages, np.random.default_rng(0)) if self.compose_pages else pages


def find_named_folders(crohme: str) -> list[Folder]:
    """The folder of real ink that is named; none where none is."""
    return [read_folder(find_evaluation_folder(Path(crohme)))] if crohme else []


def count_skipped_files(folders: Sequence[Folder], verbose: bool) -> JsonDict:
    """How many files of these folders cannot be used, by reason, and which, if asked; nothing where all can."""
    for found in folders:
        if found.skipped:
            files = {"files_left_out": dict(found.skipped)} if verbose else {}
            return {"left_out": dict(found.counts)} | files
    return {}


@dataclass(frozen=True, kw_only=True)
class AlgebraProblemSettings(ProblemSettings):
    """Handwritten algebra, generated or real. What is measured is UAS, so the expert's is 1."""

    name = "algebra"
    expert_name = "gold"
    digits = 3
    protocol_settings: ClassVar[tuple[str, ...]] = ("crohme", "generated_pages", "single_writer", "data_seed")
    evaluation: ClassVar[type[EvaluationSettings]] = PageEvaluationSettings
    transition_system: str = setting("arc-eager", f"The transition system: {' or '.join(SYSTEMS)}.", one_of(SYSTEMS))
    augmented_copies: int = setting(0, "Rewritten copies of each training page.", COUNT)
    crohme: str = setting(
        "", "Learn from CROHME's InkML files in this folder (train/ and dev/), not from generated ink."
    )
    generated_pages: int = setting(400, "How many sets of equations are generated.", at_least(1))
    single_writer: bool = setting(False, "One hand writes all generated sets, as in the paper's data.")
    data_seed: int = setting(0, "The seed of the generated pages, and of the choice of writers for validation.", SEED)

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        """A folder of real ink is found again from everywhere."""
        if not self.crohme:
            return self
        for name in ("generated_pages", "single_writer"):
            if name in given:
                idle = f"{to_flag(name)} has no effect on real ink"
                raise UnusedSettingError(f"{idle}; leave --crohme out, or leave it out", name)
        return replace(self, crohme=os.path.realpath(self.crohme))

    def check(self, chosen: SelectedComponents) -> None:
        pages = self.generated_pages * (1 + self.augmented_copies)
        check_setting(
            pages <= MAX_COUNT,
            "augmented_copies",
            self.augmented_copies,
            f"fewer: with {self.generated_pages} sets that is {pages:,} pages of {MAX_COUNT:,}",
        )

    metric_name = "UAS"

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
        lines = [] if len(find_inkml_folders(Path(self.crohme))) == 2 else [SPLIT.format(self.crohme)]
        return "\n".join([*lines, *describe_skipped_files(Path(self.crohme))])

    def spaces(self) -> tuple[Space[Any], Space[Any]]:
        return OBSERVATION_SPACE, Discrete(len(SYSTEMS[self.transition_system].actions))

    def split(self) -> Split:
        """The pages."""
        return load_page_split(self.crohme, self.generated_pages, self.data_seed, self.single_writer)

    def make_parser(self, policy: Policy, pages: Sequence[Page]) -> Parser:
        """The parser of these pages, which the policy now reads."""
        assert isinstance(policy, Reader)
        corpus, features = make_corpus_and_features(pages, policy.projection)
        policy.with_pages(features, corpus.lengths)
        return Parser(corpus, np.arange(len(pages)), in_order=True, system=SYSTEMS[self.transition_system])

    def build(self, seed: int) -> Problem:
        pages = load_dataset(
            self.crohme, self.generated_pages, self.data_seed, self.single_writer, self.augmented_copies
        )
        return make_problem(
            pages, SYSTEMS[self.transition_system], MicroUasEvaluator, lambda policy: attach_pages(policy, pages)
        )
