"""One process at a time."""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aggrevated.errors import DataError, UsageError
from aggrevated.storage.atomic import reraise_storage_errors

LOCK = ".lock"


@contextmanager
def exclusive_lock(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, so that no two processes write to it."""
    path = folder / LOCK
    with reraise_storage_errors(folder):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)  # a pipe would wait
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise DataError(f"{path} is not a regular file; remove it")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(f"{folder} is in use by another process; wait for it or stop it first") from error
        yield
    finally:
        os.close(file)
