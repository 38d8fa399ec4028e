"""JSON that knows whether it is what was written: people read it, and what they change in it is noticed."""

import json
from hashlib import sha256
from pathlib import Path

from aggrevated.errors import DataError
from aggrevated.storage.atomic import write_atomically, write_exclusive
from aggrevated.storage.json_files import JsonDict, read_json

CHECKSUM_KEY = "sha256"  # of all the rest, whatever the order and the white space


def save_checksummed_json(path: Path, facts: JsonDict) -> None:
    """Write facts for people and machines, atomically, with a digest of them."""
    write_atomically(path, _text(facts))


def save_new_checksummed_json(path: Path, facts: JsonDict) -> bool:
    """The same, unless there is such a file already; whether it was written."""
    return write_exclusive(path, _text(facts))


def load_checksummed_json(path: Path, remedy: str) -> JsonDict:
    """The facts; a `DataError` with a remedy if they are not those that were written."""
    facts = read_json(path)
    if CHECKSUM_KEY not in facts:
        raise DataError(f"{path} is not sealed, and so not of this version; start a new run with 'aggrevated train'")
    if facts.pop(CHECKSUM_KEY) != digest_json(facts):
        raise DataError(f"{path} was changed after it was written; {remedy}")
    return facts


def digest_json(facts: JsonDict) -> str:
    """The SHA-256 of what JSON makes of them."""
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _text(facts: JsonDict) -> bytes:
    return (json.dumps({**facts, CHECKSUM_KEY: digest_json(facts)}, indent=2, ensure_ascii=False) + "\n").encode()
