"""Pickles that would create a file if they were executed, one for each opcode that can execute code."""

import pickle
from pathlib import Path
from typing import Any


class Runs:
    """Object that is pickled as a call."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> Any:
        import os

        return os.system, (self.command,)


def payloads(marker: Path) -> dict[str, bytes]:
    """Return payloads; each touches the marker if it is executed."""
    command = f"touch {marker}"
    encoded = command.encode()
    text = b"X" + len(encoded).to_bytes(4, "little") + encoded
    short = lambda word: b"\x8c" + bytes([len(word)]) + word  # noqa: E731
    system = b"cos\nsystem\n"
    return {
        **{f"REDUCE {protocol}": pickle.dumps(Runs(command), protocol) for protocol in range(6)},
        "STACK_GLOBAL": b"\x80\x04" + short(b"os") + short(b"system") + b"\x93" + text + b"\x85R.",
        "INST": b"(" + text + b"ios\nsystem\n.",
        "OBJ": b"(" + system + text + b"o.",
        "NEWOBJ": b"\x80\x02" + system + text + b"\x85\x81.",
        "NEWOBJ_EX": b"\x80\x04" + system + text + b"\x85}\x92.",
        "BUILD": b"\x80\x02c__main__\nRuns\n)R}X\x0c\0\0\0__setstate__" + system + b"s" + b"b" + text + b"b.",
        "eval": b"c__builtin__\neval\n(X"
        + len(code := f"open({str(marker)!r}, 'w')".encode()).to_bytes(4, "little")
        + code
        + b"tR.",
        "EXT1": b"\x80\x02\x82\x01" + text + b"\x85R.",
        "EXT2": b"\x80\x02\x83\x01\x00" + text + b"\x85R.",
        "EXT4": b"\x80\x02\x84\x01\x00\x00\x00" + text + b"\x85R.",
        "PERSID": b"Pos.system\n.",
        "BINPERSID": b"\x80\x02" + text + b"Q.",
        "in a list": b"]" + system + text + b"\x85Ra.",
        "as a key": b"}" + system + text + b"\x85RK\x01s.",
        "before the value": system + text + b"\x85R0}.",
        "called twice": system + text + b"\x85R" + text + b"\x85R.",
    }
