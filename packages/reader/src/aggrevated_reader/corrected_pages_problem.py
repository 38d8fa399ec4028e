"""Problem of corrected pages: the builtin reader learns further from pages that users corrected.

Many rewritten copies of each corrected page imitate the same hand. Generated pages are added so that the
reader does not forget what it knows. The best policy is selected on pages of both kinds.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError
from aggrevated.core.statistics import estimate_standard_error_of_ratio
from aggrevated.engines import Engine
from aggrevated.parsing.dataset import compute_features
from aggrevated.parsing.feature_cache import cache_key, load_or_compute
from aggrevated.parsing.features.symbols import extract_detailed_features
from aggrevated.parsing.pages.crohme import Files
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.parser import Parser
from aggrevated.parsing.problem import make_problem
from aggrevated.parsing.scoring import UasScore, extract_predicted_heads, parse_greedily, score_heads
from aggrevated.parsing.splits import Split, augment_page, exclude_strings
from aggrevated.parsing.transitions.configurations import NO_SYMBOL
from aggrevated.policies import Policy
from aggrevated.problems import Problem
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.storage import digest_tensors
from aggrevated.validation import ValidationScore
from aggrevated_reader.calibration import calibrate_policy
from aggrevated_reader.dataset import PageArrays, attach_training_pages, make_label_encoder, make_page_arrays
from aggrevated_reader.learners.reading_policy import ReadingPolicy
from aggrevated_reader.learners.shipped_reader import load_builtin_reader
from aggrevated_reader.learners.symbol_names import BYTES, CLASSES
from aggrevated_reader.pages.corrected_files import list_inkml_files, read_folder
from aggrevated_reader.pages.generated import generate_pages
from aggrevated_reader.splits import try_rasterize_and_trace

# streams of random numbers
_HOLD_OUT_STREAM = 21
_REWRITING_STREAM = 22
_PICTURE_STREAM = 23
# numbers of generated pages: to learn from, to validate on, to test on
BESIDE = 1_500
CHOSEN_ON = 150
REPORTED = 300
# approximate numbers of copies of corrected pages: to learn from, to validate on
OWN = 750
OWN_CHOSEN_ON = 60
MAX_COPIES = 150  # of one page
MIN_PAGES_TO_HOLD_OUT = 20  # corrected pages, from which on a tenth is held out to validate on
PICTURED_FRACTION = 0.2  # of the generated pages: look as if read from a picture, as in the reader's training


@dataclass(frozen=True)
class CorrectedPages:
    """All pages of a run on corrected pages."""

    split: Split  # the corrected pages are the last ones of training and the first ones of validation
    names: tuple[str, ...]  # the classes of symbols: the reader's, then new ones
    own: int  # validation pages by the writers of the corrected pages
    held_out: bool  # whether these are held-out corrected pages, not further copies

    @property
    def training_pages(self) -> list[Page]:
        """The corrected pages to learn from."""
        assert self.split.rewriting
        return self.split.rewriting

    @property
    def copies(self) -> int:
        """The number of rewritten copies of each corrected page to learn from."""
        return min(max(1, OWN // len(self.training_pages)), MAX_COPIES)

    @property
    def originals(self) -> Array:
        """The indices of the original corrected pages among all pages."""
        last = len(self.split.train)
        learned = np.arange(last - len(self.training_pages), last)
        validation = last + self.copies * len(self.training_pages) + np.arange(self.own if self.held_out else 0)
        return np.concatenate([learned, validation])


def load_corrected_pages(folder: str, seed: int) -> CorrectedPages:
    """Return the corrected pages of a folder together with generated pages."""
    return assemble_corrected_pages(folder, list_inkml_files(Path(folder)), seed)


@lru_cache(maxsize=2)
def assemble_corrected_pages(folder: str, files: Files, seed: int) -> CorrectedPages:
    """Return the corrected pages of these files together with generated pages."""
    pages = read_folder(Path(folder)).pages
    names = extend_class_names(pages)
    order = np.random.default_rng([_HOLD_OUT_STREAM, seed]).permutation(len(pages))
    held_out_count = len(pages) // 10 if len(pages) >= MIN_PAGES_TO_HOLD_OUT else 0
    held_out_pages = [pages[i] for i in order[:held_out_count]]
    training_pages = [pages[i] for i in order[held_out_count:]]
    corrected_pages = held_out_pages or rewrite_pages(training_pages, seed)
    train, validation, test = (
        generate_pages(count, 3 * seed + part) for part, count in enumerate((BESIDE, CHOSEN_ON, REPORTED))
    )
    train = exclude_strings(train, validation + test)
    rng = np.random.default_rng([_PICTURE_STREAM, seed])
    train = [try_rasterize_and_trace(page, rng) if rng.random() < PICTURED_FRACTION else page for page in train]
    split = Split([*train, *training_pages], [*corrected_pages, *validation], test, rewriting=training_pages)
    return CorrectedPages(split, names, len(corrected_pages), held_out=bool(held_out_pages))


def rewrite_pages(pages: list[Page], seed: int) -> list[Page]:
    """Return rewritten copies of the pages that differ from the copies to learn from."""
    times = max(1, OWN_CHOSEN_ON // len(pages))
    return [
        augment_page(page, np.random.default_rng([_REWRITING_STREAM, seed, time, index]))
        for time in range(times)
        for index, page in enumerate(pages)
    ]


def extend_class_names(pages: tuple[Page, ...]) -> tuple[str, ...]:
    """Return the reader's class names in their order, followed by the names that only these pages have.

    Raises:
        DataError: A label is too long or cannot be printed, or there are too many new labels.
    """
    classes = load_builtin_reader().classes
    for page in pages:
        for number, name in enumerate(page.symbols, 1):
            if name not in classes and (len(name.encode()) > BYTES or not name.isprintable()):
                rule = f"labels must be printable and have at most {BYTES} bytes"
                raise DataError(f"{page.name}: symbol {number} is called {name[:40]!r}; {rule}; rename it")
    new = sorted({name for page in pages for name in page.symbols} - {*classes})
    room = CLASSES - len(classes)
    if len(new) > room:
        raise DataError(
            f"these pages have {len(new)} labels that the reader does not know; it has room for {room}; use fewer"
        )
    return (*classes, *new)


def describe_corrected_pages(folder: str, seed: int) -> list[str]:
    """Return the lines that describe the pages of a folder before training starts."""
    folder_pages = read_folder(Path(folder))
    pages = load_corrected_pages(folder, seed)
    new = pages.names[len(load_builtin_reader().classes) :]
    lines = [f"{folder}: {folder_pages.notice}"] if folder_pages.notice else []
    chosen_on = f"{pages.own} of them" if pages.held_out else "further copies"
    lines.append(
        f"{len(folder_pages.pages)} corrected pages: training uses {pages.copies} copies of each and {BESIDE:,} "
        f"generated pages; the best reader is selected on {chosen_on} and {CHOSEN_ON} generated pages"
    )
    return [*lines, f"symbols new to the reader: {' '.join(new)}"] if new else lines


def load_corrected_arrays(folder: str, seed: int) -> tuple[CorrectedPages, PageArrays]:
    """Return the corrected pages and the arrays of all pages."""
    pages = load_corrected_pages(folder, seed)
    split = pages.split
    projection = load_builtin_reader().projection
    all_pages = [*split.train, *split.validation, *split.test]
    counts = len(split.train), len(split.validation), pages.copies
    key = cache_key(all_pages, "corrected", *counts, pages.names, digest_tensors(projection.state_dict()))
    tensors = load_or_compute(
        key,
        lambda: compute_features(
            split, pages.copies, extract_detailed_features, lambda _: projection, make_label_encoder(pages.names)
        ),
    )
    return pages, make_page_arrays(tensors, split, pages.names)


def make_corrected_pages_problem(folder: str, seed: int) -> Problem:
    """Return the problem in which the builtin reader learns from the corrected pages of a folder."""
    pages, arrays = load_corrected_arrays(folder, seed)
    system = load_builtin_reader().system
    page_indices = (arrays.validation[: pages.own], arrays.validation[pages.own :], pages.originals, arrays.test)
    by_same_writers, generated, corrected, reported = (
        GoldPages(Parser(arrays.corpus, part, True, system), arrays) for part in page_indices
    )
    problem = make_problem(
        arrays,
        system,
        lambda _: CorrectedPagesEvaluator(by_same_writers, generated),
        lambda policy: attach_training_pages(policy, arrays),
    )
    reader = {
        "reader": torch.tensor(
            list(bytes.fromhex(digest_tensors(load_builtin_reader().state_dict()))), dtype=torch.uint8
        )
    }
    return replace(
        problem,
        test=CorrectedPagesTestEvaluator(corrected, reported, arrays),
        monitor=CorrectedPagesMonitor(corrected, reported),
        fingerprint={**problem.fingerprint, **reader},
    )


@dataclass(frozen=True)
class GoldPages:
    """Pages to read, with their gold heads and names."""

    parser: Parser
    arrays: PageArrays

    def read(self, policy: Policy) -> SymbolCorrectness:
        """Return which symbols the policy reads correctly."""
        assert isinstance(policy, ReadingPolicy)
        trajectories = parse_greedily(policy, self.parser)
        heads = extract_predicted_heads(trajectories, self.parser)
        gold = self.parser.gold[:, 1:]
        names, _ = policy.predict_names(self.parser.chosen)
        return SymbolCorrectness(trajectories, (heads == gold)[gold != NO_SYMBOL], names == self._labels)

    @property
    def _labels(self) -> Array:
        lengths = self.arrays.corpus.lengths
        labels_by_page = np.split(self.arrays.labels, np.cumsum(lengths)[:-1])
        return np.concatenate([labels_by_page[page] for page in self.parser.chosen])


@dataclass(frozen=True)
class SymbolCorrectness:
    """Correctness of a policy's heads and names, symbol by symbol."""

    trajectories: Trajectories
    heads: Array  # bool [Σn]: whether the head is correct
    names: Array  # bool [Σn]: whether the name is correct

    @property
    def joint_accuracy(self) -> float:
        """The share of symbols with the correct head and the correct name."""
        return float((self.heads & self.names).mean())

    def to_dict(self, prefix: str) -> dict[str, float]:
        """Return the shares of correct heads and of correct names."""
        return {f"{prefix}uas": float(self.heads.mean()), f"{prefix}names": float(self.names.mean())}


@dataclass(frozen=True)
class CorrectedPagesEvaluator:
    """Evaluator of a policy on corrected and on generated pages.

    The score is the share of symbols with the correct head and the correct name, averaged over both kinds of
    pages. The policy is calibrated on the generated pages only, because it knows the others too well.
    """

    corrected: GoldPages
    generated: GoldPages

    def with_engine(self, engine: Engine) -> Self:
        """Return the evaluator itself: it calibrates a policy of this process."""
        return self

    def __call__(self, policy: Policy) -> ValidationScore:
        assert isinstance(policy, ReadingPolicy)
        corrected = self.corrected.read(policy)
        generated = self.generated.read(policy)
        calibrate_policy(policy, self.generated.parser, generated.trajectories)
        steps = corrected.trajectories.simulator_steps + generated.trajectories.simulator_steps
        return ValidationScore(float((corrected.joint_accuracy + generated.joint_accuracy) / 2), steps)


@dataclass(frozen=True)
class CorrectedPagesMonitor:
    """Monitor of heads and names on the original corrected pages and on generated test pages."""

    corrected: GoldPages
    reported: GoldPages

    def __call__(self, policy: Policy) -> dict[str, float]:
        return self.corrected.read(policy).to_dict("corrected_") | self.reported.read(policy).to_dict("test_")


@dataclass(frozen=True)
class CorrectedScore(UasScore):
    """Score of heads and names on generated test pages, which shows forgetting, and on the corrected pages.

    `test_return` is the share of symbols of the test pages with the correct head and the correct name. The
    fields `before_…` are the builtin reader's.
    """

    names: float
    corrected_uas: float
    corrected_names: float
    before_uas: float
    before_names: float
    before_corrected_uas: float
    before_corrected_names: float
    corrected_sets: int  # pages


@dataclass(frozen=True)
class CorrectedPagesTestEvaluator:
    """Final score of a policy, compared with the builtin reader."""

    corrected: GoldPages
    reported: GoldPages
    arrays: PageArrays

    def __call__(self, policy: Policy) -> CorrectedScore:
        parser = self.reported.parser
        (corrected, reported) = self._read(policy)
        before = self._read(self._builtin_reader)
        uas_score = score_heads(extract_predicted_heads(reported.trajectories, parser), parser)
        lengths = parser.corpus.lengths[parser.chosen]
        correct_per_page = np.add.reduceat(
            reported.heads & reported.names, np.cumsum(lengths) - lengths, dtype=np.int64
        )
        score: dict[str, Any] = {
            **{**vars(uas_score), "test_return": reported.joint_accuracy, "ratio": reported.joint_accuracy},
            "test_standard_error": estimate_standard_error_of_ratio(correct_per_page, lengths),
            "names": float(reported.names.mean()),
            **corrected.to_dict("corrected_"),
            **before[0].to_dict("before_corrected_"),
            **before[1].to_dict("before_"),
        }
        return CorrectedScore(**score, corrected_sets=len(self.corrected.parser.chosen))

    def _read(self, policy: Policy) -> tuple[SymbolCorrectness, SymbolCorrectness]:
        return self.corrected.read(policy), self.reported.read(policy)

    @property
    def _builtin_reader(self) -> Policy:
        """A copy of the builtin reader that reads these pages."""
        policy = copy.deepcopy(load_builtin_reader())
        names = policy.names
        attach_training_pages(policy, self.arrays)
        policy.names = names
        return policy
