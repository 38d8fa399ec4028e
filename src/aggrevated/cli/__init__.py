"""The command line: one file per command, made from dataclasses. Nothing heavy is imported before it is needed."""

import inspect
import os
import signal
import sys
from types import FrameType
from typing import Annotated, Any, NoReturn, Protocol, Union

import tyro

from aggrevated import __version__
from aggrevated.cli.compare import Compare
from aggrevated.cli.evaluate import Evaluate
from aggrevated.cli.expert import Expert
from aggrevated.cli.oracle_check import OracleCheck
from aggrevated.cli.parse import Parse
from aggrevated.cli.reproduce import Reproduce
from aggrevated.cli.resume import Resume
from aggrevated.cli.theory import Theory
from aggrevated.cli.train import Train
from aggrevated.cli.watch import Watch
from aggrevated.errors import AggrevatedError

DESCRIPTION = """Train a small, fast policy from an expert that knows what a mistake costs.

Exit codes: 0 done, 1 the run failed, 2 wrong usage, 65 bad data or checkpoint, 74 input/output, 130/143 stopped.
"""

COMMANDS = {
    "train": Train,
    "resume": Resume,
    "evaluate": Evaluate,
    "compare": Compare,
    "expert": Expert,
    "reproduce": Reproduce,
    "watch": Watch,
    "theory": Theory,
    "parse": Parse,
    "oracle-check": OracleCheck,
}


class Runnable(Protocol):
    """What every command is."""

    def run(self) -> None: ...


def main(arguments: list[str] | None = None) -> None:
    """Run a command and leave with its exit code."""
    # One thread: small networks are faster so, and trials run side by side. Set before NumPy is first imported.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    signal.signal(signal.SIGTERM, terminate)
    try:
        parse(sys.argv[1:] if arguments is None else arguments).run()
    except AggrevatedError as error:
        leave(str(error), error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        leave(f"{error}; check the path, its permissions and the free space", 74)
    except Terminated:
        leave("terminated; what was done up to the last checkpoint is kept", 143)
    except KeyboardInterrupt:
        leave("stopped; what was done up to the last checkpoint is kept", 130)


def parse(arguments: list[str]) -> Runnable:
    """The command that was asked for; wrong usage ends here, with exit code 2."""
    if arguments == ["--version"]:
        print(__version__)
        raise SystemExit(0)
    overview = not set(arguments) & set(COMMANDS)  # there a line for each command, in its own help all of its text

    def about(command: type) -> str:
        text = inspect.getdoc(command) or ""
        return text.splitlines()[0] if overview else text

    named = [Annotated[cls, tyro.conf.subcommand(name, description=about(cls))] for name, cls in COMMANDS.items()]
    one_of_them: Any = Union[tuple(named)]  # noqa: UP007 - they are not known before the program runs
    command: Runnable = tyro.cli(
        one_of_them,
        prog="aggrevated",
        description=DESCRIPTION,
        args=arguments,
        config=(tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes),
    )
    return command


class Terminated(KeyboardInterrupt):
    """SIGTERM, which is treated like Ctrl-C."""


def terminate(number: int, frame: FrameType | None) -> NoReturn:
    """Leave at SIGTERM as gracefully as at Ctrl-C."""
    raise Terminated


def leave(sentence: str, code: int) -> NoReturn:
    """One sentence on standard error, and the exit code."""
    print(f"aggrevated: {sentence}", file=sys.stderr)
    raise SystemExit(code)
