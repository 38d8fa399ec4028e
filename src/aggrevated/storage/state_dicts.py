"""Safe reading of untrusted state dicts that were written by `torch.save`.

`torch.load(weights_only=True)` runs no foreign code. But a file of 100 bytes can make it allocate a gigabyte, or
hash nested tuples without end. So the zip's directory is bounded, its pickle may only build the types of a state
dict, and torch loads a fresh zip of the checked members.
"""

from __future__ import annotations

import io
import pickletools
import re
import warnings
from typing import TYPE_CHECKING, BinaryIO
from zipfile import ZipFile

from aggrevated.core.errors import DataError
from aggrevated.storage.archives import open_zip, read_chunks

if TYPE_CHECKING:  # importing torch is slow, and most readers do not need it
    from torch import Tensor

MAX_PICKLE = 64 << 10  # bytes of names and shapes; a DQN has 2,000
MAX_TUPLE = 200  # values in a tuple, including nested ones; a tensor's description has about 20
NEEDED_MEMBERS = re.compile(r"[^/]+/(data\.pkl|version|byteorder|data/\w+)", re.ASCII)
ALLOWED_GLOBALS = re.compile(
    r"collections OrderedDict|torch\._utils _rebuild_(tensor_v2|parameter)|torch(\.cuda)? [A-Z]\w*Storage", re.ASCII
)
VALUES = {"BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "NEWTRUE", "NEWFALSE", "NONE", "EMPTY_DICT", "GLOBAL"}
TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
POPPED_VALUES = {"REDUCE": 1, "BUILD": 1, "SETITEM": 2, "BINPERSID": 0}  # above the value made or changed


def read_state_dict(file: BinaryIO, max_size: int) -> dict[str, Tensor]:
    """Return the tensors of a file by name; their bytes may be at most `max_size`.

    Raises:
        Exception: of any type, if the file is not a state dict.
    """
    import torch

    with warnings.catch_warnings(action="ignore"):
        state_dict = torch.load(_copy_checked(file, max_size), weights_only=True, map_location="cpu")
    if not isinstance(state_dict, dict):
        raise DataError(f"it holds a {type(state_dict).__name__}, not tensors by name")
    for name, tensor in dict.items(state_dict):
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
            raise DataError("it holds something besides tensors by name")
        if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
            raise DataError("it holds a tensor that is larger than its storage")
    return {name: tensor.detach() for name, tensor in dict.items(state_dict)}


def _copy_checked(file: BinaryIO, max_size: int) -> BinaryIO:
    """Return a fresh zip with the members that torch needs, of declared sizes; closes the given file."""
    buffer = io.BytesIO()
    names = set()
    remaining = max_size
    with file, open_zip(file) as archive, ZipFile(buffer, "w") as copy:
        for member in archive.infolist():
            if not (match := NEEDED_MEMBERS.fullmatch(member.filename)):
                continue
            name = match[1]
            if name in names:
                raise DataError("two of its members have the same name")
            names.add(name)
            limit = min(remaining, MAX_PICKLE) if name == "data.pkl" else remaining
            with copy.open(f"archive/{name}", "w") as copied:
                copied.writelines(read_chunks(archive, member, limit))
            remaining -= member.file_size
    with ZipFile(buffer) as copy:
        check_pickle(copy.read("archive/data.pkl"))
    buffer.seek(0)
    return buffer


def check_pickle(data: bytes) -> None:
    """Raise a `DataError` if a pickle builds other objects than tensors by name, or tuples that take long to hash.

    This simulates the pickle's stack, with the number of values inside each value in its place.
    """
    stack: list[int] = []
    marks: list[int] = []
    memo: dict[int, int] = {}
    for opcode, argument, _ in pickletools.genops(data):
        name = opcode.name
        if name == "GLOBAL" and not ALLOWED_GLOBALS.fullmatch(str(argument)):
            raise DataError(f"it holds a {argument}, but only plain tensors are read")
        if name in VALUES:
            stack.append(1)
        elif name in TUPLES or name == "TUPLE":
            sizes = _pop_many(stack, TUPLES[name] if name in TUPLES else len(stack) - marks.pop())
            stack.append(1 + sum(sizes))
            if stack[-1] > MAX_TUPLE:
                raise DataError(f"its pickle has tuples of more than {MAX_TUPLE} values")
        elif name in POPPED_VALUES:
            _pop_many(stack, POPPED_VALUES[name])
            stack[-1] = 1
        elif name == "SETITEMS":
            _pop_many(stack, len(stack) - marks.pop())
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[argument or 0] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument or 0])
        elif name == "MARK":
            marks.append(len(stack))
        elif name not in ("PROTO", "STOP"):
            raise DataError(f"its pickle has the opcode {name}, which a state dict does not need")


def _pop_many(stack: list[int], count: int) -> list[int]:
    """Remove and return the top `count` values."""
    start = len(stack) - count
    popped = stack[start:]
    del stack[start:]
    return popped
