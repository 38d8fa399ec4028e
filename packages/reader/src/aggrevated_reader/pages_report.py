"""Pages of handwriting, read: from files to expressions and trees, with what speaks against them."""

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

BATCH_SIZE = 50  # pages that are read before any is given
MAX_FILES = 1_000_000  # in folders
MIN_LABEL_CONFIDENCE = 0.5  # mean confidence in the names of symbols: what is below is no handwriting that it knows
MAX_EXPECTED_LOSS = 0.4  # of the heads: where more are expected to be wrong, the tree says nothing


class ReaderModel(Protocol):
    """Who reads pages."""

    def read(self, pages: Sequence[Page]) -> list[PageReading]:
        """What is on these pages."""
        ...

    def make_parser(self, page: Page) -> tuple[Policy, Parser]:
        """(a policy that has the page before it, its parser)."""
        ...


@dataclass(frozen=True)
class ParsedPage:
    """What a file says: symbols with names, heads, places, and what speaks against it."""

    file: Path
    seen: SegmentedPage
    reading: PageReading

    @property
    def text(self) -> str:
        """The expression as people type it, a line for each line of the page."""
        return self.reading.text

    @property
    def latex(self) -> str:
        """The same as LaTeX."""
        return self.reading.latex

    @property
    def heads(self) -> list[int]:
        """The number of each symbol's head; 0 is ROOT."""
        return [int(head) for head in self.reading.heads]

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why it may be no page of algebra, or not be what was read; each a clause."""
        count = len(self.reading.labels)
        found = list(self.seen.doubts)
        known = float(np.mean(self.reading.label_confidence)) if count else 1.0
        if known < MIN_LABEL_CONFIDENCE:
            found.append(f"its symbols look like none that are known (sure of {known:.0%})")
        if self.reading.expected_loss > MAX_EXPECTED_LOSS * count:
            found.append(f"{self.reading.expected_loss:.0f} of its {count} heads are expected to be wrong")
        return tuple(found)

    @property
    def page(self) -> Page:
        """The page, its symbols with their names."""
        return replace(self.seen.page, symbols=self.reading.labels)

    def to_dict(self) -> JsonDict:
        """All of it but what is not known, for JSON; boxes are in pixels of the picture, or in the ink's own units."""
        facts: JsonDict = {"file": str(self.file)} | self.reading.to_dict() | {"doubts": list(self.doubts)}
        for place, (symbol, strokes) in enumerate(zip(facts["symbols"], self.seen.page.ink, strict=True)):
            symbol["strokes"] = list(self.seen.stroke_ids[place]) if self.seen.stroke_ids else math.nan
            (box,) = compute_boxes([self.seen.map_to_picture(np.concatenate(strokes))])
            symbol["box"] = [round(float(edge), 2) for edge in box]
            for name in [name for name, value in symbol.items() if is_unknown(value)]:
                del symbol[name]
        return {name: value for name, value in facts.items() if not is_unknown(value)}


def is_unknown(value: object) -> bool:
    """Whether it is a number that nobody knows."""
    return isinstance(value, float) and math.isnan(value)


@dataclass(frozen=True)
class PageReader:
    """Reads files."""

    reads: ReaderModel
    metadata: JsonDict = field(default_factory=dict)

    def parse(self, file: Path | str) -> ParsedPage:
        """The page in one file: InkML, a picture or a PDF. A `DataError` where there is none."""
        return self.parse_segmented(Path(file), segment_page(Path(file)))

    def parse_segmented(self, file: Path, seen: SegmentedPage) -> ParsedPage:
        """The page that was seen in a file."""
        return ParsedPage(file, seen, self.reads.read([seen.page])[0])

    def parse_all(self, files: Iterable[Path]) -> Iterator[ParsedPage | AggrevatedError]:
        """The page in each file, in their order; for one that cannot be read, the error that says why."""
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
    """What is in a file, or why it cannot be read."""
    try:
        return segment_page(file)
    except AggrevatedError as error:
        return error


def load_reader(source: Path | str | None = None) -> PageReader:
    """The reader that comes with the package; or that of a file, or of the folder of a run."""
    from aggrevated.training.run_folder import list_runs
    from aggrevated_reader.page_reader import BUILTIN_READER_FILE, LoadedReader

    path = BUILTIN_READER_FILE if source is None else Path(source)
    if path.is_dir():
        return load_run_reader(list_runs(path)[0])
    reader = LoadedReader.load(path)
    return PageReader(reader, reader.metadata)


def load_run_reader(run: Run) -> PageReader:
    """Whoever was trained there."""
    from aggrevated.parsing.problem import AlgebraProblemSettings
    from aggrevated_reader.learners.reading_policy import ReadingPolicy
    from aggrevated_reader.page_reader import LoadedReader

    if not isinstance(run.config.problem, AlgebraProblemSettings):
        raise UsageError(f"{run.folder} is a run of {run.config.task.name}; give one of 'aggrevated train reader'")
    policy = run.policy
    if isinstance(policy, ReadingPolicy):
        return PageReader(LoadedReader(policy))
    return PageReader(TreeOnlyReader(run.config.problem, policy))


@dataclass(frozen=True)
class TreeOnlyReader:
    """A policy of the paper's, which knows no names and not how sure it is."""

    problem: object  # Algebra
    policy: Policy

    def read(self, pages: Sequence[Page]) -> list[PageReading]:
        """Heads, with the names that the pages have themselves."""
        return [self._read(page) for page in pages]

    def _read(self, page: Page) -> PageReading:
        from aggrevated_reader.page_reader import PageReading, attach_headless_to_root, list_stroke_numbers

        unsure = np.full(len(page), np.nan)
        heads, _ = attach_headless_to_root(list_frames(*self.make_parser(page))[-1][0], unsure)
        return PageReading(
            page.symbols, page.symbols, unsure, heads, unsure, math.nan, page.boxes, list_stroke_numbers(page)
        )

    def make_parser(self, page: Page) -> tuple[Policy, Parser]:
        """The policy, with the page before it."""
        from aggrevated.parsing.problem import AlgebraProblemSettings

        assert isinstance(self.problem, AlgebraProblemSettings)
        return self.policy, self.problem.make_parser(self.policy, [page])


def list_frames(policy: Policy, parser: Parser) -> list[Frame]:
    """The configurations on the way through the parser's first page, for a drawing; the last has all heads."""
    from aggrevated.core.hardware import single_thread
    from aggrevated.core.rng import SeedPurpose, derive_seeds
    from aggrevated.parsing.parser import CONFIGURATION
    from aggrevated.parsing.transitions.configurations import ConfigurationView
    from aggrevated.rollout.roll_in import RollInPolicy, roll_in

    with single_thread():
        found = roll_in(
            parser, RollInPolicy(None, policy.actor()), derive_seeds(0, SeedPurpose.TEST, 0, 1), deterministic=True
        )
        last, _, _ = parser.step(found.states[:, -1], found.actions[:, -1])
    frames: list[Frame] = []
    names = ["start", *(parser.system.actions[action] for action in found.actions[0])]
    for row, name in zip([*found.states[0], last[0]], names, strict=True):
        view = ConfigurationView(row[None, CONFIGURATION])
        frames.append((parser.heads(row[None])[0], np.flatnonzero(view.on_stack[0]).tolist(), int(view.b[0]), name))
    return frames


def select_frames(frames: Sequence[Frame], count: int = 6) -> list[Frame]:
    """So many of the frames, evenly spaced, the last among them."""
    chosen = np.unique(np.linspace(0, len(frames) - 1, count + 1).round().astype(int)[1:])
    return [frames[place] for place in chosen]


def format_arcs(parsed: ParsedPage) -> list[str]:
    """A line for each symbol, for people; with its name and how sure the head is, where that is known."""
    reading = parsed.reading
    names = ["ROOT", *("" if label == "?" else label for label in reading.labels)]
    width = max(map(len, names))
    lines = []
    for number, (head, sure) in enumerate(zip(parsed.heads, reading.arc_confidence, strict=True), start=1):
        said = "" if math.isnan(sure) else f"  {sure:.0%}"
        lines.append(f"{number:3d} {names[number]:<{width}} <- {head:3d} {names[head]:<{width}}{said}".rstrip())
    return lines


def find_page_files(paths: Sequence[Path]) -> list[Path]:
    """The files, and those of the folders among them that have the ending of one that can be read."""
    found: list[Path] = []
    for path in paths:
        with reraise_storage_errors(path):
            path.stat()  # what was named has to be there
            inside = (one for one in path.rglob("*") if one.suffix.lower() in (*ENDINGS, ".inkml") and one.is_file())
            found += sorted(islice(inside, MAX_FILES + 1)) if path.is_dir() else [path]
        if len(found) > MAX_FILES:
            raise DataError(f"there are more than {MAX_FILES:,} files in these folders; give fewer at a time")
    if not found:
        raise DataError(f"{paths[0]} holds no picture, PDF or InkML; give a folder that does")
    return found


def count_failures(errors: Sequence[tuple[Path, AggrevatedError]]) -> Counter[str]:
    """How many files could not be read, by the reason, without what is particular to a file."""
    return Counter(extract_reason(file, error) for file, error in errors)


def extract_reason(file: Path, error: AggrevatedError) -> str:
    """Why, without the file's name and the remedy."""
    return str(error).replace(f"{file}: ", "").replace(str(file), "it").split(";")[0]
