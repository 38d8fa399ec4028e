"""Problem of parsing handwritten algebra: its settings, its parsers, its validation and its evaluation."""

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
    """Build the problem of a dataset.

    Args:
        pages: training, validation and test pages.
        system: transition system of the parsers.
        validate: function that makes the validator from the parser of the validation pages.
        prepare: function that gives a policy the pages.

    Returns:
        The problem, whose simulator parses the training pages.
    """
    simulator = Parser(pages.corpus, pages.train, system=system)
    validation, test = (Parser(pages.corpus, indices, True, system) for indices in (pages.validation, pages.test))
    return Problem(
        simulator,
        simulator.expert,
        validate=validate(validation),
        test=lambda policy: score_heads(parse_batch(policy, test), test),
        fingerprint={"pages": torch.tensor(list(bytes.fromhex(pages.key)), dtype=torch.uint8)},
        monitor=Monitor(MicroUasEvaluator(test)),
        prepare=prepare,
    )


def attach_pages(policy: Policy, pages: Dataset) -> None:
    """Give a policy the pages and their projection, with geometry features only if the policy uses them."""
    assert isinstance(policy, Reader)
    projection = pages.projection
    width = policy.projection.width
    policy.projection = projection if width == projection.width else projection.drop_geometry()
    policy.with_pages(pages.features[:, :, :width], pages.corpus.lengths)


@dataclass(frozen=True)
class Monitor:
    """Monitor that records the UAS on the test pages, which selects nothing."""

    measure: MicroUasEvaluator

    def with_engine(self, engine: Engine) -> Monitor:
        """Return a copy that evaluates on `engine`."""
        return Monitor(self.measure.with_engine(engine))

    def __call__(self, policy: Policy) -> dict[str, float]:
        """Return the test UAS of a policy."""
        return {"test_uas": self.measure(policy).value}


SPLIT = "{} has no train/ and dev/: its files are split by writers, 80/10/10"


@dataclass(frozen=True)
class PageEvaluationSettings(EvaluationSettings):
    """Evaluation of a parser on the test pages or on real ink."""

    crohme: str = setting(
        "", "Evaluate on real ink: a folder of InkML files, or one with dev/ in it; only core expressions are used."
    )
    compose_pages: bool = setting(False, "Stack the expressions of each writer to pages of one to three lines.")
    verbose: bool = setting(False, "List the files of the --crohme folder that cannot be used.")

    def measure(self, problem: ProblemSettings, policy: Policy) -> JsonDict:
        """Return the UAS scores of a policy, in total and by kind of symbol, for JSON."""
        assert isinstance(problem, AlgebraProblemSettings)
        pages = self.select_pages(problem)
        parser = problem.make_parser(policy, pages)
        heads = parse_batch(policy, parser)
        scores_by_kind = {
            "by_symbol": score_by_kind(pages, heads, get_symbol_label),
            "by_arc_length": score_by_kind(pages, heads, format_arc_length),
        }
        return score_heads(heads, parser).to_dict() | scores_by_kind | self.left_out

    @property
    def left_out(self) -> JsonDict:
        """Return the numbers of files of the --crohme folder that cannot be used, for JSON."""
        return count_skipped_files(find_named_folders(self.crohme), self.verbose)

    def select_pages(self, problem: AlgebraProblemSettings) -> list[Page]:
        """Return the pages to evaluate on: only the test pages if the policy learned from the same folder."""
        if self.compose_pages and not self.crohme and not problem.crohme:
            raise UsageError("--compose-pages has no effect on generated pages, of one to three lines: add --crohme")
        is_training_folder = not self.crohme or os.path.realpath(self.crohme) == problem.crohme
        pages = problem.split().test if is_training_folder else load_evaluation_pages(Path(self.crohme))
        return stack_expressions(pages, np.random.default_rng(0)) if self.compose_pages else pages


def find_named_folders(crohme: str) -> list[Folder]:
    """Return the contents of the folder `crohme` for evaluation, or an empty list if it is empty."""
    return [read_folder(find_evaluation_folder(Path(crohme)))] if crohme else []


def count_skipped_files(folders: Sequence[Folder], verbose: bool) -> JsonDict:
    """Return how many files of the first folder with unusable files cannot be used, by reason.

    Args:
        folders: contents of folders.
        verbose: whether the names of the files are listed, too.

    Returns:
        Counts and names for JSON; empty if all files can be used.
    """
    for folder in folders:
        if folder.skipped:
            files = {"files_left_out": dict(folder.skipped)} if verbose else {}
            return {"left_out": dict(folder.counts)} | files
    return {}


@dataclass(frozen=True, kw_only=True)
class AlgebraProblemSettings(ProblemSettings):
    """Parsing of handwritten algebra, generated or real; the score is the UAS, and the expert's UAS is 1."""

    name = "algebra"
    expert_name = "gold"
    digits = 3
    protocol_settings: ClassVar[tuple[str, ...]] = ("crohme", "generated_pages", "single_writer", "data_seed")
    evaluation: ClassVar[type[EvaluationSettings]] = PageEvaluationSettings
    transition_system: str = setting("arc-eager", f"Transition system: {' or '.join(SYSTEMS)}.", one_of(SYSTEMS))
    augmented_copies: int = setting(0, "Number of rewritten copies of each training page.", COUNT)
    crohme: str = setting(
        "", "Learn from CROHME's InkML files in this folder (with train/ and dev/) instead of generated ink."
    )
    generated_pages: int = setting(400, "Number of generated sets of equations.", at_least(1))
    single_writer: bool = setting(False, "Write all generated sets in one hand, as in the paper's data.")
    data_seed: int = setting(0, "Seed of the generated pages and of the choice of validation writers.", SEED)

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        """Return the settings with the absolute path of `crohme`."""
        if not self.crohme:
            return self
        for name in ("generated_pages", "single_writer"):
            if name in given:
                flag = to_flag(name)
                raise UnusedSettingError(f"{flag} has no effect on real ink; leave out {flag} or --crohme", name)
        return replace(self, crohme=os.path.realpath(self.crohme))

    def check(self, chosen: SelectedComponents) -> None:
        """Raise a `UsageError` if the number of training pages with their copies is too large."""
        pages = self.generated_pages * (1 + self.augmented_copies)
        check_setting(
            pages <= MAX_COUNT,
            "augmented_copies",
            self.augmented_copies,
            f"smaller: {self.generated_pages} sets with copies are {pages:,} pages, and {MAX_COUNT:,} is the maximum",
        )

    metric_name = "UAS"

    @property
    def steps(self) -> int:
        """Return the approximate number of steps of an episode, two for each symbol."""
        return 30

    @property
    def label(self) -> str:
        """Return what a legend adds for these settings."""
        return ", real ink" if self.crohme else ", one writer" if self.single_writer else ""

    @property
    def notice(self) -> str:
        """Return messages about the --crohme folder; empty without messages."""
        if not self.crohme:
            return ""
        lines = [] if len(find_inkml_folders(Path(self.crohme))) == 2 else [SPLIT.format(self.crohme)]
        return "\n".join([*lines, *describe_skipped_files(Path(self.crohme))])

    def spaces(self) -> tuple[Space[Any], Space[Any]]:
        """Return the observation space and the action space."""
        return OBSERVATION_SPACE, Discrete(len(SYSTEMS[self.transition_system].actions))

    def split(self) -> Split:
        """Return the pages for training, validation and test."""
        return load_page_split(self.crohme, self.generated_pages, self.data_seed, self.single_writer)

    def make_parser(self, policy: Policy, pages: Sequence[Page]) -> Parser:
        """Give a policy these pages and return their parser."""
        assert isinstance(policy, Reader)
        corpus, features = make_corpus_and_features(pages, policy.projection)
        policy.with_pages(features, corpus.lengths)
        return Parser(corpus, np.arange(len(pages)), in_order=True, system=SYSTEMS[self.transition_system])

    def build(self, seed: int) -> Problem:
        """Build the problem; its pages depend on `data_seed`, not on `seed`."""
        pages = load_dataset(
            self.crohme, self.generated_pages, self.data_seed, self.single_writer, self.augmented_copies
        )
        return make_problem(
            pages, SYSTEMS[self.transition_system], MicroUasEvaluator, lambda policy: attach_pages(policy, pages)
        )
