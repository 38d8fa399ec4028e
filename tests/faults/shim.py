"""A process that runs commands, each in a child of its own, in which one operation on files goes wrong.

A line of its input is JSON: the folder, the kind of fault, the number of the operation below that folder, the command.
It answers with the exit code, how many operations there were, and what was said.
"""

import errno
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EACCES": errno.EACCES}
BY_PATH = ("open", "replace", "rename", "link", "unlink", "mkdir", "rmdir")
BY_FILE = ("write", "fsync")


class Shim:
    """Stands between Python and the operating system, and counts what is done below a folder."""

    def __init__(self, folder: str, kind: str, number: int) -> None:
        self.folder = os.path.realpath(folder)
        self.kind = kind
        self.number = number
        self.count = 0
        self.files: set[int] = set()
        for name in (*BY_PATH, *BY_FILE):
            setattr(os, name, self.wrap(name, getattr(os, name)))

    def wrap(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(first: Any, *rest: Any, **named: Any) -> Any:
            ours = first in self.files if name in BY_FILE else self.below(first)
            if ours:
                self.fault(name, first)
            result = original(first, *rest, **named)
            if name == "open":
                (self.files.add if ours else self.files.discard)(result)
            return result

        return call

    def below(self, path: Any) -> bool:
        if isinstance(path, int):
            return False
        return os.path.abspath(os.fsdecode(path)).startswith(self.folder)  # noqa: PTH100 - links stay

    def fault(self, name: str, first: Any) -> None:
        self.count += 1
        if self.count != self.number:
            return
        if self.kind == "KILL":
            os.kill(os.getpid(), signal.SIGKILL)
        number = ERRORS[self.kind]
        raise OSError(number, os.strerror(number), None if isinstance(first, int) else os.fsdecode(first))


def run_child(folder: str, kind: str, number: int, command: list[str], counted: Path, said: Path) -> None:
    """Run the command, and never come back."""
    from aggrevated.cli import main

    words = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(words, stream)
    shim = Shim(folder, kind, number)
    code = 0
    try:
        main(command)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 99
    sys.stdout.flush()
    sys.stderr.flush()
    counted.write_text(str(shim.count))
    os._exit(code)


if __name__ == "__main__":
    from contextlib import redirect_stderr, redirect_stdout

    from aggrevated.cli import main

    scratch = Path(tempfile.mkdtemp())
    counted = scratch / "count"
    said = scratch / "said"
    once = "train cartpole --iterations 1 --trajectories 2 --horizon 5 --validation-episodes 2 --test-episodes 2 --out"
    with (scratch / "words").open("w") as words, redirect_stdout(words), redirect_stderr(words):
        main([*once.split(), str(scratch / "run")])  # all that a run needs is loaded, once for all children
    for line in sys.stdin:
        folder, kind, number, command = json.loads(line)
        counted.write_text("-1")
        process = os.fork()
        if process == 0:
            run_child(folder, kind, number, command, counted, said)
        _, status = os.waitpid(process, 0)
        answer = os.waitstatus_to_exitcode(status), int(counted.read_text()), said.read_text(errors="replace")
        print(json.dumps(answer), flush=True)
