"""JSON for people and machines: one object in a file."""

import json
from pathlib import Path
from typing import Any, TypeAlias

from aggrevated.errors import DataError
from aggrevated.storage.atomic import write_atomically
from aggrevated.storage.bounded_json import MAX_JSON, decode_utf8, parse_json
from aggrevated.storage.untrusted import read_prefix, truncate_message

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
