"""The command line: one file per command in commands/. Heavy modules are imported when they are needed."""

import inspect
import signal
import sys
from contextlib import suppress
from dataclasses import make_dataclass
from importlib import import_module
from importlib.metadata import EntryPoint
from types import FrameType
from typing import Annotated, Any, NoReturn, Protocol, Union

import tyro

from aggrevated import __version__
from aggrevated.cli.console import install_streams
from aggrevated.cli.options import HELP_ALL
from aggrevated.core.errors import AggrevatedError, UsageError
from aggrevated.core.hardware import single_thread
from aggrevated.core.registry import check_package_installed, find_entry_points, list_modules, load_entry_point

PROGRAM = "aggrevated"
DESCRIPTION = """Train a small, fast policy from an expert that knows the cost of a mistake.

Exit codes: 0 done, 1 the run failed, 2 wrong usage, 65 bad data or checkpoint, 74 input/output, 129/130/143
stopped.
"""

STOP_SIGNALS = (signal.SIGTERM, signal.SIGHUP)  # Python handles Ctrl-C itself
COMMANDS_LISTED_FIRST = ("train", "resume", "evaluate", "compare")  # the others follow by name
GROUP = "aggrevated.commands"  # of entry points, by which other packages offer theirs


class Command(Protocol):
    """A command. If its options depend on its arguments, it has a class method `specialize`, too."""

    def run(self) -> None: ...


def discover_commands(requested: str | None) -> dict[str, type[Command]]:
    """Return the commands by name: the builtin ones, and those of installed packages.

    If `requested` is a command, no package but its own is imported. Otherwise the result is for an overview, in which a
    command that cannot be imported is described by the reason.
    """
    modules = [import_module(name) for name in list_modules("aggrevated.cli.commands")]
    values = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    commands = {value.command: value for value in values if hasattr(value, "command")}
    entry_points = {name: point for name, point in find_entry_points(GROUP).items() if name not in commands}
    if requested in entry_points:
        commands[requested] = load_entry_point(entry_points[requested])
    elif requested not in commands:
        check_package_installed(requested, "command")
        commands |= {name: load_or_describe(point) for name, point in entry_points.items()}
    return {name: commands[name] for name in dict.fromkeys([*COMMANDS_LISTED_FIRST, *sorted(commands)])}


def load_or_describe(point: EntryPoint) -> type[Command]:
    """Return the command of an entry point or, if it cannot be imported, one whose description is the reason."""
    try:
        command: type[Command] = load_entry_point(point)
        return command
    except UsageError as error:
        return make_dataclass(point.name, (), namespace={"__doc__": str(error), "run": lambda self: None})


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its exit code."""
    install_streams()
    for number in STOP_SIGNALS:
        if signal.getsignal(number) == signal.SIG_DFL:  # the parent process may ignore it on purpose
            signal.signal(number, raise_terminated)
    try:
        try:
            with single_thread():  # small networks are faster so, and the bits of a result depend on it
                parse_command(sys.argv[1:] if arguments is None else arguments).run()
        finally:
            sys.stdout.flush()
    except AggrevatedError as error:
        exit_with_message(str(error), error.exit_code)
    except MemoryError:
        exit_with_message("there is not enough memory: use fewer --trajectories or episodes", 1)
    except OSError as error:
        exit_with_message(f"{error}: check the path, its permissions and the free space", 74)
    except Terminated as error:
        exit_with_message("terminated", 128 + error.number)
    except KeyboardInterrupt:
        exit_with_message("stopped", 130)


def parse_command(arguments: list[str]) -> Command:
    """Return the command of the arguments; wrong usage exits with code 2."""
    if arguments == ["--version"]:
        print(__version__)
        raise SystemExit(0)
    check_utf8(arguments)
    commands = discover_commands(arguments[0] if arguments else None)
    overview = not set(arguments) & set(commands)  # the overview shows one line per command

    def describe(command: type) -> str:
        text = inspect.getdoc(command) or ""
        return text.splitlines()[0] if overview else text

    chosen: Any = commands.get(arguments[0]) if arguments else None
    if hasattr(chosen, "specialize"):  # its options depend on the arguments
        commands[arguments[0]], arguments = chosen.specialize(arguments)
    arguments = ["--help" if argument == HELP_ALL else argument for argument in arguments]
    choices = [Annotated[cls, tyro.conf.subcommand(name, description=describe(cls))] for name, cls in commands.items()]
    any_command: Any = Union[tuple(choices)]  # noqa: UP007 - they are not known before the program runs
    config = (tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes)
    command: Command = tyro.cli(any_command, prog=PROGRAM, description=DESCRIPTION, args=arguments, config=config)
    return command


def check_utf8(arguments: list[str]) -> None:
    """Raise a `UsageError` for the first argument that is not UTF-8, which files and output could not name."""
    for position, argument in enumerate(arguments, 1):
        if any("\ud800" <= letter <= "\udfff" for letter in argument):
            raise UsageError(f"argument {position}, {argument!r}, is not UTF-8: use another name")


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP, which are treated like Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def raise_terminated(number: int, frame: FrameType | None) -> NoReturn:
    """Raise `Terminated`."""
    raise Terminated(number)


def exit_with_message(sentence: str, code: int) -> NoReturn:
    """Print the message to standard error and exit with the code."""
    with suppress(OSError):  # standard error may be a file on a full disk
        print(f"{PROGRAM}: {sentence}", file=sys.stderr, flush=True)
    raise SystemExit(code)
