"""Pickles are parsed without executing them: valid ones give their content, others fail fast and in little memory."""

import pickle
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aggrevated.core.errors import DataError
from aggrevated.storage import UnresolvedObject, array_from_pickle, number_from_pickle, parse_pickle
from aggrevated.storage.safe_unpickle import MAX_OPCODES, MAX_PICKLE
from helpers.pickle_payloads import payloads


class Thing:
    """A class that the parser does not know."""

    def __init__(self) -> None:
        self.mean = np.array([1.5, -2.0])


@pytest.mark.parametrize("protocol", range(6))
def test_parse_pickle_returns_plain_values(protocol: int) -> None:
    value = {
        "a": [1, -2.5, "ä", None, True, False, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
        "b": {"c": 10**50, "d": -7},
    }
    value["again"] = value["a"]  # type: ignore[assignment]
    assert parse_pickle(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=">f4").reshape(2, 3)),
        np.arange(12, dtype=np.int16)[::2],
        np.array([True, False]),
        np.array(2.5),
    ],
)
def test_array_from_pickle_returns_numpy_arrays(protocol: int, array: Any) -> None:
    found = array_from_pickle(parse_pickle(pickle.dumps(array, protocol)))
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype.newbyteorder("=") and found.shape == array.shape


@pytest.mark.parametrize("protocol", range(6))
def test_parse_pickle_returns_unresolved_objects_for_unknown_classes(protocol: int) -> None:
    found = parse_pickle(pickle.dumps([Thing(), deque([{"r": 2.5}], maxlen=3), np.float32(1.5)], protocol))
    thing, queue, number = found
    assert isinstance(thing, UnresolvedObject)
    np.testing.assert_array_equal(array_from_pickle(thing.state["mean"]), [1.5, -2.0])
    assert isinstance(queue, UnresolvedObject) and queue.items == [{"r": 2.5}] and queue.name == "deque"
    assert number_from_pickle(number) == 1.5


@pytest.mark.parametrize("name", payloads(Path("x")))
def test_parse_pickle_runs_no_payload(name: str, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    found = parse_or_none(payloads(marker)[name])
    assert not marker.exists()
    assert found is None or isinstance(found, UnresolvedObject | list | dict)


def test_pickle_payloads_run_when_unpickled(tmp_path: Path) -> None:
    for name in ("REDUCE 0", "REDUCE 4", "STACK_GLOBAL", "INST", "in a list", "before the value"):
        pickle.loads(payloads(tmp_path / name.replace(" ", "_"))[name])
        assert (tmp_path / name.replace(" ", "_")).exists()


HOSTILE = {
    "nothing": b"",
    "no end": b"(((",
    "no stack": b".",
    "marks for values": b"((t(0aR.",
    "hashes that take for ever": b"\x80\x02}q\1)q\0"
    + b"".join(b"(" + b"h\0" * 9 + b"tq\0" for _ in range(99))
    + b"K\1s.",
    "deep lists": b"]" * 40_000 + b"a" * 39_999 + b".",
    "a list in itself": b"]q\0h\0a.",
    "many steps": b"N0" * MAX_OPCODES + b"N.",
    "many bytes": bytes(MAX_PICKLE + 1),
    "a long number": b"I" + b"9" * 100_000 + b"\n.",
    "a long float": b"F" + b"9" * (MAX_PICKLE - 10) + b"\n.",
    "a huge length": b"\x8e" + b"\xff" * 7 + b"\x7f.",
    "buffers elsewhere": b"\x80\x05\x97.",
    "a far place": b"Np99999999999\n.",
    "a call of a number": b"K\1)R.",
    "a state for a number": b"K\1}b.",
    "text appended to": b"X\1\0\0\0aK\1a.",
    "half a pair": b"}(K\1u.",
    "a number as a name": b"\x80\x04K\1K\2\x93.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_parse_pickle_reads_or_refuses_hostile_pickles_within_a_second(name: str) -> None:
    start = time.process_time()
    parse_or_none(HOSTILE[name])
    assert time.process_time() - start < 1


@pytest.mark.parametrize("seed", range(200))
def test_parse_pickle_reads_or_refuses_damaged_pickles(seed: int) -> None:
    chance = np.random.default_rng(seed)
    data = bytearray(pickle.dumps({"thing": np.arange(5.0), "more": [Thing(), deque([1.0])]}, seed % 6))
    for place in chance.integers(0, len(data), 1 + seed % 4):
        data[place] = chance.integers(256)
    found = parse_or_none(bytes(data))
    if isinstance(found, dict):
        check_array_or_refused(found.get("thing"))


SHAPES = [(10**9, 10**9), (2**63, 0), (-1,), ("a",), (2,), (3,) * 9]


@pytest.mark.parametrize("shape", SHAPES)
def test_array_from_pickle_refuses_wrong_shapes(shape: tuple[Any, ...]) -> None:
    dtype = UnresolvedObject("numpy", "dtype", ("f8", False, True), (3, "<", None))
    with pytest.raises(DataError, match="does not agree with its type and shape"):
        array_from_pickle(UnresolvedObject("numpy._core.numeric", "_frombuffer", (bytes(24), dtype, shape, "C")))


@pytest.mark.parametrize("kind", ["O", "V8", "f1", "f16", "S3", "f8,f8", 8, None])
def test_array_from_pickle_refuses_types_that_are_not_numbers(kind: Any) -> None:
    dtype = UnresolvedObject("numpy", "dtype", (kind, False, True), (3, "<", None))
    with pytest.raises(DataError, match="does not agree with its type and shape"):
        array_from_pickle(UnresolvedObject("numpy._core.numeric", "_frombuffer", (bytes(24), dtype, (3,), "C")))


def parse_or_none(data: bytes) -> Any:
    try:
        return parse_pickle(data)
    except DataError:
        return None


def check_array_or_refused(value: Any) -> None:
    with suppress(DataError):
        assert isinstance(array_from_pickle(value), np.ndarray)
