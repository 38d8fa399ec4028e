"""A reader: pages in, and of each page the symbols' names, the tree, how sure of both, and the expression.

It is one file: a policy that reads (`learners.reading`) with what it needs to see, and a card that says how it was made
and how good it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.hardware import single_thread
from aggrevated.parsing.features.symbols import extract_detailed_features
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.parser import Corpus, Parser
from aggrevated.parsing.scoring import extract_predicted_heads, parse_greedily
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.storage import JsonDict
from aggrevated_reader.learners.expected_cost import ExpectedCostEstimates
from aggrevated_reader.learners.reading_policy import ReadingPolicy
from aggrevated_reader.learners.shipped_reader import BUILTIN_READER_FILE as BUILTIN_READER_FILE
from aggrevated_reader.transcript import Transcript

BATCH_SIZE = 200  # pages


@dataclass(frozen=True)
class PageReading:
    """What was read on a page. Symbol i of n has number i + 1; 0 is ROOT."""

    symbols: tuple[str, ...]  # as the page was labelled, "?" where nobody knows
    labels: tuple[str, ...]  # as they were read
    label_confidence: Array  # [n]: how likely each label is right
    heads: Array  # int [n]
    arc_confidence: Array  # [n]: how likely each head is right
    expected_loss: float  # how many of the n heads are expected to be wrong
    boxes: Array  # [n, 4]: left, top, right, bottom
    strokes: tuple[tuple[int, ...], ...]  # of each symbol, numbered as they come

    @cached_property
    def transcript(self) -> Transcript:
        """The expression."""
        return Transcript(self.labels, self.heads, self.boxes)

    @property
    def text(self) -> str:
        """As people type it, a line for each line of the page."""
        return self.transcript.text

    @property
    def latex(self) -> str:
        """As LaTeX."""
        return self.transcript.latex

    @property
    def lines(self) -> list[int]:
        """The line of each symbol, from 1."""
        return self.transcript.line_numbers

    def to_dict(self) -> JsonDict:
        """All of it, for JSON."""
        columns = zip(
            self.labels, self.label_confidence, self.heads, self.arc_confidence, self.lines, self.boxes, self.strokes,
            strict=True,
        )  # fmt: skip
        return {
            "text": self.text,
            "latex": self.latex,
            "expected_loss": round(self.expected_loss, 4),
            "symbols": [
                {
                    "number": number,
                    "label": label,
                    "label_confidence": round(float(known), 4),
                    "head": int(head),
                    "arc_confidence": round(float(sure), 4),
                    "line": line,
                    "box": [round(float(edge), 2) for edge in box],
                    "strokes": list(strokes),
                }
                for number, (label, known, head, sure, line, box, strokes) in enumerate(columns, 1)
            ],
        }


@dataclass(frozen=True)
class LoadedReader:
    """A policy that reads, with its card."""

    policy: ReadingPolicy

    def read(self, pages: Sequence[Page]) -> list[PageReading]:
        """What is on these pages; gold heads and labels that they may have are not looked at."""
        if not pages:
            return []
        order = sorted(range(len(pages)), key=lambda place: len(pages[place]))
        found: dict[int, PageReading] = {}
        with single_thread():
            for first in range(0, len(order), BATCH_SIZE):  # alike in length, so that little is padding
                some = order[first : first + BATCH_SIZE]
                found |= zip(some, self._read([pages[place] for place in some]), strict=True)
        return [found[place] for place in range(len(pages))]

    def _read(self, pages: Sequence[Page]) -> Iterator[PageReading]:
        """Of pages that all go at once; those without a symbol come first, and there is nothing to read on them."""
        empty = [page for page in pages if not len(page)]
        yield from (make_empty_reading(page) for page in empty)
        pages = pages[len(empty) :]
        if not pages:
            return
        policy = self.policy
        lengths = np.array([len(page) for page in pages])
        policy.with_pages(policy.projection(extract_detailed_features(pages)), lengths)
        parser = Parser(Corpus.from_pages(pages), np.arange(len(pages)), in_order=True, system=policy.system)
        parsed = parse_greedily(policy, parser)
        expected, number, likely = policy.predict_all(parsed.observations, parsed.mask, parsed.actions.astype(np.int64))
        heads = extract_predicted_heads(parsed, parser)
        sure, losses = estimate_confidence(expected, parsed, parser)
        names = policy.classes
        ends = np.cumsum(lengths)
        for place, (page, n, end) in enumerate(zip(pages, lengths, ends, strict=True)):
            own = slice(end - n, end)
            labels = tuple(names[k] for k in number[own])
            whole, certain = attach_headless_to_root(heads[place, :n], sure[place, :n])
            strokes = list_stroke_numbers(page)
            yield PageReading(
                page.symbols, labels, likely[own], whole, certain, float(losses[place]), page.boxes, strokes
            )

    def make_parser(self, page: Page) -> tuple[ReadingPolicy, Parser]:
        """(the policy, with the page before it; the page's parser)."""
        policy = self.policy
        policy.with_pages(policy.projection(extract_detailed_features([page])), np.array([len(page)]))
        return policy, Parser(Corpus.from_pages([page]), np.arange(1), in_order=True, system=policy.system)

    @property
    def metadata(self) -> JsonDict:
        """How it was made, and how good it is."""
        return self.policy.metadata

    def save(self, path: Path | str) -> None:
        """Write it as one file, card and all."""
        self.policy.save(path)

    @classmethod
    def load(cls, path: Path | str = BUILTIN_READER_FILE) -> LoadedReader:
        """The reader in a file that `save` or `aggrevated export` wrote, or the one that is in the package."""
        return cls(ReadingPolicy.load(path))


def estimate_confidence(expected: ExpectedCostEstimates, parsed: Trajectories, parser: Parser) -> tuple[Array, Array]:
    """(how likely each symbol's head is right [P, N], 0 for those without; the expected loss of each page [P])."""
    sure = np.zeros((parsed.count, parser.corpus.most))
    for action, arc in enumerate(parser.system.action_arcs):
        lane, t = np.nonzero(parsed.mask & (parsed.actions == action))
        if arc is not None:
            dependent = parsed.observations[lane, t, 1 + arc[0]].astype(int)
            sure[lane, dependent - 1] = 1 - expected.doubts[lane, t]
    losses = (expected.costs * parsed.mask).sum(axis=1)
    return sure, np.minimum(losses, parser.corpus.lengths[parser.chosen])


def make_empty_reading(page: Page) -> PageReading:
    """Of a page without a symbol."""
    none = np.zeros(0)
    return PageReading((), (), none, none.astype(int), none, 0.0, page.boxes, ())


def attach_headless_to_root(heads: Array, sure: Array) -> tuple[Array, Array]:
    """(heads, sureness), in which those that were left without a head depend on the root, as later lines do.

    Where nothing depends on ROOT, the first of them is the root; nobody vouches for such heads.
    """
    heads = heads.astype(int)
    sure = sure.copy()
    left = np.flatnonzero(heads < 0)
    if len(left):
        roots = np.flatnonzero(heads == 0)
        root = int(roots[0] if len(roots) else left[0]) + 1
        heads[left] = root
        sure[left] = 0.0
        if not len(roots):
            heads[root - 1] = 0
    return heads, sure


def list_stroke_numbers(page: Page) -> tuple[tuple[int, ...], ...]:
    """The numbers of each symbol's strokes, as they come."""
    counts = [len(strokes) for strokes in page.ink]
    firsts = np.cumsum([0, *counts])
    return tuple(tuple(range(first, first + count)) for first, count in zip(firsts.tolist(), counts, strict=False))
