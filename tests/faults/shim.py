"""Process that runs each command in a child process in which one file operation fails.

One line of its input is JSON: the folder, the kind of fault, the number of the operation in that folder, the command.
One line of its output is JSON: the exit code, the number of operations, the output of the command.
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
    """Layer between Python and the operating system that counts the operations below a folder."""

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
            is_below = first in self.files if name in BY_FILE else self.below(first)
            if is_below:
                self.fault(name, first)
            result = original(first, *rest, **named)
            if name == "open":
                (self.files.add if is_below else self.files.discard)(result)
            return result

        return call

    def below(self, path: Any) -> bool:
        if isinstance(path, int):
            return False
        return os.path.abspath(os.fsdecode(path)).startswith(self.folder)  # noqa: PTH100 - do not resolve links

    def fault(self, name: str, first: Any) -> None:
        self.count += 1
        if self.count != self.number:
            return
        if self.kind == "KILL":
            os.kill(os.getpid(), signal.SIGKILL)
        number = ERRORS[self.kind]
        raise OSError(number, os.strerror(number), None if isinstance(first, int) else os.fsdecode(first))


def run_child(folder: str, kind: str, number: int, command: list[str], counted: Path, output: Path) -> None:
    """Run the command in this process and exit."""
    from aggrevated.cli import main

    output_fd = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(output_fd, stream)
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
    output = scratch / "output"
    once = "train cartpole --iterations 1 --trajectories 2 --horizon 5 --validation-episodes 2 --test-episodes 2 --out"
    with (scratch / "warm_up").open("w") as log, redirect_stdout(log), redirect_stderr(log):
        main([*once.split(), str(scratch / "run")])  # import everything a run needs once, before forking
    for line in sys.stdin:
        folder, kind, number, command = json.loads(line)
        counted.write_text("-1")
        process = os.fork()
        if process == 0:
            run_child(folder, kind, number, command, counted, output)
        _, status = os.waitpid(process, 0)
        answer = os.waitstatus_to_exitcode(status), int(counted.read_text()), output.read_text(errors="replace")
        print(json.dumps(answer), flush=True)
