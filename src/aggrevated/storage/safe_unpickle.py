"""Parsing of untrusted pickles without executing them: no name is imported and no function is called.

Strings, numbers, lists, tuples and dictionaries are built. Everything else becomes an `UnresolvedObject` that
records what the pickle refers to. Values may be shared or contain themselves, so readers look values up by name
and never traverse them all.
"""

from __future__ import annotations

import pickletools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError

MAX_PICKLE = 16 << 20  # bytes
MAX_OPCODES = 100_000  # a VecNormalize has about 500


@dataclass(eq=False)
class UnresolvedObject:
    """An object that a pickle refers to: a name in a module, and the arguments of its call; never imported."""

    module: str
    name: str
    arguments: tuple[Any, ...] = ()
    state: Any = None  # that the pickle would set
    items: list[Any] = field(default_factory=list)  # that the pickle would append
    entries: dict[str, Any] = field(default_factory=dict)  # that the pickle would set by key

    def __repr__(self) -> str:
        return f"UnresolvedObject({self.module!r}, {self.name!r})"


def parse_pickle(data: bytes) -> Any:
    """Return the value of a pickle, or raise a `DataError` if it is damaged or too large."""
    if len(data) > MAX_PICKLE:
        raise DataError(f"it has more than {MAX_PICKLE >> 20} MB")
    machine = PickleVM()
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if count >= MAX_OPCODES:
                raise DataError(f"it has more than {MAX_OPCODES:,} steps")
            machine.execute(opcode.name, argument)
        return machine.stack.pop()
    except (IndexError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError("it is not a complete pickle") from error


class PickleVM:
    """The stack machine of a pickle, with the opcodes that pickletools names."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memory: dict[int, Any] = {}

    def execute(self, name: str, argument: Any) -> None:
        """Execute one opcode."""
        if name in CONSTANT_OPCODES:
            self.stack.append(CONSTANT_OPCODES[name](argument))
        elif name in OPCODE_HANDLERS:
            OPCODE_HANDLERS[name](self, argument)
        elif name not in IGNORED_OPCODES:
            raise DataError(f"it has the opcode {name}, which is not supported")

    def pop(self) -> Any:
        """Remove and return the top value above the last mark."""
        if self.marks and len(self.stack) <= self.marks[-1]:
            raise ValueError("a mark is not a value")
        return self.stack.pop()

    def pop_many(self, count: int) -> tuple[Any, ...]:
        """Remove and return the top `count` values, in order."""
        return tuple([self.pop() for _ in range(count)][::-1])

    def pop_mark(self) -> list[Any]:
        """Remove the last mark and the values above it, and return the values."""
        start = self.marks.pop()
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def get_top(self) -> Any:
        """Return the top value without removing it."""
        value = self.pop()
        self.stack.append(value)
        return value

    def drop(self, count: int = 1) -> None:
        """Remove the top `count` values or marks."""
        for _ in range(count):
            (self.marks if self.marks and self.marks[-1] == len(self.stack) else self.stack).pop()

    def store_memo(self, index: int) -> None:
        if not 0 <= index < MAX_OPCODES:
            raise DataError("it has a memo index that is out of range")
        self.memory[index] = self.get_top()

    def push_call(self, function: Any, arguments: Any) -> None:
        """Push a record of a call; the call is not made."""
        if not isinstance(function, UnresolvedObject) or not isinstance(arguments, tuple):
            raise DataError("the pickle calls an object that is not a function")
        self.stack.append(UnresolvedObject(function.module, function.name, arguments))

    def append_values(self, values: list[Any]) -> None:
        top = self.get_top()
        (top.items if isinstance(top, UnresolvedObject) else check_list(top)).extend(values)

    def put(self, pairs: list[Any]) -> None:
        """Set alternating keys and values; only string keys, since hashing other types may never end."""
        top = self.get_top()
        entries = top.entries if isinstance(top, UnresolvedObject) else top
        if not isinstance(entries, dict) or len(pairs) % 2:
            raise DataError("it sets entries of something that is not a dictionary")
        entries.update((key, value) for key, value in zip(pairs[::2], pairs[1::2], strict=True) if type(key) is str)

    def push_dict(self, pairs: list[Any]) -> None:
        """Push a new dictionary, as the opcode DICT does."""
        self.stack.append({})
        self.put(pairs)

    def skip_state(self, state: Any) -> None:
        """Record the state of an object without setting it."""
        top = self.get_top()
        if not isinstance(top, UnresolvedObject):
            raise DataError("it sets the state of a value that has none")
        top.state = state


def check_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise DataError("it appends to something that is not a list")
    return value


def make_unresolved(module: Any, name: Any) -> UnresolvedObject:
    """Return the record of a name in a module."""
    if type(module) is not str or type(name) is not str:
        raise DataError("it has a module or a name that is not a string")
    return UnresolvedObject(module, name)


def push_unbuilt_set(machine: PickleVM, kind: str, values: list[Any]) -> None:
    """Push the record of a set, which is not built since hashing its values may never end."""
    machine.stack.append(UnresolvedObject("builtins", kind, items=values))


def handle_obj(machine: PickleVM, values: list[Any]) -> None:
    """Execute OBJ, whose values are a class and its arguments."""
    machine.push_call(values[0], tuple(values[1:]))


def handle_newobj_ex(machine: PickleVM, function: Any, arguments: Any, keywords: Any) -> None:
    """Execute NEWOBJ_EX."""
    machine.push_call(function, arguments)
    machine.stack[-1].entries = keywords if isinstance(keywords, dict) else {}


def return_argument(argument: Any) -> Any:
    return argument


IGNORED_OPCODES = {"PROTO", "FRAME", "STOP"}
CONSTANT_OPCODES: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(
        ("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"), return_argument
    ),
    **dict.fromkeys(
        ("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE"), return_argument
    ),
    **dict.fromkeys(("BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"), return_argument),
    "NONE": lambda _: None,
    "NEWTRUE": lambda _: True,
    "NEWFALSE": lambda _: False,
    "EMPTY_LIST": lambda _: [],
    "EMPTY_TUPLE": lambda _: (),
    "EMPTY_DICT": lambda _: {},
    "EMPTY_SET": lambda _: UnresolvedObject("builtins", "set"),
    "GLOBAL": lambda argument: make_unresolved(*argument.split(" ", 1)),
    "EXT1": lambda code: UnresolvedObject("", "extension", (code,)),
    "EXT2": lambda code: UnresolvedObject("", "extension", (code,)),
    "EXT4": lambda code: UnresolvedObject("", "extension", (code,)),
    "PERSID": lambda name: UnresolvedObject("", "persistent", (name,)),
}
OPCODE_HANDLERS: dict[str, Callable[[PickleVM, Any], None]] = {
    "MARK": lambda m, _: m.marks.append(len(m.stack)),
    "POP": lambda m, _: m.drop(),
    "POP_MARK": lambda m, _: m.drop(len(m.stack) - m.marks[-1] + 1),
    "DUP": lambda m, _: m.stack.append(m.get_top()),
    "PUT": lambda m, index: m.store_memo(index),
    "BINPUT": lambda m, index: m.store_memo(index),
    "LONG_BINPUT": lambda m, index: m.store_memo(index),
    "MEMOIZE": lambda m, _: m.store_memo(len(m.memory)),
    "GET": lambda m, index: m.stack.append(m.memory[index]),
    "BINGET": lambda m, index: m.stack.append(m.memory[index]),
    "LONG_BINGET": lambda m, index: m.stack.append(m.memory[index]),
    "LIST": lambda m, _: m.stack.append(m.pop_mark()),
    "TUPLE": lambda m, _: m.stack.append(tuple(m.pop_mark())),
    "TUPLE1": lambda m, _: m.stack.append(m.pop_many(1)),
    "TUPLE2": lambda m, _: m.stack.append(m.pop_many(2)),
    "TUPLE3": lambda m, _: m.stack.append(m.pop_many(3)),
    "DICT": lambda m, _: m.push_dict(m.pop_mark()),
    "FROZENSET": lambda m, _: push_unbuilt_set(m, "frozenset", m.pop_mark()),
    "ADDITEMS": lambda m, _: m.append_values(m.pop_mark()),
    "APPEND": lambda m, _: m.append_values([m.pop()]),
    "APPENDS": lambda m, _: m.append_values(m.pop_mark()),
    "SETITEM": lambda m, _: m.put(list(m.pop_many(2))),
    "SETITEMS": lambda m, _: m.put(m.pop_mark()),
    "STACK_GLOBAL": lambda m, _: m.stack.append(make_unresolved(*m.pop_many(2))),
    "REDUCE": lambda m, _: m.push_call(*m.pop_many(2)),
    "NEWOBJ": lambda m, _: m.push_call(*m.pop_many(2)),
    "NEWOBJ_EX": lambda m, _: handle_newobj_ex(m, *m.pop_many(3)),
    "INST": lambda m, argument: m.push_call(make_unresolved(*argument.split(" ", 1)), tuple(m.pop_mark())),
    "OBJ": lambda m, _: handle_obj(m, m.pop_mark()),
    "BUILD": lambda m, _: m.skip_state(m.pop()),
    "BINPERSID": lambda m, _: m.stack.append(UnresolvedObject("", "persistent", (m.pop(),))),
}


NUMERIC_DTYPES = re.compile(r"f[248]|[iu][1248]|b1", re.ASCII)
NUMPY_MODULES = {f"numpy.{core}.{file}" for core in ("_core", "core") for file in ("multiarray", "numeric")}


def array_from_pickle(value: Any) -> Array:
    """Return the array or number that a parsed value stands for, or raise a `DataError` if it is neither."""
    try:
        if isinstance(value, bool | int | float):
            return np.asarray(float(value))
        if isinstance(value, UnresolvedObject) and value.module in NUMPY_MODULES:
            if value.name == "_frombuffer":
                data, dtype, shape, order = value.arguments
                return _build_array(data, dtype, shape, order)
            if value.name == "_reconstruct":
                _, shape, dtype, fortran, data = value.state
                return _build_array(data, dtype, shape, "F" if fortran else "C")
            if value.name == "scalar":
                dtype, data = value.arguments
                return _build_array(data, dtype, (), "C")
    except (IndexError, OverflowError, TypeError, ValueError) as error:
        raise DataError("it holds an array that does not agree with its type and shape") from error
    raise DataError("it holds something else where an array should be")


def number_from_pickle(value: Any) -> float:
    """Return the number that a parsed value stands for, or raise a `DataError`."""
    array = array_from_pickle(value)
    if array.ndim:
        raise DataError("it holds an array where a number should be")
    return float(array)


def _build_array(raw: Any, dtype_record: Any, shape: Any, order: Any) -> Array:
    data = _to_bytes(raw)
    dtype = _parse_dtype(dtype_record)
    sizes = tuple(shape)
    if not all(type(n) is int and 0 <= n <= len(data) for n in sizes) or len(sizes) > 8:
        raise ValueError("invalid shape")
    if prod(sizes) * dtype.itemsize != len(data):
        raise ValueError("too many bytes, or too few")
    return np.frombuffer(data, dtype).reshape(sizes, order="F" if order == "F" else "C").astype(dtype.newbyteorder("="))


def _to_bytes(raw: Any) -> bytes | bytearray:
    """Return bytes, which old pickle protocols write as a call of `_codecs.encode`."""
    if isinstance(raw, UnresolvedObject) and (raw.module, raw.name) == ("_codecs", "encode"):
        raw = raw.arguments[0].encode("latin-1") if type(raw.arguments[0]) is str else None
    if not isinstance(raw, bytes | bytearray):
        raise ValueError("not bytes")
    return raw


def _parse_dtype(dtype_record: Any) -> np.dtype[Any]:
    """Return a numeric dtype, or raise a `ValueError`."""
    if not isinstance(dtype_record, UnresolvedObject) or (dtype_record.module, dtype_record.name) != ("numpy", "dtype"):
        raise ValueError("not a dtype")
    name = dtype_record.arguments[0]
    order = dtype_record.state[1] if isinstance(dtype_record.state, tuple) else "="
    if type(name) is not str or not NUMERIC_DTYPES.fullmatch(name) or order not in ("<", ">", "|", "="):
        raise ValueError("not a numeric dtype")
    return np.dtype(f"{order}{name}")
