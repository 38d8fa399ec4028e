"""The world of corrected pages: a reader that is good already goes on learning, from pages that people corrected.

The corrected pages are rewritten many times over, as the same hand might have written them again. Generated pages stand
beside them, so that nothing is forgotten that the reader knows. It is chosen by what it reads right of both kinds.
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

# what a random number is for
_HOLD_OUT_STREAM = 21
_REWRITING_STREAM = 22
_PICTURE_STREAM = 23
# generated pages: to learn from, to choose on, to report
BESIDE = 1_500
CHOSEN_ON = 150
REPORTED = 300
# corrected pages with their copies, about: to learn from, to choose on
OWN = 750
OWN_CHOSEN_ON = 60
MAX_COPIES = 150  # of one page
MIN_PAGES_TO_HOLD_OUT = 20  # corrected pages, of which a tenth can be spared to choose on
PICTURED_FRACTION = 0.2  # of the generated pages look as if read from a picture: the share that the reader learned from


@dataclass(frozen=True)
class CorrectedPages:
    """All pages of a run."""

    split: Split  # the corrected ones to learn from are the last to learn from, and those to choose on the first
    names: tuple[str, ...]  # the classes of symbols: the reader's, then new ones
    own: int  # how many of the pages to choose on are by the hands that are learned from
    held_out: bool  # whether these are corrected pages that are not learned from, and not further copies

    @property
    def training_pages(self) -> list[Page]:
        """The corrected pages to learn from."""
        assert self.split.rewriting
        return self.split.rewriting

    @property
    def copies(self) -> int:
        """How often each of these is rewritten."""
        return min(max(1, OWN // len(self.training_pages)), MAX_COPIES)

    @property
    def originals(self) -> Array:
        """Which of all pages are the corrected ones, as they are."""
        last = len(self.split.train)
        learned = np.arange(last - len(self.training_pages), last)
        held = last + self.copies * len(self.training_pages) + np.arange(self.own if self.held_out else 0)
        return np.concatenate([learned, held])


def load_corrected_pages(folder: str, seed: int) -> CorrectedPages:
    """The corrected pages of a folder, with generated ones beside them."""
    return assemble_corrected_pages(folder, list_inkml_files(Path(folder)), seed)


@lru_cache(maxsize=2)
def assemble_corrected_pages(folder: str, files: Files, seed: int) -> CorrectedPages:
    """The same of the files as they are."""
    found = read_folder(Path(folder)).pages
    names = extend_class_names(found)
    order = np.random.default_rng([_HOLD_OUT_STREAM, seed]).permutation(len(found))
    spared = len(found) // 10 if len(found) >= MIN_PAGES_TO_HOLD_OUT else 0
    held = [found[i] for i in order[:spared]]
    learned = [found[i] for i in order[spared:]]
    own = held or rewrite_pages(learned, seed)
    train, validation, test = (
        generate_pages(count, 3 * seed + part) for part, count in enumerate((BESIDE, CHOSEN_ON, REPORTED))
    )
    train = exclude_strings(train, validation + test)
    draw = np.random.default_rng([_PICTURE_STREAM, seed])
    train = [try_rasterize_and_trace(page, draw) if draw.random() < PICTURED_FRACTION else page for page in train]
    split = Split([*train, *learned], [*own, *validation], test, rewriting=learned)
    return CorrectedPages(split, names, len(own), held_out=bool(held))


def rewrite_pages(pages: list[Page], seed: int) -> list[Page]:
    """The pages as the same hands might have written them at other times than those that are learned from."""
    times = max(1, OWN_CHOSEN_ON // len(pages))
    return [
        augment_page(page, np.random.default_rng([_REWRITING_STREAM, seed, time, place]))
        for time in range(times)
        for place, page in enumerate(pages)
    ]


def extend_class_names(pages: tuple[Page, ...]) -> tuple[str, ...]:
    """The reader's names, in their places, and behind them those that only these pages have."""
    known = load_builtin_reader().classes
    for page in pages:
        for number, name in enumerate(page.symbols, 1):
            if name not in known and (len(name.encode()) > BYTES or not name.isprintable()):
                fit = f"labels have at most {BYTES} bytes, and can be printed"
                raise DataError(f"{page.name}: symbol {number} is called {name[:40]!r}; {fit}: rename it")
    new = sorted({name for page in pages for name in page.symbols} - {*known})
    room = CLASSES - len(known)
    if len(new) > room:
        raise DataError(
            f"these pages have {len(new)} labels that the reader does not know; it has room for {room}: use fewer"
        )
    return (*known, *new)


def describe_corrected_pages(folder: str, seed: int) -> list[str]:
    """What people are told of the pages in a folder before they are learned from."""
    found = read_folder(Path(folder))
    pages = load_corrected_pages(folder, seed)
    new = pages.names[len(load_builtin_reader().classes) :]
    lines = [f"{folder}: {found.notice}"] if found.notice else []
    chosen_on = f"{pages.own} of them" if pages.held_out else "further copies"
    lines.append(
        f"{len(found.pages)} corrected pages, {pages.copies} copies of each to learn from, beside {BESIDE:,} generated "
        f"ones; the best reader is chosen on {chosen_on} and {CHOSEN_ON} generated ones"
    )
    return [*lines, f"symbols that are new to the reader: {' '.join(new)}"] if new else lines


def load_corrected_arrays(folder: str, seed: int) -> tuple[CorrectedPages, PageArrays]:
    """(the pages, all of them as arrays)."""
    pages = load_corrected_pages(folder, seed)
    split = pages.split
    projection = load_builtin_reader().projection
    every = [*split.train, *split.validation, *split.test]
    counts = len(split.train), len(split.validation), pages.copies
    key = cache_key(every, "corrected", *counts, pages.names, digest_tensors(projection.state_dict()))
    tensors = load_or_compute(
        key,
        lambda: compute_features(
            split, pages.copies, extract_detailed_features, lambda _: projection, make_label_encoder(pages.names)
        ),
    )
    return pages, make_page_arrays(tensors, split, pages.names)


def make_corrected_pages_problem(folder: str, seed: int) -> Problem:
    """Where the reader in the package learns from the corrected pages of that folder."""
    pages, arrays = load_corrected_arrays(folder, seed)
    system = load_builtin_reader().system
    parts = (arrays.validation[: pages.own], arrays.validation[pages.own :], pages.originals, arrays.test)
    own, others, corrected, reported = (GoldPages(Parser(arrays.corpus, part, True, system), arrays) for part in parts)
    world = make_problem(
        arrays,
        system,
        lambda _: CorrectedPagesEvaluator(own, others),
        lambda policy: attach_training_pages(policy, arrays),
    )
    reader = {
        "reader": torch.tensor(
            list(bytes.fromhex(digest_tensors(load_builtin_reader().state_dict()))), dtype=torch.uint8
        )
    }
    return replace(
        world,
        test=CorrectedPagesTestEvaluator(corrected, reported, arrays),
        monitor=CorrectedPagesMonitor(corrected, reported),
        fingerprint={**world.fingerprint, **reader},
    )


@dataclass(frozen=True)
class GoldPages:
    """Pages to be read, with what is right."""

    parser: Parser
    arrays: PageArrays

    def read(self, policy: Policy) -> SymbolCorrectness:
        """What the policy reads right of them."""
        assert isinstance(policy, ReadingPolicy)
        found = parse_greedily(policy, self.parser)
        given = extract_predicted_heads(found, self.parser)
        gold = self.parser.gold[:, 1:]
        names, _ = policy.predict_names(self.parser.chosen)
        return SymbolCorrectness(found, (given == gold)[gold != NO_SYMBOL], names == self._labels)

    @property
    def _labels(self) -> Array:
        lengths = self.arrays.corpus.lengths
        of_pages = np.split(self.arrays.labels, np.cumsum(lengths)[:-1])
        return np.concatenate([of_pages[page] for page in self.parser.chosen])


@dataclass(frozen=True)
class SymbolCorrectness:
    """What is right of what was read, symbol by symbol."""

    found: Trajectories
    heads: Array  # bool [Σn]
    names: Array  # bool [Σn]

    @property
    def joint_accuracy(self) -> float:
        """The share of symbols with the right head and the right name."""
        return float((self.heads & self.names).mean())

    def to_dict(self, prefix: str) -> dict[str, float]:
        """The shares of heads and of names."""
        return {f"{prefix}uas": float(self.heads.mean()), f"{prefix}names": float(self.names.mean())}


@dataclass(frozen=True)
class CorrectedPagesEvaluator:
    """The share of symbols with the right head and the right name: the mean of that on pages by the hands that are
    learned from, and that on generated pages.

    The policy is corrected to be as sure as it is right on generated pages: the others are too well known to it.
    """

    own: GoldPages
    others: GoldPages

    def with_engine(self, engine: Engine) -> Self:
        """Itself: what it corrects is here."""
        return self

    def __call__(self, policy: Policy) -> ValidationScore:
        assert isinstance(policy, ReadingPolicy)
        own = self.own.read(policy)
        others = self.others.read(policy)
        calibrate_policy(policy, self.others.parser, others.found)
        steps = own.found.simulator_steps + others.found.simulator_steps
        return ValidationScore(float((own.joint_accuracy + others.joint_accuracy) / 2), steps)


@dataclass(frozen=True)
class CorrectedPagesMonitor:
    """Heads and names on the corrected pages, as they are, and on generated test pages, which no choice looks at."""

    corrected: GoldPages
    reported: GoldPages

    def __call__(self, policy: Policy) -> dict[str, float]:
        return self.corrected.read(policy).to_dict("corrected_") | self.reported.read(policy).to_dict("test_")


@dataclass(frozen=True)
class CorrectedScore(UasScore):
    """Heads and names on generated test pages, by which one sees what was forgotten, and on the corrected pages.

    `test_return` is the share of symbols of test pages with the right head and the right name; `before` tells of the
    reader that is in the package.
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
    """How good a policy is, beside the reader in the package."""

    corrected: GoldPages
    reported: GoldPages
    arrays: PageArrays

    def __call__(self, policy: Policy) -> CorrectedScore:
        parser = self.reported.parser
        (corrected, reported) = self._read(policy)
        before = self._read(self._builtin_reader)
        whole = score_heads(extract_predicted_heads(reported.found, parser), parser)
        lengths = parser.corpus.lengths[parser.chosen]
        right = np.add.reduceat(reported.heads & reported.names, np.cumsum(lengths) - lengths, dtype=np.int64)
        found: dict[str, Any] = {
            **{**vars(whole), "test_return": reported.joint_accuracy, "ratio": reported.joint_accuracy},
            "test_standard_error": estimate_standard_error_of_ratio(right, lengths),
            "names": float(reported.names.mean()),
            **corrected.to_dict("corrected_"),
            **before[0].to_dict("before_corrected_"),
            **before[1].to_dict("before_"),
        }
        return CorrectedScore(**found, corrected_sets=len(self.corrected.parser.chosen))

    def _read(self, policy: Policy) -> tuple[SymbolCorrectness, SymbolCorrectness]:
        return self.corrected.read(policy), self.reported.read(policy)

    @property
    def _builtin_reader(self) -> Policy:
        """The reader in the package, which now reads these pages."""
        policy = copy.deepcopy(load_builtin_reader())
        names = policy.names
        attach_training_pages(policy, self.arrays)
        policy.names = names
        return policy
