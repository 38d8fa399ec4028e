"""Files that others made: read up to a limit, and only if they are plain files."""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from aggrevated.errors import DataError
from aggrevated.storage.atomic import reraise_storage_errors


@contextmanager
def open_regular_file(path: Path, what: str) -> Iterator[BinaryIO]:
    """The file, open for reading, or a `DataError` that says `what` it should be."""
    with reraise_storage_errors(path):
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would never end
            raise DataError(f"{path} is not a regular file; give the path of {what}")
        with path.open("rb") as file:
            yield file


def read_prefix(path: Path, most: int, what: str) -> bytes:
    """At most so many bytes of a file that others made, or a `DataError` that says `what` it should be."""
    with open_regular_file(path, what) as file:
        return file.read(most)


def read_limited(path: Path, most: int, what: str, too_large: str) -> bytes:
    """All bytes of such a file; one of more than `most` is said to be larger than `too_large` tells."""
    with open_regular_file(path, what) as file:
        if path.stat().st_size > most or len(data := file.read(most + 1)) > most:
            raise DataError(f"{path} is larger than {too_large}")
    return data


def truncate_message(said: object, most: int = 120) -> str:
    """What a foreign file, or an error about one, says: on one line, printable and not long."""
    shown = "".join(
        sign if sign.isprintable() else ascii(sign)[1:-1] for sign in " ".join(str(said).split())[: most + 1]
    )
    return shown if len(shown) <= most else shown[: most - 3] + "..."
