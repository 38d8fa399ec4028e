"""Whether the lines of a journal are as they were written, looked at little by little beside other work."""

from __future__ import annotations

import os
import time

from aggrevated.errors import DataError
from aggrevated.files.journal import FIRST, SEAL, object_in, sealed
from aggrevated.server.following import Place, Tail, opened

PIECE = 256 << 10  # bytes; some three hundred lines


class Seals:
    """Follows what a `Tail` has read, and says which line is not as it was written."""

    def __init__(self, tail: Tail) -> None:
        self.tail = tail
        self.begin()

    def begin(self) -> None:
        """As if nothing had been looked at."""
        self.place = self.tail.place
        self.offset, self.lines, self.seal, self.torn = 0, 0, FIRST, 0
        self.sentence = ""

    @property
    def done(self) -> bool:
        """Whether all that was read is looked at, or needs no further look."""
        return not self._is_another() and (bool(self.sentence) or self.offset >= self.tail.offset)

    def look(self, until: float) -> None:
        """Look at some more lines, for so long at most."""
        if self._is_another():
            self.begin()
        try:
            with opened(self.tail.path) as file:
                same = self.place is not None and Place.of(os.fstat(file)).is_same_file(self.place)
                while same and not self.done and time.monotonic() < until:
                    self._look_at_piece(file)
        except (OSError, DataError):
            return  # the tail says so

    def _is_another(self) -> bool:
        now = self.tail.place
        if now is None or self.place is None:
            return now is not self.place
        written_over = now.size == self.place.size and now.changed != self.place.changed
        other = written_over or not now.is_same_file(self.place) or now.size < self.place.size
        if not other:
            self.place = now
        return other

    def _look_at_piece(self, file: int) -> None:
        data = os.pread(file, min(PIECE, self.tail.offset - self.offset), self.offset)
        cut = data.rfind(b"\n") + 1
        if not cut:  # a very long line, or a file that became shorter
            data = os.pread(file, self.tail.offset - self.offset, self.offset)
            cut = data.find(b"\n") + 1
        if not cut:
            self.offset = self.tail.offset
            return
        for line in data[:cut].split(b"\n")[:-1]:
            self._look_at(line)
            if self.sentence:
                return
        self.offset += cut

    def _look_at(self, line: bytes) -> None:
        self.lines += 1
        facts = object_in(line)
        if facts is None:
            self.torn = self.torn or self.lines  # by a crash, unless there is more behind it
            return
        own = facts.pop(SEAL, None)
        if self.torn or own != sealed(facts, self.seal)[1]:
            what = f"line {self.torn or self.lines} of {self.tail.path} is not as it was written"
            remedy = "restore it, or remove it, and what the checkpoints know of it is written again"
            self.sentence = f"{what}, or one before it is missing; {remedy}"
        else:
            self.seal = own
