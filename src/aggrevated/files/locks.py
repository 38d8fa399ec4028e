"""One process at a time."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aggrevated.errors import UsageError
from aggrevated.files.atomic import storage_errors


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, so that no two processes write to it."""
    with storage_errors(folder):
        file = (folder / ".lock").open("w")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(f"{folder} is in use by another process; wait for it or stop it first") from error
        yield
