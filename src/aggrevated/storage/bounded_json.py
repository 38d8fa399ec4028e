"""JSON that others may have written: how deep it is and how much it holds is known before it is parsed.

Python's parser would take a C stack for every bracket and some 90 bytes for every value, whatever it is.
"""

import json
import re
from itertools import accumulate
from typing import Any

from aggrevated.errors import DataError

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
