"""Pages of handwriting read from files: expressions, trees and warnings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from aggrevated.core.errors import AggrevatedError, DataError, UsageError
from aggrevated.parsing.pages.page import Page, compute_boxes
from aggrevated.storage import JsonDict, reraise_storage_errors
from aggrevated_reader.pictures.image import ENDINGS
from aggrevated_reader.pictures.segmentation import SegmentedPage, segment_page

if TYPE_CHECKING:
    from aggrevated.parsing.parser import Parser
    from aggrevated.plots.parse_tree import Frame
    from aggrevated.policies import Policy
    from aggrevated.training.run_folder import Run
    from aggrevated_reader.page_reader import PageReading

BATCH_SIZE = 50  # pages that are read at once
MAX_FILES = 1_000_000  # in folders
MIN_LABEL_CONFIDENCE = 0.5  # mean confidence in the names of symbols: below it, the handwriting is unknown
MAX_EXPECTED_LOSS = 0.4  # of the heads: if more are expected to be wrong, the tree is useless


class ReaderModel(Protocol):
    """Reader of pages in memory."""

    def read(self, pages: Sequence[Page]) -> list[PageReading]:
        """Return the reading of each page."""
        ...

    def make_parser(self, page: Page) -> tuple[Policy, Parser]:
        """Return a policy that has the page, and the page's parser."""
        ...


@dataclass(frozen=True)
class ParsedPage:
    """Content of a file: symbols with names, heads and boxes, and warnings about them.

    Args:
        file: The file that was read.
        seen: The page that was found in it.
        reading: The labels, heads and confidences that were read.
    """

    file: Path
    seen: SegmentedPage
    reading: PageReading

    @property
    def text(self) -> str:
        """The expression as plain text, one line for each line of the page."""
        return self.reading.text

    @property
    def latex(self) -> str:
        """The expression as LaTeX, one line for each line of the page."""
        return self.reading.latex

    @property
    def heads(self) -> list[int]:
        """The number of each symbol's head; 0 is ROOT."""
        return [int(head) for head in self.reading.heads]

    @property
    def doubts(self) -> tuple[str, ...]:
        """Reasons why the file may not be a page of algebra or may be misread; each is a clause."""
        count = len(self.reading.labels)
        doubts = list(self.seen.doubts)
        confidence = float(np.mean(self.reading.label_confidence)) if count else 1.0
        if confidence < MIN_LABEL_CONFIDENCE:
            doubts.append(f"its symbols look unlike all known symbols (confidence {confidence:.0%})")
        if self.reading.expected_loss > MAX_EXPECTED_LOSS * count:
            doubts.append(f"{self.reading.expected_loss:.0f} of its {count} heads are expected to be wrong")
        return tuple(doubts)

    @property
    def page(self) -> Page:
        """The page with the labels that were read."""
        return replace(self.seen.page, symbols=self.reading.labels)

    def to_dict(self) -> JsonDict:
        """Return everything that is known of the page, for JSON.

        Returns:
            Expression, symbols and doubts. Boxes are in pixels of the picture, or in the units of the ink.
        """
        content: JsonDict = {"file": str(self.file)} | self.reading.to_dict() | {"doubts": list(self.doubts)}
        for index, (symbol, strokes) in enumerate(zip(content["symbols"], self.seen.page.ink, strict=True)):
            symbol["strokes"] = list(self.seen.stroke_ids[index]) if self.seen.stroke_ids else math.nan
            (box,) = compute_boxes([self.seen.map_to_picture(np.concatenate(strokes))])
            symbol["box"] = [round(float(edge), 2) for edge in box]
            for name in [name for name, value in symbol.items() if is_unknown(value)]:
                del symbol[name]
        return {name: value for name, value in content.items() if not is_unknown(value)}


def is_unknown(value: object) -> bool:
    """Return whether a value is NaN."""
    return isinstance(value, float) and math.isnan(value)


@dataclass(frozen=True)
class PageReader:
    """Reader of files: InkML, pictures and PDFs.

    Args:
        reads: The reader of pages in memory.
        metadata: The reader's card: how it was made, and how well it scores.
    """

    reads: ReaderModel
    metadata: JsonDict = field(default_factory=dict)

    def parse(self, file: Path | str) -> ParsedPage:
        """Parse the page in one file.

        Args:
            file: An InkML file, a picture (PNG, JPEG, WebP) or a PDF.

        Returns:
            The page with its symbols, heads and doubts.

        Raises:
            DataError: The file cannot be read as a page.
        """
        return self.parse_segmented(Path(file), segment_page(Path(file)))

    def parse_segmented(self, file: Path, seen: SegmentedPage) -> ParsedPage:
        """Parse a page that was segmented already.

        Args:
            file: The name of the page in messages and results.
            seen: The segmented page.

        Returns:
            The page with its symbols, heads and doubts.
        """
        return ParsedPage(file, seen, self.reads.read([seen.page])[0])

    def parse_all(self, files: Iterable[Path]) -> Iterator[ParsedPage | AggrevatedError]:
        """Parse the pages in many files.

        Args:
            files: InkML files, pictures and PDFs.

        Yields:
            For each file in order the parsed page, or the error if it cannot be read.
        """
        waiting: list[tuple[Path, SegmentedPage | AggrevatedError]] = []
        for file in files:
            waiting.append((file, try_segment_page(file)))
            if len(waiting) == BATCH_SIZE:
                yield from self._read(waiting)
                waiting = []
        yield from self._read(waiting)

    def _read(
        self, waiting: Sequence[tuple[Path, SegmentedPage | AggrevatedError]]
    ) -> Iterator[ParsedPage | AggrevatedError]:
        readings = iter(self.reads.read([seen.page for _, seen in waiting if isinstance(seen, SegmentedPage)]))
        for file, seen in waiting:
            yield ParsedPage(file, seen, next(readings)) if isinstance(seen, SegmentedPage) else seen


def try_segment_page(file: Path) -> SegmentedPage | AggrevatedError:
    """Return the segmented page in a file, or the error if it cannot be read."""
    try:
        return segment_page(file)
    except AggrevatedError as error:
        return error


def load_reader(source: Path | str | None = None) -> PageReader:
    """Load a reader of pages.

    Args:
        source: A file that `aggrevated export` wrote, or the folder of a run; None for the builtin reader.

    Returns:
        The reader.

    Raises:
        DataError: The file is not a reader.
        UsageError: The folder is a run of another task.

    Example:
        >>> from aggrevated_reader import load_reader
        >>> load_reader().parse("page.png").text  # doctest: +SKIP
        'x^2=4'
    """
    from aggrevated.training.run_folder import list_runs
    from aggrevated_reader.page_reader import BUILTIN_READER_FILE, LoadedReader

    path = BUILTIN_READER_FILE if source is None else Path(source)
    if path.is_dir():
        return load_run_reader(list_runs(path)[0])
    reader = LoadedReader.load(path)
    return PageReader(reader, reader.metadata)


def load_run_reader(run: Run) -> PageReader:
    """Return the reader that was trained in a run."""
    from aggrevated.parsing.problem import AlgebraProblemSettings
    from aggrevated_reader.learners.reading_policy import ReadingPolicy
    from aggrevated_reader.page_reader import LoadedReader

    if not isinstance(run.config.problem, AlgebraProblemSettings):
        raise UsageError(f"{run.folder} is a run of {run.config.task.name}; give a run of 'aggrevated train reader'")
    policy = run.policy
    if isinstance(policy, ReadingPolicy):
        return PageReader(LoadedReader(policy))
    return PageReader(TreeOnlyReader(run.config.problem, policy))


@dataclass(frozen=True)
class TreeOnlyReader:
    """Reader by a policy of the paper, which predicts neither names nor confidences."""

    problem: object  # Algebra
    policy: Policy

    def read(self, pages: Sequence[Page]) -> list[PageReading]:
        """Return the heads of each page, with the labels that the page has already."""
        return [self._read(page) for page in pages]

    def _read(self, page: Page) -> PageReading:
        from aggrevated_reader.page_reader import PageReading, attach_headless_to_root, list_stroke_numbers

        unsure = np.full(len(page), np.nan)
        heads, _ = attach_headless_to_root(list_frames(*self.make_parser(page))[-1][0], unsure)
        return PageReading(
            page.symbols, page.symbols, unsure, heads, unsure, math.nan, page.boxes, list_stroke_numbers(page)
        )

    def make_parser(self, page: Page) -> tuple[Policy, Parser]:
        """Give the policy a page, and return the policy with the page's parser."""
        from aggrevated.parsing.problem import AlgebraProblemSettings

        assert isinstance(self.problem, AlgebraProblemSettings)
        return self.policy, self.problem.make_parser(self.policy, [page])


def list_frames(policy: Policy, parser: Parser) -> list[Frame]:
    """Return the configurations of the parse of the parser's first page; the last one has all heads."""
    from aggrevated.core.hardware import single_thread
    from aggrevated.core.rng import SeedPurpose, derive_seeds
    from aggrevated.parsing.parser import CONFIGURATION
    from aggrevated.parsing.transitions.configurations import ConfigurationView
    from aggrevated.rollout.roll_in import RollInPolicy, roll_in

    with single_thread():
        trajectories = roll_in(
            parser, RollInPolicy(None, policy.actor()), derive_seeds(0, SeedPurpose.TEST, 0, 1), deterministic=True
        )
        last, _, _ = parser.step(trajectories.states[:, -1], trajectories.actions[:, -1])
    frames: list[Frame] = []
    names = ["start", *(parser.system.actions[action] for action in trajectories.actions[0])]
    for row, name in zip([*trajectories.states[0], last[0]], names, strict=True):
        view = ConfigurationView(row[None, CONFIGURATION])
        frames.append((parser.heads(row[None])[0], np.flatnonzero(view.on_stack[0]).tolist(), int(view.b[0]), name))
    return frames


def select_frames(frames: Sequence[Frame], count: int = 6) -> list[Frame]:
    """Return `count` of the frames, evenly spaced, with the last among them."""
    chosen = np.unique(np.linspace(0, len(frames) - 1, count + 1).round().astype(int)[1:])
    return [frames[index] for index in chosen]


def format_arcs(parsed: ParsedPage) -> list[str]:
    """Return one line for each symbol: its name, its head and, if known, the confidence in the head."""
    reading = parsed.reading
    names = ["ROOT", *("" if label == "?" else label for label in reading.labels)]
    width = max(map(len, names))
    lines = []
    for number, (head, sure) in enumerate(zip(parsed.heads, reading.arc_confidence, strict=True), start=1):
        confidence = "" if math.isnan(sure) else f"  {sure:.0%}"
        lines.append(f"{number:3d} {names[number]:<{width}} <- {head:3d} {names[head]:<{width}}{confidence}".rstrip())
    return lines


def find_page_files(paths: Sequence[Path]) -> list[Path]:
    """Return the files, and the readable files in those of the paths that are folders."""
    files: list[Path] = []
    for path in paths:
        with reraise_storage_errors(path):
            path.stat()  # raises if the path does not exist
            inside = (p for p in path.rglob("*") if p.suffix.lower() in (*ENDINGS, ".inkml") and p.is_file())
            files += sorted(islice(inside, MAX_FILES + 1)) if path.is_dir() else [path]
        if len(files) > MAX_FILES:
            raise DataError(f"these folders hold more than {MAX_FILES:,} files; give fewer at a time")
    if not files:
        raise DataError(f"{paths[0]} holds no picture, PDF or InkML file; give a folder that does")
    return files


def count_failures(errors: Sequence[tuple[Path, AggrevatedError]]) -> Counter[str]:
    """Return the number of unreadable files by reason."""
    return Counter(extract_reason(file, error) for file, error in errors)


def extract_reason(file: Path, error: AggrevatedError) -> str:
    """Return the reason of an error, without the file's name and the remedy."""
    return str(error).replace(f"{file}: ", "").replace(str(file), "it").split(";")[0]
