"""What a run's metrics.jsonl tells while it grows: only what was appended is read, only what is shown is parsed.

Nothing is locked and nothing is written: whoever appends to the file does not notice. A line without its end waits for
it; a file that was replaced or cut, as by a resume, is begun again.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from aggrevated.errors import DataError
from aggrevated.files import Facts, in_short
from aggrevated.files.journal import MAX_LINE, object_in

MOST_POINTS = 200  # of a curve, the newest not counted; between this and half as many are kept of a longer one
PIECE = 8 << 20  # bytes that are read at once
REMEMBERED = 64  # bytes before the place where reading goes on: they are looked at again
SHOWN = ("current_return", "best_return", "simulator_steps", "oracle_queries", "seconds")  # besides the iteration
LARGEST = 1e300  # of a number that can be drawn
LIVING, DIED = b'"died": ""', b'"died": "'  # in the lines of iterations that learn, and of all


class Point(NamedTuple):
    """What is shown of one iteration; all but the returns are counted from the beginning of the run."""

    iteration: int
    current: float | None
    best: float | None
    steps: float | None  # of the simulator, by start, roll-ins and oracle
    queries: float | None
    seconds: float | None


class Death(NamedTuple):
    """That learning has died, by the words of the iteration, and which that was."""

    iteration: int
    reason: str


class Place(NamedTuple):
    """Which file it was, and how it was when it was read."""

    device: int
    node: int
    size: int
    changed: int

    @classmethod
    def of(cls, found: os.stat_result) -> Place:
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)

    def is_same_file(self, other: Place) -> bool:
        return self[:2] == other[:2]


class Tail:
    """A curve of a few hundred points, out of a journal of any length. Every 2ᵏ-th line is kept, and the newest."""

    def __init__(self, path: Path) -> None:
        self.path, self.beginnings = path, 0
        self.begin()

    def begin(self) -> None:
        """As if nothing had been read."""
        self.place: Place | None = None
        self.offset, self.lines, self.stride, self._last_bytes = 0, 0, 1, b""
        self.kept, self._numbers = list[Point](), list[int]()  # the points, and which lines they are
        self.newest: Point | None = None
        self.dead_lines, self.deaths = 0, list[Death]()  # of the latter the first and the last
        self.sentence = ""  # why it cannot be read
        self.behind = False  # whether there is more that was not read yet for lack of time
        self.beginnings += 1  # how often all points became others: also where they are thinned

    def read(self, until: float) -> None:
        """Go on to the end of the file, or until that time."""
        found = None
        try:
            found = Place.of(os.lstat(self.path))
            if found == self.place and not self.behind:
                return
            with opened(self.path) as file:
                self._read(file, until)
        except FileNotFoundError:
            if self.place is not None:
                self.begin()
        except DataError as error:
            self._refuse(str(error), found)
        except OSError as error:
            self._refuse(f"{self.path} cannot be read: {error.strerror or error}; check its permissions", found)

    def _refuse(self, sentence: str, found: Place | None) -> None:
        self.begin()
        self.sentence, self.place = sentence, found  # it is not read again before it changes

    def _read(self, file: int, until: float) -> None:
        found = Place.of(os.fstat(file))
        if not self._goes_on(file, found):
            self.begin()
        self.place, self.behind = found, True
        while self.behind and time.monotonic() < until:
            self.behind = self._read_piece(file, found.size)

    def _goes_on(self, file: int, found: Place) -> bool:
        """Whether what was read is still what is before the place where reading goes on."""
        if self.place is None or self.sentence or not found.is_same_file(self.place) or found.size < self.place.size:
            return False
        if found.size == self.place.size and found.changed != self.place.changed:
            return False  # written over
        start = self.offset - len(self._last_bytes)
        return os.pread(file, len(self._last_bytes), start) == self._last_bytes

    def _read_piece(self, file: int, size: int) -> bool:
        """Read some whole lines; whether there may be more."""
        data = os.pread(file, min(PIECE, size - self.offset), self.offset)
        cut = data.rfind(b"\n") + 1
        if not cut:
            if len(data) > MAX_LINE:
                raise DataError(
                    f"line {self.lines + 1} of {self.path} is longer than any of ours; restore it, or start a new run"
                )
            return False
        whole = data[:cut]
        lines = whole.split(b"\n")[:-1]
        self._thin(self.lines + (size - self.offset) * len(lines) // cut)
        self._take(lines)
        self._find_deaths(whole, lines)
        self.lines, self.offset, self._last_bytes = self.lines + len(lines), self.offset + cut, whole[-REMEMBERED:]
        return self.offset < size

    def _thin(self, expected: int) -> None:
        """Keep fewer points where so many lines would give too many."""
        stride = self.stride
        while expected // stride > MOST_POINTS:
            stride *= 2
        if stride == self.stride:
            return
        self.stride = stride
        if self.kept:
            left = [place for place, line in enumerate(self._numbers) if line == 1 or line % stride == 0]
            self.kept, self._numbers = [self.kept[i] for i in left], [self._numbers[i] for i in left]
            self.beginnings += 1

    def _take(self, lines: list[bytes]) -> None:
        """The points of those lines that are kept, and of the last."""
        before, first = self.lines, (-self.lines - 1) % self.stride
        wanted = list(range(first, len(lines), self.stride))
        if before == 0 and first:
            wanted.insert(0, 0)
        for i in wanted:
            point = point_of(object_in(lines[i]))
            if point is not None:
                self.kept.append(point)
                self._numbers.append(before + i + 1)
        self.newest = point_of(object_in(lines[-1])) or self.newest

    def _find_deaths(self, whole: bytes, lines: list[bytes]) -> None:
        """Look for iterations that say that learning has died: by bytes, so that few lines are parsed."""
        if whole.count(LIVING) >= len(lines):
            return
        dead = [line for line in lines if LIVING not in line and DIED in line]
        self.dead_lines += len(dead)
        found = [death for line in (dead[:1] + dead[-1:]) if (death := death_in(object_in(line))) is not None]
        self.deaths = (self.deaths[:1] or found[:1]) + found[-1:]


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """A regular file, open for reading; nothing that would wait, and nowhere that a link leads to."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise DataError(f"{path} is not a regular file; restore it, or start a new run")
        yield file
    finally:
        os.close(file)


def point_of(facts: Facts | None) -> Point | None:
    """What is shown of a line; None if it is no line of metrics."""
    iteration = whole_number(facts, "iteration")
    if facts is None or iteration is None:
        return None
    return Point(iteration, *[drawable(facts.get(name)) for name in SHOWN])


def death_in(facts: Facts | None) -> Death | None:
    """What a line says of learning that has died, if it does."""
    iteration = whole_number(facts, "iteration")
    if facts is None or iteration is None or not isinstance(facts.get("died"), str) or not facts["died"]:
        return None
    return Death(iteration, in_short(facts["died"]))


def number(facts: Any, *names: str) -> float | None:
    """The number at that place of facts inside of facts; None where there is none that can be drawn."""
    for name in names:
        facts = facts.get(name) if isinstance(facts, dict) else None
    return drawable(facts)


def drawable(value: Any) -> float | None:
    """The number that it is; None if it is none, or not finite."""
    return value if type(value) in (float, int) and -LARGEST <= value <= LARGEST else None


def whole_number(facts: Any, *names: str) -> int | None:
    """The same for a count."""
    found = number(facts, *names)
    return found if isinstance(found, int) and 0 <= found <= 1 << 53 else None


def words(facts: Any, *names: str) -> str:
    """The same for a text, in short; nothing where there is none."""
    for name in names:
        facts = facts.get(name) if isinstance(facts, dict) else None
    return in_short(facts, 80) if isinstance(facts, str) else ""
