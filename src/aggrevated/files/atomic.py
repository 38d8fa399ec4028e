"""Files that are whole or absent, whatever happens while they are written."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aggrevated.errors import StorageError


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn what the operating system says about `path` into one sentence with a remedy."""
    try:
        yield
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        remedy = (
            "free some space or choose another folder" if error.errno == 28 else "check the path and its permissions"
        )
        raise StorageError(f"cannot use {path}: {error.strerror or error}; {remedy}") from error


def write_atomically(path: Path, data: bytes) -> None:
    """Write the file whole or not at all: a temporary file beside it, synced, renamed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def sweep(folder: Path) -> None:
    """Remove the temporary files that a kill in the middle of a write left behind."""
    with storage_errors(folder):
        for leftover in folder.rglob(".*.tmp"):
            leftover.unlink(missing_ok=True)
