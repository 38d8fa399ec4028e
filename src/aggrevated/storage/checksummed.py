"""Checksummed files: tensors and JSON with their SHA-256, which is checked when they are loaded."""

from __future__ import annotations

import hashlib
import json
import re
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from aggrevated.core.errors import DataError
from aggrevated.storage.atomic import (
    open_regular_file,
    read_prefix,
    reraise_storage_errors,
    truncate_message,
    write_atomically,
    write_exclusive,
)

if TYPE_CHECKING:
    from torch import Tensor


MAX_JSON = 16 << 20  # bytes; this package's largest files, of sweeps with hundreds of trials, have under 1 MB
MAX_DEPTH = 64  # files of this package are nested at most 6 deep
MAX_VALUES = 2_000_000  # brackets, commas and colons: about 200 MB of memory when parsed

DEPTH_CHANGES = {"[": 1, "{": 1, "]": -1, "}": -1}
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def decode_utf8(data: bytes) -> str:
    """Decode the bytes of a JSON file, or raise a `ValueError` if it is too large or not UTF-8."""
    if len(data) > MAX_JSON:
        raise DataError(f"it has more than {MAX_JSON >> 20} MB")
    return str(data, "utf-8-sig")


def parse_json(text: str) -> Any:
    """Parse untrusted JSON.

    Raises:
        json.JSONDecodeError: the text is not JSON.
        DataError: the text has too many values, or is nested too deeply.
    """
    if text.count("[") + text.count("{") > MAX_DEPTH or len(text) > MAX_VALUES:
        _check(text)
    value = json.loads(text)
    if SURROGATE.search(text):  # raises for lone surrogates, which cannot be printed or written
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _check(text: str) -> None:
    """Raise a `DataError` if a text has too many values or is nested too deeply."""
    unescaped = text.replace(r"\\", "").replace(r"\"", "")  # so that every quotation mark delimits a string
    too_many_strings = unescaped.count('"') > 2 * MAX_VALUES
    if too_many_strings or count_values(outside := "".join(unescaped.split('"')[::2])) > MAX_VALUES:
        raise DataError(f"it holds more than {MAX_VALUES:,} values")
    brackets = re.sub(r"[^][{}]+", "", outside)
    if max(accumulate(map(DEPTH_CHANGES.__getitem__, brackets)), default=0) > MAX_DEPTH:
        raise DataError(f"it is nested more than {MAX_DEPTH} deep")


def count_values(text: str) -> int:
    """Return an upper bound on the number of brackets and values."""
    return sum(map(text.count, "[{,:"))


JsonDict: TypeAlias = dict[str, Any]  # a JSON object


def write_json(path: Path, content: JsonDict) -> None:
    """Write a JSON object atomically, indented."""
    write_atomically(path, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


def read_json(path: Path) -> JsonDict:
    """Return the JSON object in a file, or raise a `DataError` if it is not one."""
    data = read_prefix(path, MAX_JSON + 1, "a JSON file")
    try:
        content = parse_json(decode_utf8(data))
    except ValueError as error:
        raise DataError(
            f"{path} is not valid JSON ({truncate_message(error)}); restore the file or start a new run"
        ) from error
    if not isinstance(content, dict):
        raise DataError(f"{path} does not hold a JSON object; restore the file or start a new run")
    return content


CHECKSUM_KEY = "sha256"  # of the other keys and values, independent of order and white space


def save_checksummed_json(path: Path, content: JsonDict) -> None:
    """Save a JSON object with its checksum, atomically and indented."""
    write_atomically(path, _encode_json(content))


def save_new_checksummed_json(path: Path, content: JsonDict) -> bool:
    """Save a JSON object with its checksum unless the file exists, and return whether it was written."""
    return write_exclusive(path, _encode_json(content))


def load_checksummed_json(path: Path, remedy: str) -> JsonDict:
    """Return the object of a checksummed JSON file, or raise a `DataError` with the remedy if it was changed."""
    content = read_json(path)
    if CHECKSUM_KEY not in content:
        raise DataError(f"{path} has no checksum, so another version wrote it; start a new run with 'aggrevated train'")
    if content.pop(CHECKSUM_KEY) != digest_json(content):
        raise DataError(f"{path} was changed after it was written; {remedy}")
    return content


def digest_json(content: JsonDict) -> str:
    """Return the SHA-256 of a JSON object."""
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _encode_json(content: JsonDict) -> bytes:
    checksummed = {**content, CHECKSUM_KEY: digest_json(content)}
    return (json.dumps(checksummed, indent=2, ensure_ascii=False) + "\n").encode()


MAX_FILE_SIZE = 4 << 30  # bytes; a full checkpoint has about 20 MB; files are memory-mapped, not copied
MAX_TENSORS = 100_000  # a mixture of policies has the tensors of every iteration
DTYPES = {"F64", "F32", "F16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL"}  # NumPy's


def digest_tensors(tensors: dict[str, Tensor], content: JsonDict | None = None) -> str:
    """Return the SHA-256 of the names, types, shapes and bytes of tensors, and of a JSON object."""
    sha = hashlib.sha256(json.dumps(content or {}, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        sha.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        sha.update(_view_bytes(tensor))
    return sha.hexdigest()


def _view_bytes(tensor: Tensor) -> Any:
    """Return the bytes of a tensor of any type, without a copy if it is contiguous."""
    import torch

    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()


def save_checksummed(path: Path, tensors: dict[str, Tensor], content: JsonDict) -> None:
    """Save tensors and a JSON object as one safetensors file with its SHA-256, atomically."""
    from safetensors.torch import save

    metadata = {"facts": json.dumps(content, sort_keys=True), "sha256": digest_tensors(tensors, content)}
    contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, save(contiguous, metadata))


def load_checksummed(path: Path, max_size: int = MAX_FILE_SIZE) -> tuple[dict[str, Tensor], JsonDict]:
    """Return the tensors and the JSON object of a checksummed safetensors file.

    Args:
        path: path of the file.
        max_size: largest size of the file, in bytes.

    Raises:
        DataError: the file is larger, damaged, or was changed.
    """
    from safetensors import safe_open

    with reraise_storage_errors(path):
        try:
            _check_header(path, max_size)
            with safe_open(path, framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is not a dict
            content = parse_json(decode_utf8(metadata["facts"].encode()))
            if not isinstance(content, dict):
                raise DataError("its metadata is not a JSON object")
        except (OSError, MemoryError):
            raise
        except Exception as error:  # safetensors raises many types, for example for shapes that are too large
            raise DataError(
                f"{path} is damaged or is not a checksummed file ({truncate_message(error)}); restore it or make it "
                "again"
            ) from error
    if digest_tensors(tensors, content) != metadata.get("sha256"):
        raise DataError(f"{path} is damaged: its SHA-256 does not match; restore it or make it again")
    return tensors, content


def _check_header(path: Path, max_size: int) -> None:
    """Raise a `DataError` if a file is too large, or its header is not that of a checksummed file."""
    with open_regular_file(path, "a checksummed file (.safetensors)") as file:
        size = path.stat().st_size
        length = int.from_bytes(file.read(8), "little")
        if size > max_size:
            raise DataError(f"it has {size:,} bytes, but at most {max_size:,} are read")
        if size < 8 or length > min(size - 8, MAX_JSON):
            raise DataError("it is cut off, or its header is too large")
        header = parse_json(decode_utf8(file.read(length)))
    if not isinstance(header, dict) or len(header) > MAX_TENSORS:
        raise DataError(f"its header is not a JSON object, or has more than {MAX_TENSORS:,} tensors")
    for name, tensor in header.items():
        if name != "__metadata__" and (not isinstance(tensor, dict) or tensor.get("dtype") not in DTYPES):
            raise DataError(f"its tensor {name} has an unsupported type")
