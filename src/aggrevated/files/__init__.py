"""Files: whole or absent, sealed against damage, locked while in use; those of others are read with suspicion."""

from aggrevated.files.atomic import storage_errors, sweep, write_atomically
from aggrevated.files.foreign import read_bounded, start_of
from aggrevated.files.json_files import Facts, read_json, read_lines, write_json
from aggrevated.files.locks import only_one
from aggrevated.files.sealed import digest, seal, unseal

__all__ = [
    "Facts",
    "digest",
    "only_one",
    "read_bounded",
    "read_json",
    "read_lines",
    "seal",
    "start_of",
    "storage_errors",
    "sweep",
    "unseal",
    "write_atomically",
    "write_json",
]
