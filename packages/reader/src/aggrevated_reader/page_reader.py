"""A reader of pages: symbols' names, trees, confidences and expressions.

A reader is one file with a policy (`learners.reading_policy`), the projection of its features, and a card
that says how it was made and how well it scores.
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
    """Result of reading a page; symbol i of n has number i + 1, and 0 is ROOT.

    Args:
        symbols: The labels that the page had before, "?" where they are unknown.
        labels: The labels that were read.
        label_confidence: The probability that each label is correct, [n].
        heads: The head of each symbol, int [n].
        arc_confidence: The probability that each head is correct, [n].
        expected_loss: The expected number of wrong heads, 0 to n.
        boxes: The box of each symbol, [n, 4]: left, top, right, bottom.
        strokes: The numbers of each symbol's strokes, in the order of the symbols.
    """

    symbols: tuple[str, ...]
    labels: tuple[str, ...]
    label_confidence: Array
    heads: Array
    arc_confidence: Array
    expected_loss: float
    boxes: Array
    strokes: tuple[tuple[int, ...], ...]

    @cached_property
    def transcript(self) -> Transcript:
        """The symbols as an expression."""
        return Transcript(self.labels, self.heads, self.boxes)

    @property
    def text(self) -> str:
        """The expression as plain text, one line for each line of the page."""
        return self.transcript.text

    @property
    def latex(self) -> str:
        """The expression as LaTeX, one line for each line of the page."""
        return self.transcript.latex

    @property
    def lines(self) -> list[int]:
        """The line of each symbol, from 1."""
        return self.transcript.line_numbers

    def to_dict(self) -> JsonDict:
        """Return everything that was read, for JSON."""
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
                    "label_confidence": round(float(confidence), 4),
                    "head": int(head),
                    "arc_confidence": round(float(sure), 4),
                    "line": line,
                    "box": [round(float(edge), 2) for edge in box],
                    "strokes": list(strokes),
                }
                for number, (label, confidence, head, sure, line, box, strokes) in enumerate(columns, 1)
            ],
        }


@dataclass(frozen=True)
class LoadedReader:
    """Reader of pages by a policy, with the policy's card."""

    policy: ReadingPolicy

    def read(self, pages: Sequence[Page]) -> list[PageReading]:
        """Read pages and return the reading of each; gold heads and labels are ignored."""
        if not pages:
            return []
        order = sorted(range(len(pages)), key=lambda index: len(pages[index]))
        readings: dict[int, PageReading] = {}
        with single_thread():
            for first in range(0, len(order), BATCH_SIZE):  # pages of similar length, so that there is little padding
                batch = order[first : first + BATCH_SIZE]
                readings |= zip(batch, self._read([pages[index] for index in batch]), strict=True)
        return [readings[index] for index in range(len(pages))]

    def _read(self, pages: Sequence[Page]) -> Iterator[PageReading]:
        """Yield the readings of pages that are read as one batch; pages without symbols come first."""
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
        expected, classes, sure = policy.predict_all(parsed.observations, parsed.mask, parsed.actions.astype(np.int64))
        heads = extract_predicted_heads(parsed, parser)
        confidences, losses = estimate_confidence(expected, parsed, parser)
        names = policy.classes
        ends = np.cumsum(lengths)
        for index, (page, n, end) in enumerate(zip(pages, lengths, ends, strict=True)):
            symbols = slice(end - n, end)
            labels = tuple(names[k] for k in classes[symbols])
            page_heads, certain = attach_headless_to_root(heads[index, :n], confidences[index, :n])
            strokes = list_stroke_numbers(page)
            yield PageReading(
                page.symbols, labels, sure[symbols], page_heads, certain, float(losses[index]), page.boxes, strokes
            )

    def make_parser(self, page: Page) -> tuple[ReadingPolicy, Parser]:
        """Give the policy a page, and return the policy with the page's parser."""
        policy = self.policy
        policy.with_pages(policy.projection(extract_detailed_features([page])), np.array([len(page)]))
        return policy, Parser(Corpus.from_pages([page]), np.arange(1), in_order=True, system=policy.system)

    @property
    def metadata(self) -> JsonDict:
        """The card: how the reader was made, and how well it scores."""
        return self.policy.metadata

    def save(self, path: Path | str) -> None:
        """Save the reader as one file, with its card."""
        self.policy.save(path)

    @classmethod
    def load(cls, path: Path | str = BUILTIN_READER_FILE) -> LoadedReader:
        """Load the reader that `save` or `aggrevated export` wrote; by default the builtin reader."""
        return cls(ReadingPolicy.load(path))


def estimate_confidence(expected: ExpectedCostEstimates, parsed: Trajectories, parser: Parser) -> tuple[Array, Array]:
    """Return the confidence in each head and the expected loss of each page.

    Returns:
        The probability that each symbol's head is right [P, N], 0 for symbols without a head; the expected
        number of wrong heads of each page [P].
    """
    confidences = np.zeros((parsed.count, parser.corpus.most))
    for action, arc in enumerate(parser.system.action_arcs):
        page, t = np.nonzero(parsed.mask & (parsed.actions == action))
        if arc is not None:
            dependent = parsed.observations[page, t, 1 + arc[0]].astype(int)
            confidences[page, dependent - 1] = 1 - expected.doubts[page, t]
    losses = (expected.costs * parsed.mask).sum(axis=1)
    return confidences, np.minimum(losses, parser.corpus.lengths[parser.chosen])


def make_empty_reading(page: Page) -> PageReading:
    """Return the reading of a page without symbols."""
    empty = np.zeros(0)
    return PageReading((), (), empty, empty.astype(int), empty, 0.0, page.boxes, ())


def attach_headless_to_root(heads: Array, sure: Array) -> tuple[Array, Array]:
    """Return heads and confidences in which symbols without a head depend on the root, as later lines do.

    If nothing depends on ROOT, the first symbol without a head becomes the root. The confidence of such heads
    is 0.
    """
    heads = heads.astype(int)
    sure = sure.copy()
    headless = np.flatnonzero(heads < 0)
    if len(headless):
        roots = np.flatnonzero(heads == 0)
        root = int(roots[0] if len(roots) else headless[0]) + 1
        heads[headless] = root
        sure[headless] = 0.0
        if not len(roots):
            heads[root - 1] = 0
    return heads, sure


def list_stroke_numbers(page: Page) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of each symbol's strokes, in order."""
    counts = [len(strokes) for strokes in page.ink]
    firsts = np.cumsum([0, *counts])
    return tuple(tuple(range(first, first + count)) for first, count in zip(firsts.tolist(), counts, strict=False))
