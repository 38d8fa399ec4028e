"""A journal: facts line by line, where each line seals itself and all before it.

What was torn off at the end, by a crash, is no fault: the lines before it are as they were. A line that was changed, or
that is missing in the middle, is one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Self

from aggrevated.errors import DataError
from aggrevated.storage.atomic import storage_errors, write_all, write_atomically
from aggrevated.storage.bounded_json import decoded, parsed
from aggrevated.storage.json_files import Facts
from aggrevated.storage.untrusted import plain_file

SEAL = "seal"
FIRST = ""  # before the first line
MAX_LINE = 1 << 20  # bytes; one of metrics.jsonl has some 500


class Journal:
    """Open for more lines, from the last that is there. `seal` is that of the last line."""

    def __init__(self, path: Path, seal: str) -> None:
        self.path, self.seal = path, seal
        with storage_errors(path):
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def append(self, facts: Facts) -> None:
        """One more line."""
        line, self.seal = sealed(facts, self.seal)
        with storage_errors(self.path):
            write_all(self._file, line)

    def sync(self) -> None:
        """Let what was written outlive the machine."""
        with storage_errors(self.path):
            os.fsync(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)


def sealed(facts: Facts, before: str) -> tuple[bytes, str]:
    """(the line, its seal) of facts that come after a line with the seal `before`."""
    text = json.dumps(facts, sort_keys=True)
    seal = sha256((before + text).encode()).hexdigest()[:16]
    return f"{json.dumps({**facts, SEAL: seal})}\n".encode(), seal


def rewrite_journal(path: Path, lines: Iterable[Facts]) -> str:
    """Write it anew, whole or not at all, and give the seal of its last line."""
    seal, data = FIRST, bytearray()
    for facts in lines:
        line, seal = sealed(facts, seal)
        data += line
    write_atomically(path, bytes(data))
    return seal


def read_journal(path: Path) -> list[Facts]:
    """The facts of all whole lines; a `DataError` that names the first line that is not as it was written."""
    if not os.path.lexists(path):
        return []
    seal, found, torn = FIRST, list[Facts](), 0
    with plain_file(path, "a journal of ours") as file:
        for number, line in enumerate(whole_lines(file), start=1):
            facts = object_in(line)
            if facts is None:
                torn = torn or number  # by a crash, unless there is more behind it
                continue
            own = facts.pop(SEAL, None)
            if torn or own != sealed(facts, seal)[1]:
                remedy = "restore it, or remove it, and what the checkpoints know of it is written again"
                what = f"line {torn or number} of {path} is not as it was written, or one before it is missing"
                raise DataError(f"{what}; {remedy}")
            seal = own
            found.append(facts)
    return found


def whole_lines(file: BinaryIO) -> Iterator[bytes]:
    """Without what is behind the last line; what is longer than any line of ours is taken for that."""
    while (line := file.readline(MAX_LINE)).endswith(b"\n"):
        yield line


def seals(lines: Iterable[Facts]) -> Iterator[str]:
    """The seal of each line."""
    seal = FIRST
    for facts in lines:
        _, seal = sealed(facts, seal)
        yield seal


def object_in(line: bytes) -> Facts | None:
    """The JSON object in a line, if it is one."""
    try:
        facts = parsed(decoded(line))
    except ValueError:
        return None
    return facts if isinstance(facts, dict) else None
