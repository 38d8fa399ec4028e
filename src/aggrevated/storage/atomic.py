"""Atomic writes, locks on folders, and size-limited reads of untrusted files."""

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
def open_regular_file(path: Path, expected: str) -> Iterator[BinaryIO]:
    """Open a regular file for reading, or raise a `DataError` that names the `expected` file."""
    with reraise_storage_errors(path):
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would never end
            raise DataError(f"{path} is not a regular file; give the path of {expected}")
        with path.open("rb") as file:
            yield file


def read_prefix(path: Path, max_size: int, expected: str) -> bytes:
    """Return at most the first `max_size` bytes of a file; `expected` describes the file in errors."""
    with open_regular_file(path, expected) as file:
        return file.read(max_size)


def read_limited(path: Path, max_size: int, expected: str, limit_and_remedy: str) -> bytes:
    """Return all bytes of a file, or raise a `DataError` if there are more than `max_size`.

    `expected` describes the file in errors; `limit_and_remedy` completes "FILE is larger than …".
    """
    with open_regular_file(path, expected) as file:
        if path.stat().st_size > max_size or len(data := file.read(max_size + 1)) > max_size:
            raise DataError(f"{path} is larger than {limit_and_remedy}")
    return data


def truncate_message(value: object, max_length: int = 120) -> str:
    """Return untrusted text, or an error about it, as a printable line of at most `max_length` characters."""
    characters = " ".join(str(value).split())[: max_length + 1]
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in characters)
    return line if len(line) <= max_length else line[: max_length - 3] + "..."


LOCK = ".lock"


@contextmanager
def exclusive_lock(folder: Path) -> Iterator[None]:
    """Hold the folder's lock inside the block, so that only one process writes to it."""
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


DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT)
NO_LINK_ERRORS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)  # of file systems without hard links


@contextmanager
def reraise_storage_errors(path: Path) -> Iterator[None]:
    """Reraise an `OSError` inside the block as a `StorageError` about `path`, with a remedy."""
    try:
        yield
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        is_full = error.errno in DISK_FULL_ERRORS
        remedy = "free some space or choose another folder" if is_full else "check the path and its permissions"
        raise StorageError(f"cannot use {path}: {error.strerror or error}; {remedy}") from error


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file completely or not at all: write a temporary file, sync and rename it."""
    _write_via_temporary(path, data, Path.replace)


def write_exclusive(path: Path, data: bytes) -> bool:
    """Write a file atomically unless it exists, and return whether it was written.

    If several processes call this at once, exactly one of them gets True.
    """
    try:
        _write_via_temporary(path, data, _link_exclusive)
    except StorageError as error:
        if isinstance(error.__cause__, FileExistsError):
            return False
        raise
    return True


def write_all(file: int, data: bytes) -> None:
    """Write all bytes to a file descriptor; `os.write` may write fewer."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(file, remaining) :]


def remove_temporary_files(folder: Path) -> None:
    """Remove the temporary files of interrupted writes."""
    with reraise_storage_errors(folder):
        for leftover in folder.rglob(".*.tmp"):
            if leftover.is_file():
                leftover.unlink(missing_ok=True)


def is_temporary_file(path: Path) -> bool:
    """Return whether a path has the name of a temporary file of `write_atomically`."""
    return path.name.startswith(".") and path.name.endswith(".tmp")


def _write_via_temporary(path: Path, data: bytes, rename: Callable[[Path, Path], object]) -> None:
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
            rename(temporary, path)
        finally:
            with suppress(OSError):  # an earlier error is the one to report
                temporary.unlink()
        _sync_folder(path.parent)


def _link_exclusive(temporary: Path, path: Path) -> None:
    """Give a temporary file its name, or raise a `FileExistsError` if the name is taken."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in NO_LINK_ERRORS:
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
