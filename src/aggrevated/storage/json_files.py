"""JSON for people and machines: one object in a file."""

import json
from pathlib import Path
from typing import Any, TypeAlias

from aggrevated.errors import DataError
from aggrevated.storage.atomic import write_atomically
from aggrevated.storage.bounded_json import MAX_JSON, decoded, parsed
from aggrevated.storage.untrusted import in_short, start_of

Facts: TypeAlias = dict[str, Any]  # whatever JSON can hold


def write_json(path: Path, facts: Facts) -> None:
    """Write JSON for people and machines, atomically."""
    write_atomically(path, (json.dumps(facts, indent=2, ensure_ascii=False) + "\n").encode())


def read_json(path: Path) -> Facts:
    """A JSON object from a file, or a `DataError` that says which file is not one."""
    data = start_of(path, MAX_JSON + 1, "a JSON file")
    try:
        facts = parsed(decoded(data))
    except ValueError as error:
        raise DataError(f"{path} is not valid JSON ({in_short(error)}); restore the file or start a new run") from error
    if not isinstance(facts, dict):
        raise DataError(f"{path} does not hold a JSON object; restore the file or start a new run")
    return facts
