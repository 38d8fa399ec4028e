"""Journals: files of JSON lines, each with a checksum of itself and all lines before it.

An incomplete last line, after a crash, is not an error: the lines before it are intact. A changed or missing
line in the middle is an error.
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
MAX_LINE = 1 << 20  # bytes; a line of metrics.jsonl has about 500


class ChecksummedJournal:
    """A journal that is open for appending.

    Args:
        path: path of the file, which is created if it is missing.
        checksum: checksum of the last line.
    """

    def __init__(self, path: Path, checksum: str) -> None:
        self.path = path
        self.checksum = checksum
        with reraise_storage_errors(path):
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def append(self, record: JsonDict) -> None:
        """Append one line."""
        line, self.checksum = encode_checksummed_line(record, self.checksum)
        with reraise_storage_errors(self.path):
            write_all(self._file, line)

    def sync(self) -> None:
        """Force the written lines to disk."""
        with reraise_storage_errors(self.path):
            os.fsync(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)


def encode_checksummed_line(record: JsonDict, previous: str) -> tuple[bytes, str]:
    """Return the line of a record, and its checksum, given the checksum of the previous line."""
    text = json.dumps(record, sort_keys=True)
    checksum = sha256((previous + text).encode()).hexdigest()[:16]
    return f"{json.dumps({**record, CHECKSUM_KEY: checksum})}\n".encode(), checksum


def rewrite_journal(path: Path, records: Iterable[JsonDict]) -> str:
    """Write a whole journal atomically, and return the checksum of its last line."""
    checksum = INITIAL_CHECKSUM
    data = bytearray()
    for record in records:
        line, checksum = encode_checksummed_line(record, checksum)
        data += line
    write_atomically(path, bytes(data))
    return checksum


def read_journal(path: Path) -> list[JsonDict]:
    """Return the records of all complete lines; [] if the file does not exist.

    Raises:
        DataError: a line before the last was changed or is missing; names the first.
    """
    if not os.path.lexists(path):
        return []
    checksum = INITIAL_CHECKSUM
    records = list[JsonDict]()
    damaged = 0
    with open_regular_file(path, "a journal of this package") as file:
        for number, line in enumerate(iter_complete_lines(file), start=1):
            record = parse_line(line)
            if record is None:
                damaged = damaged or number  # by a crash, unless more lines follow
                continue
            line_checksum = record.pop(CHECKSUM_KEY, None)
            if damaged or line_checksum != encode_checksummed_line(record, checksum)[1]:
                remedy = "restore the file, or remove it: resuming rewrites what the checkpoints contain"
                problem = f"line {damaged or number} of {path} was changed, or a line before it is missing"
                raise DataError(f"{problem}; {remedy}")
            checksum = line_checksum
            records.append(record)
    return records


def iter_complete_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield complete lines; an incomplete line, or one of more than MAX_LINE bytes, ends the journal."""
    while (line := file.readline(MAX_LINE)).endswith(b"\n"):
        yield line


def iter_chained_checksums(records: Iterable[JsonDict]) -> Iterator[str]:
    """Yield the checksum of each record's line."""
    checksum = INITIAL_CHECKSUM
    for record in records:
        _, checksum = encode_checksummed_line(record, checksum)
        yield checksum


def parse_line(line: bytes) -> JsonDict | None:
    """Return the JSON object in a line, or None if it is not one."""
    try:
        record = parse_json(decode_utf8(line))
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
