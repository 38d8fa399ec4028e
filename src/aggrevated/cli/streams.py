"""Standard streams that may be closed, or whose reader may leave: that ends what is said, never what is done."""

import errno
import io
import os
import sys
from pathlib import Path
from typing import Any, TextIO

BROKEN_PIPE_ERRORS = (errno.EPIPE, errno.EIO)  # the reader, or the terminal


class BrokenPipeTolerantStream(io.FileIO):
    """A stream that becomes the void when nobody reads it any more."""

    has_left = False  # whoever read it

    def write(self, data: Any, /) -> int:
        """All of it, as far as anybody can tell."""
        try:
            return super().write(data) or 0
        except OSError as error:
            void = os.open(os.devnull, os.O_WRONLY)
            os.dup2(void, self.fileno())  # it is told once: Python tries again when it ends
            os.close(void)
            self.has_left = error.errno in BROKEN_PIPE_ERRORS
            if error.errno not in BROKEN_PIPE_ERRORS and self.fileno() != 2:  # for notes there is no remedy
                raise
            return memoryview(data).nbytes


def is_pipe_broken(stream: TextIO) -> bool:
    """Whether nobody reads the stream any more, so that what is merely said can end."""
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return isinstance(raw, BrokenPipeTolerantStream) and raw.has_left


def install_streams() -> None:
    """Open those of the three that are closed, so that no file of ours takes their place; let none of them break."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which takes the lowest number that is free: this one
    sys.stdin = sys.stdin or Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - it stays open
    sys.stdout = make_tolerant(sys.stdout, sys.__stdout__, 1)
    sys.stderr = make_tolerant(sys.stderr, sys.__stderr__, 2)


def make_tolerant(stream: TextIO | None, original: TextIO | None, number: int) -> TextIO:
    """The stream, if somebody has put another in its place; else one over the same file that does not break."""
    if stream is None:
        return io.TextIOWrapper(
            io.BufferedWriter(BrokenPipeTolerantStream(number, "w", closefd=False)), "utf-8", line_buffering=True
        )
    if stream is not original or not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    raw = io.BufferedWriter(BrokenPipeTolerantStream(number, "w", closefd=False))
    return io.TextIOWrapper(raw, stream.encoding, stream.errors, line_buffering=stream.line_buffering)
