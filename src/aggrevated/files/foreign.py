"""Files that others made: read up to a limit, and only if they are plain files."""

import stat
from pathlib import Path

from aggrevated.errors import DataError
from aggrevated.files.atomic import storage_errors


def start_of(path: Path, most: int, what: str) -> bytes:
    """At most so many bytes of a file that others made, or a `DataError` that says `what` it should be."""
    with storage_errors(path):
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would never end
            raise DataError(f"{path} is not a regular file; give the path of {what}")
        with path.open("rb") as file:
            return file.read(most)


def read_bounded(path: Path, most: int, what: str, too_large: str) -> bytes:
    """All bytes of such a file; one of more than `most` is said to be larger than `too_large` tells."""
    data = start_of(path, most + 1, what)
    if len(data) > most:
        raise DataError(f"{path} is larger than {too_large}")
    return data
