"""Sealed files: tensors and facts that know whether they are what was written. No pickle anywhere."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aggrevated.errors import DataError
from aggrevated.storage.atomic import reraise_storage_errors, write_atomically
from aggrevated.storage.bounded_json import MAX_JSON, decode_utf8, parse_json
from aggrevated.storage.json_files import JsonDict
from aggrevated.storage.untrusted import open_regular_file, truncate_message

if TYPE_CHECKING:  # those who only read files have no need of torch
    from torch import Tensor

MAX_FILE_SIZE = 4 << 30  # bytes; a checkpoint with all its data has some 20 million. They are mapped, and not copied
MAX_TENSORS = 100_000  # a mixture of policies has those of each iteration
DTYPES = {"F64", "F32", "F16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL"}  # that NumPy has, too


def digest_tensors(tensors: dict[str, Tensor], facts: JsonDict | None = None) -> str:
    """The SHA-256 of names, types, shapes and bytes of the tensors, and of the facts."""
    sha = hashlib.sha256(json.dumps(facts or {}, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        sha.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        sha.update(_bytes_of(tensor))
    return sha.hexdigest()


def _bytes_of(tensor: Tensor) -> Any:
    """The numbers as they lie in memory, of whatever type, without a copy."""
    import torch

    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()


def save_checksummed(path: Path, tensors: dict[str, Tensor], facts: JsonDict) -> None:
    """Write tensors and facts as one safetensors file that carries its own SHA-256."""
    from safetensors.torch import save

    metadata = {"facts": json.dumps(facts, sort_keys=True), "sha256": digest_tensors(tensors, facts)}
    contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, save(contiguous, metadata))


def load_checksummed(path: Path, most: int = MAX_FILE_SIZE) -> tuple[dict[str, Tensor], JsonDict]:
    """(tensors, facts) of a sealed file, or a `DataError` if one bit of it is not as it was written.

    One of more than `most` bytes is refused.
    """
    from safetensors import safe_open

    with reraise_storage_errors(path):
        try:
            _check_header(path, most)
            with safe_open(path, framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is not a dict
            facts = parse_json(decode_utf8(metadata["facts"].encode()))
            if not isinstance(facts, dict):
                raise DataError("its facts are no JSON object")
        except (OSError, MemoryError):
            raise
        except Exception as error:  # shapes that are too large are noticed here and there
            raise DataError(
                f"{path} is damaged or is not a file of ours ({truncate_message(error)}); restore it or make it again"
            ) from error
    if digest_tensors(tensors, facts) != metadata.get("sha256"):
        raise DataError(f"{path} is damaged: its SHA-256 does not match; restore it or make it again")
    return tensors, facts


def _check_header(path: Path, most: int) -> None:
    """Raise a `DataError` if the file is not what it says, or more than one should read."""
    with open_regular_file(path, "a sealed file (.safetensors)") as file:
        size = path.stat().st_size
        length = int.from_bytes(file.read(8), "little")
        if size > most:
            raise DataError(f"it has {size:,} bytes, and {most:,} are the most")
        if size < 8 or length > min(size - 8, MAX_JSON):
            raise DataError("it is cut off, or its header is too large")
        header = parse_json(decode_utf8(file.read(length)))
    if not isinstance(header, dict) or len(header) > MAX_TENSORS:
        raise DataError(f"its header is no JSON object, or has more than {MAX_TENSORS:,} tensors")
    for name, tensor in header.items():
        if name != "__metadata__" and (not isinstance(tensor, dict) or tensor.get("dtype") not in DTYPES):
            raise DataError(f"its tensor {name} is of a type that we do not write")
