"""JSON for people and machines: one object in a file, or one in each line of it."""

import json
from pathlib import Path
from typing import Any, TypeAlias

from aggrevated.errors import DataError
from aggrevated.files.atomic import write_atomically
from aggrevated.files.bounded_json import MAX_JSON, bounded_lines, decoded, parsed
from aggrevated.files.foreign import in_short, plain_file, start_of

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


def read_lines(path: Path) -> list[Facts]:
    """The objects of a file with one in each line, up to the first that is not whole; none where there is no file."""
    if not path.is_file():
        return []
    lines: list[Facts] = []
    with plain_file(path, "a file of JSON lines") as file:
        try:
            for text in bounded_lines(file):
                lines += [an_object(text)]
        except json.JSONDecodeError:
            return lines
        except ValueError as error:
            place = f"line {len(lines) + 1} of {path}"
            raise DataError(f"{place} is nothing that we wrote ({in_short(error)}); restore the file") from error
    return lines


def an_object(text: str) -> Facts:
    """What the text says."""
    facts = parsed(text)
    if not isinstance(facts, dict):
        raise DataError("it is no JSON object")
    return facts
