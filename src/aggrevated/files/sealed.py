"""Sealed files: tensors and facts that know whether they are what was written. No pickle anywhere."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from aggrevated.errors import DataError
from aggrevated.files.atomic import storage_errors, write_atomically
from aggrevated.files.json_files import Facts

if TYPE_CHECKING:  # those who only read files have no need of torch
    from torch import Tensor


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
