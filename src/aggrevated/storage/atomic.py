"""Files written whole or not at all, locks on folders, and limits on what is read from others."""

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from aggrevated.core.errors import DataError, StorageError, UsageError


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


FULL = (errno.ENOSPC, errno.EDQUOT)
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)  # what file systems without hard links say


@contextmanager
def reraise_storage_errors(path: Path) -> Iterator[None]:
    """Turn what the operating system says about `path` into one sentence with a remedy."""
    try:
        yield
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        full = error.errno in FULL
        remedy = "free some space or choose another folder" if full else "check the path and its permissions"
        raise StorageError(f"cannot use {path}: {error.strerror or error}; {remedy}") from error


def write_atomically(path: Path, data: bytes) -> None:
    """Write the file whole or not at all: a temporary file beside it, synced, renamed."""
    _write_via_temporary(path, data, Path.replace)


def write_exclusive(path: Path, data: bytes) -> bool:
    """The same, unless there is such a file already: of several who do it at once, one alone is told that it did."""
    try:
        _write_via_temporary(path, data, _link_exclusive)
    except StorageError as error:
        if isinstance(error.__cause__, FileExistsError):
            return False
        raise
    return True


def write_all(file: int, data: bytes) -> None:
    """All of it: the operating system may take it in pieces."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def remove_temporary_files(folder: Path) -> None:
    """Remove the temporary files that a kill in the middle of a write left behind."""
    with reraise_storage_errors(folder):
        for leftover in folder.rglob(".*.tmp"):
            if leftover.is_file():
                leftover.unlink(missing_ok=True)


def is_temporary_file(path: Path) -> bool:
    """Whether it is a temporary file of ours."""
    return path.name.startswith(".") and path.name.endswith(".tmp")


def _write_via_temporary(path: Path, data: bytes, name: Callable[[Path, Path], object]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(3)}.tmp")
    with reraise_storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            try:
                write_all(file, data)
                os.fsync(file)
            finally:
                os.close(file)
            name(temporary, path)
        finally:
            with suppress(OSError):  # what went wrong before is what is told
                temporary.unlink()
        _sync_folder(path.parent)


def _link_exclusive(temporary: Path, path: Path) -> None:
    """Give the file its name, if nobody has it."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
        temporary.replace(path)


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems do not sync folders
            raise
    finally:
        os.close(file)
