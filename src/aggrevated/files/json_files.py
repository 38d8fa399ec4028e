"""JSON for people and machines: one object in a file, or one in each line of it."""

import json
from pathlib import Path
from typing import Any, TypeAlias

from aggrevated.errors import DataError
from aggrevated.files.atomic import storage_errors, write_atomically

Facts: TypeAlias = dict[str, Any]  # whatever JSON can hold


def write_json(path: Path, facts: Facts) -> None:
    """Write JSON for people and machines, atomically."""
    write_atomically(path, (json.dumps(facts, indent=2, ensure_ascii=False) + "\n").encode())


def read_json(path: Path) -> Facts:
    """A JSON object from a file, or a `DataError` that says which file is not one."""
    with storage_errors(path):
        data = path.read_bytes()
    try:
        facts = json.loads(data)
    except ValueError as error:
        raise DataError(f"{path} is not valid JSON ({error}); restore the file or start a new run") from error
    if not isinstance(facts, dict):
        raise DataError(f"{path} does not hold a JSON object; restore the file or start a new run")
    return facts
