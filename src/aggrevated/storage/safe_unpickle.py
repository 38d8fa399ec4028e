"""Pickles that others made, read without running them: what they would import or call is written down instead.

Texts, numbers, lists, tuples and dictionaries become what they are. Everything else becomes an `Inert` record of what
was asked for. A value may be in many places at once, and inside of itself: what a reader looks for, it looks for by
name, and never walks through all.
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
MAX_OPCODES = 100_000  # those of a VecNormalize have some 500


@dataclass(eq=False)
class UnresolvedObject:
    """What a pickle asks for: a name in a module and, if it is to be called, with what. It is never looked up."""

    module: str
    name: str
    arguments: tuple[Any, ...] = ()
    state: Any = None  # that it was to be given
    items: list[Any] = field(default_factory=list)  # that were to be appended
    entries: dict[str, Any] = field(default_factory=dict)  # that were to be set

    def __repr__(self) -> str:
        return f"Inert({self.module!r}, {self.name!r})"


def parse_pickle(data: bytes) -> Any:
    """What the pickle would make; a `DataError` if it is none, or is more than one should read."""
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
        raise DataError("it is no whole pickle") from error


class PickleVM:
    """The stack of a pickle's machine and its memory, by the steps that pickletools names."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memory: dict[int, Any] = {}

    def execute(self, name: str, argument: Any) -> None:
        """One step."""
        if name in CONSTANT_OPCODES:
            self.stack.append(CONSTANT_OPCODES[name](argument))
        elif name in OPCODE_HANDLERS:
            OPCODE_HANDLERS[name](self, argument)
        elif name not in IGNORED_OPCODES:
            raise DataError(f"it does a {name}, which is not read")

    def pop(self) -> Any:
        """The topmost value, above the last mark."""
        if self.marks and len(self.stack) <= self.marks[-1]:
            raise ValueError("a mark is not a value")
        return self.stack.pop()

    def pop_many(self, count: int) -> tuple[Any, ...]:
        """The topmost so many, in order."""
        return tuple([self.pop() for _ in range(count)][::-1])

    def pop_mark(self) -> list[Any]:
        """All values above the last mark, which is taken away."""
        start = self.marks.pop()
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def get_top(self) -> Any:
        """The topmost value, which stays."""
        value = self.pop()
        self.stack.append(value)
        return value

    def drop(self, count: int = 1) -> None:
        """The topmost so many away, of which a mark is one, too."""
        for _ in range(count):
            (self.marks if self.marks and self.marks[-1] == len(self.stack) else self.stack).pop()

    def store_memo(self, place: int) -> None:
        if not 0 <= place < MAX_OPCODES:
            raise DataError("it remembers in an unusual place")
        self.memory[place] = self.get_top()

    def push_call(self, what: Any, arguments: Any) -> None:
        """A call that is not made."""
        if not isinstance(what, UnresolvedObject) or not isinstance(arguments, tuple):
            raise DataError("it calls what is no function")
        self.stack.append(UnresolvedObject(what.module, what.name, arguments))

    def append_values(self, values: list[Any]) -> None:
        top = self.get_top()
        (top.items if isinstance(top, UnresolvedObject) else check_list(top)).extend(values)

    def put(self, pairs: list[Any]) -> None:
        """Keys and values in turn; only texts are keys, as the hash of anything else may be chosen to take for ever."""
        top = self.get_top()
        entries = top.entries if isinstance(top, UnresolvedObject) else top
        if not isinstance(entries, dict) or len(pairs) % 2:
            raise DataError("it sets what is no dictionary's")
        entries.update((key, value) for key, value in zip(pairs[::2], pairs[1::2], strict=True) if type(key) is str)

    def push_dict(self, pairs: list[Any]) -> None:
        """DICT: a new one."""
        self.stack.append({})
        self.put(pairs)

    def skip_state(self, state: Any) -> None:
        """A state that is not given."""
        top = self.get_top()
        if not isinstance(top, UnresolvedObject):
            raise DataError("it gives a state to what has none")
        top.state = state


def check_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise DataError("it appends to what is no list")
    return value


def make_unresolved(module: Any, name: Any) -> UnresolvedObject:
    """A name in a module."""
    if type(module) is not str or type(name) is not str:
        raise DataError("it names something by what is no text")
    return UnresolvedObject(module, name)


def push_unbuilt_set(machine: PickleVM, kind: str, values: list[Any]) -> None:
    """A set, which is not built: its values may not be hashed."""
    machine.stack.append(UnresolvedObject("builtins", kind, items=values))


def handle_obj(machine: PickleVM, values: list[Any]) -> None:
    """OBJ: a class and what it is called with."""
    machine.push_call(values[0], tuple(values[1:]))


def handle_newobj_ex(machine: PickleVM, what: Any, arguments: Any, keywords: Any) -> None:
    """NEWOBJ_EX."""
    machine.push_call(what, arguments)
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
    "PUT": lambda m, place: m.store_memo(place),
    "BINPUT": lambda m, place: m.store_memo(place),
    "LONG_BINPUT": lambda m, place: m.store_memo(place),
    "MEMOIZE": lambda m, _: m.store_memo(len(m.memory)),
    "GET": lambda m, place: m.stack.append(m.memory[place]),
    "BINGET": lambda m, place: m.stack.append(m.memory[place]),
    "LONG_BINGET": lambda m, place: m.stack.append(m.memory[place]),
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


TYPES = re.compile(r"f[248]|[iu][1248]|b1", re.ASCII)
PLACES = {f"numpy.{core}.{file}" for core in ("_core", "core") for file in ("multiarray", "numeric")}


def array_from_pickle(value: Any) -> Array:
    """The array, or number, that an inert value stands for; a `DataError` if it stands for none."""
    try:
        if isinstance(value, bool | int | float):
            return np.asarray(float(value))
        if isinstance(value, UnresolvedObject) and value.module in PLACES:
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
        raise DataError("it holds an array that is not what it says") from error
    raise DataError("it holds something else where an array should be")


def number_from_pickle(value: Any) -> float:
    """The one number that it stands for."""
    array = array_from_pickle(value)
    if array.ndim:
        raise DataError("it holds an array where a number should be")
    return float(array)


def _build_array(raw: Any, kind: Any, shape: Any, order: Any) -> Array:
    data = _to_bytes(raw)
    dtype = _parse_dtype(kind)
    sizes = tuple(shape)
    if not all(type(n) is int and 0 <= n <= len(data) for n in sizes) or len(sizes) > 8:
        raise ValueError("no shape")
    if prod(sizes) * dtype.itemsize != len(data):
        raise ValueError("too many bytes, or too few")
    return np.frombuffer(data, dtype).reshape(sizes, order="F" if order == "F" else "C").astype(dtype.newbyteorder("="))


def _to_bytes(raw: Any) -> bytes | bytearray:
    """Bytes, which old protocols write as text."""
    if isinstance(raw, UnresolvedObject) and (raw.module, raw.name) == ("_codecs", "encode"):
        raw = raw.arguments[0].encode("latin-1") if type(raw.arguments[0]) is str else None
    if not isinstance(raw, bytes | bytearray):
        raise ValueError("no bytes")
    return raw


def _parse_dtype(kind: Any) -> np.dtype[Any]:
    """Of numbers, and nothing else."""
    if not isinstance(kind, UnresolvedObject) or (kind.module, kind.name) != ("numpy", "dtype"):
        raise ValueError("no type")
    name = kind.arguments[0]
    order = kind.state[1] if isinstance(kind.state, tuple) else "="
    if type(name) is not str or not TYPES.fullmatch(name) or order not in ("<", ">", "|", "="):
        raise ValueError("a type of something else than numbers")
    return np.dtype(f"{order}{name}")
