"""Files that are whole or absent, and sealed files that know whether they are what was written. No pickle anywhere."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from aggrevated.errors import DataError, StorageError

if TYPE_CHECKING:  # those who only read files have no need of torch
    from torch import Tensor

Facts: TypeAlias = dict[str, Any]  # whatever JSON can hold


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


def write_json(path: Path, facts: Facts) -> None:
    """Write JSON for people and machines, atomically."""
    write_atomically(path, (json.dumps(facts, indent=2, ensure_ascii=False) + "\n").encode())


def read_json(path: Path) -> Facts:
    """A JSON object from a file, or a `DataError` that says which file is not one."""
    with storage_errors(path):
        data = path.read_bytes()
    try:
        facts = json.loads(data)
    except ValueError as error:
        raise DataError(f"{path} is not valid JSON ({error}); restore the file or start a new run") from error
    if not isinstance(facts, dict):
        raise DataError(f"{path} does not hold a JSON object; restore the file or start a new run")
    return facts


def digest(tensors: dict[str, Tensor], facts: Facts | None = None) -> str:
    """The SHA-256 of names, types, shapes and bytes of the tensors, and of the facts."""
    sha = hashlib.sha256(json.dumps(facts or {}, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        sha.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        sha.update(tensor.detach().contiguous().numpy().tobytes())
    return sha.hexdigest()


def seal(path: Path, tensors: dict[str, Tensor], facts: Facts) -> None:
    """Write tensors and facts as one safetensors file that carries its own SHA-256."""
    from safetensors.torch import save

    metadata = {"facts": json.dumps(facts, sort_keys=True), "sha256": digest(tensors, facts)}
    contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, save(contiguous, metadata))


def unseal(path: Path) -> tuple[dict[str, Tensor], Facts]:
    """(tensors, facts) of a sealed file, or a `DataError` if one bit of it is not as it was written."""
    from safetensors import SafetensorError, safe_open

    with storage_errors(path):
        path.open("rb").close()
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is not a dict
        facts = json.loads(metadata["facts"])
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise DataError(
            f"{path} is damaged or is not a file of ours ({error!r}); restore it or make it again"
        ) from error
    if digest(tensors, facts) != metadata.get("sha256"):
        raise DataError(f"{path} is damaged: its SHA-256 does not match; restore it or make it again")
    return tensors, facts
