"""Tensors that others saved with `torch.save`: checked before torch sees them, and nothing in them is run.

`torch.load(weights_only=True)` runs no foreign code, but it makes a gigabyte of zeros if a file of 100 bytes asks for
them, or hashes a tuple of tuples until the end of time. So the file's directory is bounded, its pickle may only build
what a state dict is made of, and torch gets a fresh zip of what was checked.
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

if TYPE_CHECKING:  # those who only read files have no need of torch
    from torch import Tensor

MAX_PICKLE = 64 << 10  # bytes: of names and shapes only; a DQN's has two thousand
MAX_TUPLE = 200  # values in a tuple and in those inside of it; a tensor is described by some 20
KEPT = re.compile(r"[^/]+/(data\.pkl|version|byteorder|data/\w+)", re.ASCII)
BUILT = re.compile(
    r"collections OrderedDict|torch\._utils _rebuild_(tensor_v2|parameter)|torch(\.cuda)? [A-Z]\w*Storage", re.ASCII
)
VALUES = {"BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "NEWTRUE", "NEWFALSE", "NONE", "EMPTY_DICT", "GLOBAL"}
TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
TAKES = {"REDUCE": 1, "BUILD": 1, "SETITEM": 2, "BINPERSID": 0}  # from above what it makes, or changes


def read_state_dict(file: BinaryIO, most: int) -> dict[str, Tensor]:
    """The tensors by their names, of at most so many bytes; any `Exception` if it is something else."""
    import torch

    with warnings.catch_warnings(action="ignore"):
        found = torch.load(_copy_checked(file, most), weights_only=True, map_location="cpu")
    if not isinstance(found, dict):
        raise DataError(f"it holds a {type(found).__name__} and no tensors by name")
    for name, tensor in dict.items(found):
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
            raise DataError("it holds something besides tensors by name")
        if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
            raise DataError("it holds a tensor that is larger than its numbers")
    return {name: tensor.detach() for name, tensor in dict.items(found)}


def _copy_checked(file: BinaryIO, most: int) -> BinaryIO:
    """A fresh file with what torch needs to know, nothing of which is more than it says; the other one is closed."""
    fresh = io.BytesIO()
    names = set()
    with file, open_zip(file) as archive, ZipFile(fresh, "w") as copy:
        for member in archive.infolist():
            if not (kept := KEPT.fullmatch(member.filename)):
                continue
            if kept[1] in names:
                raise DataError("two of its parts have the same name")
            names.add(kept[1])
            with copy.open(f"archive/{kept[1]}", "w") as part:
                for piece in read_chunks(archive, member, min(most, MAX_PICKLE) if kept[1] == "data.pkl" else most):
                    part.write(piece)
            most -= member.file_size
    with ZipFile(fresh) as copy:
        check_pickle(copy.read("archive/data.pkl"))
    fresh.seek(0)
    return fresh


def check_pickle(data: bytes) -> None:
    """Raise a `DataError` if it builds more than dictionaries of tensors, or tuples that cannot be hashed in time.

    The stack is kept as it would be, but for the values: in the place of each is how many there are in it.
    """
    stack: list[int] = []
    marks: list[int] = []
    memo: dict[int, int] = {}
    for opcode, argument, _ in pickletools.genops(data):
        name = opcode.name
        if name == "GLOBAL" and not BUILT.fullmatch(str(argument)):
            raise DataError(f"it holds a {argument}, and only plain tensors are read")
        if name in VALUES:
            stack.append(1)
        elif name in TUPLES or name == "TUPLE":
            parts = _pop_many(stack, TUPLES[name] if name in TUPLES else len(stack) - marks.pop())
            stack.append(1 + sum(parts))
            if stack[-1] > MAX_TUPLE:
                raise DataError(f"its pickle has tuples of more than {MAX_TUPLE} values")
        elif name in TAKES:
            _pop_many(stack, TAKES[name])
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
            raise DataError(f"its pickle does a {name}, for which tensors have no need")


def _pop_many(stack: list[int], count: int) -> list[int]:
    """The topmost so many."""
    start = len(stack) - count
    popped = stack[start:]
    del stack[start:]
    return popped
