"""The command line: one file per command in commands/. Nothing heavy is imported before it is needed."""

import inspect
import os
import signal
import sys
from importlib import import_module
from types import FrameType
from typing import Annotated, Any, NoReturn, Protocol, Union

import tyro

from aggrevated.errors import AggrevatedError, UsageError
from aggrevated.machine import one_thread
from aggrevated.shelves import modules_in
from aggrevated.version import __version__

PROGRAM = "aggrevated"
DESCRIPTION = """Train a small, fast policy from an expert that knows what a mistake costs.

Exit codes: 0 done, 1 the run failed, 2 wrong usage, 65 bad data or checkpoint, 74 input/output, 130/143 stopped.
"""

FIRST = ("train", "resume", "evaluate", "compare")  # the others follow by name


class Runnable(Protocol):
    """What every command is; one whose options depend on its arguments has a class method `fitted` besides."""

    def run(self) -> None: ...


def every_command() -> dict[str, type[Runnable]]:
    """By name: every class in the files of commands/ that says which command it is."""
    modules = [import_module(name) for name in modules_in("aggrevated.cli.commands")]
    values = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    found = {value.command: value for value in values if hasattr(value, "command")}
    return {name: found[name] for name in dict.fromkeys([*FIRST, *sorted(found)])}


def main(arguments: list[str] | None = None) -> None:
    """Run a command and leave with its exit code."""
    signal.signal(signal.SIGTERM, terminate)
    try:
        with one_thread():  # small networks are faster so, trials run side by side, and bits hang on it
            asked_for(sys.argv[1:] if arguments is None else arguments).run()
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


def asked_for(arguments: list[str]) -> Runnable:
    """The command that was asked for; wrong usage ends here, with exit code 2."""
    if arguments == ["--version"]:
        print(__version__)
        raise SystemExit(0)
    refuse_other_bytes(arguments)
    known = every_command()
    overview = not set(arguments) & set(known)  # there a line for each command, in its own help all of its text

    def about(command: type) -> str:
        text = inspect.getdoc(command) or ""
        return text.splitlines()[0] if overview else text

    chosen: Any = known.get(arguments[0]) if arguments else None
    if hasattr(chosen, "fitted"):  # its options depend on the arguments
        known[arguments[0]], arguments = chosen.fitted(arguments)
    named = [Annotated[cls, tyro.conf.subcommand(name, description=about(cls))] for name, cls in known.items()]
    one_of_them: Any = Union[tuple(named)]  # noqa: UP007 - they are not known before the program runs
    config = (tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes)
    command: Runnable = tyro.cli(one_of_them, prog=PROGRAM, description=DESCRIPTION, args=arguments, config=config)
    return command


def refuse_other_bytes(arguments: list[str]) -> None:
    """A `UsageError` for the first argument that is no UTF-8: no result that names it could be written or printed."""
    for place, word in enumerate(arguments, 1):
        if any("\ud800" <= letter <= "\udfff" for letter in word):
            raise UsageError(f"argument {place}, {word!r}, is not UTF-8; give another name")


class Terminated(KeyboardInterrupt):
    """SIGTERM, which is treated like Ctrl-C."""


def terminate(number: int, frame: FrameType | None) -> NoReturn:
    """Leave at SIGTERM as gracefully as at Ctrl-C."""
    raise Terminated


def leave(sentence: str, code: int) -> NoReturn:
    """One sentence on standard error, and the exit code."""
    print(f"{PROGRAM}: {sentence}", file=sys.stderr)
    raise SystemExit(code)
