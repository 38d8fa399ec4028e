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

from aggrevated.core.errors import DataError
from aggrevated.storage.atomic import open_regular_file, reraise_storage_errors, write_all, write_atomically
from aggrevated.storage.checksummed import JsonDict, decode_utf8, parse_json

CHECKSUM_KEY = "checksum"
INITIAL_CHECKSUM = ""  # before the first line
MAX_LINE = 1 << 20  # bytes; one of metrics.jsonl has some 500


class ChecksummedJournal:
    """Open for more lines, from the last that is there. `seal` is that of the last line."""

    def __init__(self, path: Path, seal: str) -> None:
        self.path = path
        self.checksum = seal
        with reraise_storage_errors(path):
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def append(self, facts: JsonDict) -> None:
        """One more line."""
        line, self.checksum = encode_checksummed_line(facts, self.checksum)
        with reraise_storage_errors(self.path):
            write_all(self._file, line)

    def sync(self) -> None:
        """Let what was written outlive the machine."""
        with reraise_storage_errors(self.path):
            os.fsync(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)


def encode_checksummed_line(facts: JsonDict, before: str) -> tuple[bytes, str]:
    """(the line, its seal) of facts that come after a line with the seal `before`."""
    text = json.dumps(facts, sort_keys=True)
    seal = sha256((before + text).encode()).hexdigest()[:16]
    return f"{json.dumps({**facts, CHECKSUM_KEY: seal})}\n".encode(), seal


def rewrite_journal(path: Path, lines: Iterable[JsonDict]) -> str:
    """Write it anew, whole or not at all, and give the seal of its last line."""
    seal = INITIAL_CHECKSUM
    data = bytearray()
    for facts in lines:
        line, seal = encode_checksummed_line(facts, seal)
        data += line
    write_atomically(path, bytes(data))
    return seal


def read_journal(path: Path) -> list[JsonDict]:
    """The facts of all whole lines; a `DataError` that names the first line that is not as it was written."""
    if not os.path.lexists(path):
        return []
    seal = INITIAL_CHECKSUM
    found = list[JsonDict]()
    torn = 0
    with open_regular_file(path, "a journal of ours") as file:
        for number, line in enumerate(iter_complete_lines(file), start=1):
            facts = parse_line(line)
            if facts is None:
                torn = torn or number  # by a crash, unless there is more behind it
                continue
            own = facts.pop(CHECKSUM_KEY, None)
            if torn or own != encode_checksummed_line(facts, seal)[1]:
                remedy = "restore it, or remove it, and what the checkpoints know of it is written again"
                what = f"line {torn or number} of {path} is not as it was written, or one before it is missing"
                raise DataError(f"{what}; {remedy}")
            seal = own
            found.append(facts)
    return found


def iter_complete_lines(file: BinaryIO) -> Iterator[bytes]:
    """Without what is behind the last line; what is longer than any line of ours is taken for that."""
    while (line := file.readline(MAX_LINE)).endswith(b"\n"):
        yield line


def iter_chained_checksums(lines: Iterable[JsonDict]) -> Iterator[str]:
    """The seal of each line."""
    seal = INITIAL_CHECKSUM
    for facts in lines:
        _, seal = encode_checksummed_line(facts, seal)
        yield seal


def parse_line(line: bytes) -> JsonDict | None:
    """The JSON object in a line, if it is one."""
    try:
        facts = parse_json(decode_utf8(line))
    except ValueError:
        return None
    return facts if isinstance(facts, dict) else None
