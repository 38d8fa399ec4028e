"""Files with their SHA-256: tensors and JSON; a damaged one is refused."""

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


MAX_JSON = 16 << 20  # bytes; the largest of our own, of a sweep with hundreds of trials, has less than one million
MAX_DEPTH = 64  # our own are at most 6 deep
MAX_VALUES = 2_000_000  # brackets, commas and colons: some 200 MB once they are parsed

STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def decode_utf8(data: bytes) -> str:
    """JSON's text; a `ValueError` if it is too large or not UTF-8, which all JSON is."""
    if len(data) > MAX_JSON:
        raise DataError(f"it has more than {MAX_JSON >> 20} MB")
    return str(data, "utf-8-sig")


def parse_json(text: str) -> Any:
    """What the text says: `JSONDecodeError` if it is not JSON, `DataError` if it is nothing that one should read."""
    if text.count("[") + text.count("{") > MAX_DEPTH or len(text) > MAX_VALUES:
        _check(text)
    found = json.loads(text)
    if SURROGATE.search(text):  # half a character can be neither printed nor written
        json.dumps(found, ensure_ascii=False).encode()
    return found


def _check(text: str) -> None:
    """Raise a `DataError` if it holds too much or is too deep."""
    plain = text.replace(r"\\", "").replace(r"\"", "")  # now a quotation mark is where a string begins or ends
    if plain.count('"') > 2 * MAX_VALUES or count_values(outside := "".join(plain.split('"')[::2])) > MAX_VALUES:
        raise DataError(f"it holds more than {MAX_VALUES:,} values")
    brackets = re.sub(r"[^][{}]+", "", outside)
    if max(accumulate(map(STEPS.__getitem__, brackets)), default=0) > MAX_DEPTH:
        raise DataError(f"it is nested more than {MAX_DEPTH} deep")


def count_values(text: str) -> int:
    """How many brackets and values it has, at most."""
    return sum(map(text.count, "[{,:"))


JsonDict: TypeAlias = dict[str, Any]  # whatever JSON can hold


def write_json(path: Path, facts: JsonDict) -> None:
    """Write JSON for people and machines, atomically."""
    write_atomically(path, (json.dumps(facts, indent=2, ensure_ascii=False) + "\n").encode())


def read_json(path: Path) -> JsonDict:
    """A JSON object from a file, or a `DataError` that says which file is not one."""
    data = read_prefix(path, MAX_JSON + 1, "a JSON file")
    try:
        facts = parse_json(decode_utf8(data))
    except ValueError as error:
        raise DataError(
            f"{path} is not valid JSON ({truncate_message(error)}); restore the file or start a new run"
        ) from error
    if not isinstance(facts, dict):
        raise DataError(f"{path} does not hold a JSON object; restore the file or start a new run")
    return facts


CHECKSUM_KEY = "sha256"  # of all the rest, whatever the order and the white space


def save_checksummed_json(path: Path, facts: JsonDict) -> None:
    """Write facts for people and machines, atomically, with a digest of them."""
    write_atomically(path, _encode_json(facts))


def save_new_checksummed_json(path: Path, facts: JsonDict) -> bool:
    """The same, unless there is such a file already; whether it was written."""
    return write_exclusive(path, _encode_json(facts))


def load_checksummed_json(path: Path, remedy: str) -> JsonDict:
    """The facts; a `DataError` with a remedy if they are not those that were written."""
    facts = read_json(path)
    if CHECKSUM_KEY not in facts:
        raise DataError(f"{path} is not sealed, and so not of this version; start a new run with 'aggrevated train'")
    if facts.pop(CHECKSUM_KEY) != digest_json(facts):
        raise DataError(f"{path} was changed after it was written; {remedy}")
    return facts


def digest_json(facts: JsonDict) -> str:
    """The SHA-256 of what JSON makes of them."""
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _encode_json(facts: JsonDict) -> bytes:
    return (json.dumps({**facts, CHECKSUM_KEY: digest_json(facts)}, indent=2, ensure_ascii=False) + "\n").encode()


MAX_FILE_SIZE = 4 << 30  # bytes; a checkpoint with all its data has some 20 million. They are mapped, and not copied
MAX_TENSORS = 100_000  # a mixture of policies has those of each iteration
DTYPES = {"F64", "F32", "F16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL"}  # that NumPy has, too


def digest_tensors(tensors: dict[str, Tensor], facts: JsonDict | None = None) -> str:
    """The SHA-256 of names, types, shapes and bytes of the tensors, and of the facts."""
    sha = hashlib.sha256(json.dumps(facts or {}, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        sha.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        sha.update(_view_bytes(tensor))
    return sha.hexdigest()


def _view_bytes(tensor: Tensor) -> Any:
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
