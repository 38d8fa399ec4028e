"""Options: their types, those of engines, and those that are derived from the components of a run."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from inspect import getdoc
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, get_origin, get_type_hints

from tyro.conf import UseAppendAction, arg
from tyro.constructors import PrimitiveConstructorSpec

from aggrevated.core.settings import Settings, get_declared_settings, to_flag

if TYPE_CHECKING:
    from aggrevated.engines import Engine


def parse_path(words: list[str]) -> Path:
    """The path; an empty text is no path, not even that of this folder."""
    if not words[0]:
        raise ValueError("it is empty; give a path")
    return Path(words[0])


def parse_new_path(words: list[str]) -> Path:
    """The path of something new, to whose last part endings can be added."""
    path = parse_path(words)
    if path.name in ("", ".."):
        raise ValueError(f"{words[0]} has no name of its own; give the path of a file")
    return path


def make_path_type(metavar: str, made: object = parse_path) -> object:
    """How tyro takes such paths."""
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=made,  # type: ignore[arg-type]
        is_instance=lambda value: isinstance(value, Path),
        str_from_instance=lambda value: [str(value)],
    )


Integer: TypeAlias = Annotated[int | None, arg(metavar="INT", help_behavior_hint="")]
Seconds: TypeAlias = Annotated[float | None, arg(metavar="FLOAT", help_behavior_hint="")]
Name: TypeAlias = Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")]
AnyPath: TypeAlias = Annotated[Path, make_path_type("PATH")]
NewName: TypeAlias = Annotated[Path, make_path_type("PATH", parse_new_path)]
Folder: TypeAlias = Annotated[AnyPath | None, arg(metavar="PATH", help_behavior_hint="")]
File: TypeAlias = Annotated[NewName | None, arg(metavar="PATH", help_behavior_hint="")]
TaskName: TypeAlias = Annotated[str, arg(metavar="TASK")]
Trust: TypeAlias = Annotated[
    bool, arg(help="Import the Python code that the run names, module:attribute. Look at it first.")
]
RunFolder: TypeAlias = Annotated[AnyPath, arg(metavar="RUN")]


ENGINES = ("in-process", "processes", "ray")


@dataclass(frozen=True)
class EngineOptions:
    """Where the work is done. None of it is kept with a run, or changes a bit of its result."""

    engine: Name = None
    """in-process, processes or ray; default: one run in process, several side by side in processes."""
    workers: Integer = None
    """How many jobs at once; default: one per core, or all that the Ray cluster has."""
    ray_address: Name = None
    """HOST:PORT of a Ray cluster; without it Ray is started here, where nobody else can reach it."""
    block_size: Integer = None
    """How many trajectories are one job of a run; default: as many as suit the workers."""
    time_limit: Seconds = None
    """How long simulator or expert may take over one step of one episode; default: as long as they like."""
    log: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="NAME", help_behavior_hint="")] = ()
    """Who else is told of the metrics: tensorboard, wandb (offline); into the run folder."""

    def build(self, runs: int = 1) -> "Engine":
        """Return the engine for this number of runs."""
        from aggrevated.core.hardware import count_cores
        from aggrevated.core.user_code import set_time_limit
        from aggrevated.engines import IN_PROCESS, InProcessEngine

        name = self.check(runs)
        if self.time_limit is not None:
            set_time_limit(self.time_limit)
        if name == "in-process":
            return InProcessEngine(self.block_size) if self.block_size else IN_PROCESS
        if name == "processes":
            from aggrevated.engines.processes import ProcessEngine

            workers = self.workers or count_cores()
            return ProcessEngine(min(workers, runs) if runs > 1 else workers, self.block_size)
        from aggrevated.engines.ray import RayEngine

        return RayEngine(self.workers, self.ray_address, self.block_size)

    def check(self, runs: int = 1) -> str:
        """Return the engine's name; a `UsageError` if the options exclude each other."""
        from aggrevated.core.errors import UsageError
        from aggrevated.core.settings import TRIALS, at_least, check_setting

        name = self.engine or ("processes" if runs > 1 or self.workers else "in-process")
        check_setting(name in ENGINES, "engine", name, f"one of {', '.join(ENGINES)}")
        for option, value, rule in (("workers", self.workers, TRIALS), ("block_size", self.block_size, at_least(1))):
            rule.check(option, 1 if value is None else value)
        limit = self.time_limit
        check_setting(limit is None or 0 < limit < float("inf"), "time_limit", limit, "a positive number of seconds")
        if self.ray_address and name != "ray":
            raise UsageError("--ray-address is for --engine ray; leave it out, or choose that engine")
        if self.workers and name == "in-process":
            raise UsageError("--workers has no effect on --engine in-process; choose processes, or leave it out")
        if self.block_size and runs > 1:
            raise UsageError("--block-size has no effect on several runs, each of which is one job; leave it out")
        if self.log:
            from aggrevated.loggers import find_writer_factories

            find_writer_factories(self.log)
        if self.ray_address:
            from aggrevated.engines.ray import check_reachable

            check_reachable(self.ray_address)
        return name


T = TypeVar("T")
METAVARS = {int: "INT", float: "FLOAT", str: "TEXT", bool: "", tuple: "INT [INT ...]"}


def make_option_group(place: str, *pieces: Settings) -> type:
    """The options of a piece, or of all from which it varies, as one group of the help: None, but for switches."""
    options = {name: make_option(piece, name) for piece in reversed(pieces) for name in piece.to_values()}
    made = make_dataclass(f"{place.capitalize()}Options", list(options.values()), frozen=True)
    lines = [
        f"{one.name}: {get_docstring_summary(one)}" if one.name not in ("", place) else get_docstring_summary(one)
        for one in pieces
    ]
    made.__doc__ = " ".join(lines)
    return made


def make_option(piece: Settings, name: str) -> tuple[str, Any, Any]:
    """The field of one setting, as `make_dataclass` takes it."""
    kind = get_type_hints(type(piece))[name]
    default = getattr(piece, name)
    words = get_declared_settings(type(piece))[name].metadata["words"]
    described = arg(
        help=words,
        metavar=METAVARS[get_origin(kind) or kind],
        help_behavior_hint=f"(default: {format_default(default)})",
    )
    if kind is bool:
        said = f"Switch off: {words[0].lower()}{words[1:]}" if default else words
        return name, Annotated[bool, arg(help=said, help_behavior_hint="")], field(default=default)
    return name, Annotated[kind | None, described], field(default=None)


def format_default(value: Any) -> str:
    """A default, for people."""
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value) if value != "" else "none"


def get_docstring_summary(piece: object) -> str:
    return (getdoc(type(piece)) or "").splitlines()[0]


def get_explicit_settings(command: object, pieces: Mapping[str, Settings]) -> dict[str, Any]:
    """The settings that somebody chose on purpose, by name, from the groups of a command."""
    found = {}
    for place, piece in pieces.items():
        for name, usual in piece.to_values().items():
            value = getattr(getattr(command, place, None), name, None)
            if value is not None and not (isinstance(value, bool) and value == usual):
                found[name] = value
    return found


def specialize_command(command: type[T], groups: Mapping[str, type], **attributes: object) -> type[T]:
    """Return the command with these groups of options besides its own, and with these class attributes."""
    fields = [(place, options, field(default_factory=options)) for place, options in groups.items()]
    made = make_dataclass(command.__name__, fields, bases=(command,), frozen=True, namespace=attributes)
    made.__doc__ = getdoc(command)
    return made


def iter_unknown_options(arguments: Sequence[str], known: Container[str]) -> Iterator[str]:
    """The options among the arguments that are not known, with underscores and without what is assigned to them."""
    options = (word[2:] for word in arguments if word.startswith("--") and word != "--")
    names = (option.partition("=")[0].replace("-", "_") for option in options)
    return (name for name in names if name not in known and name.removeprefix("no_") not in known)


def list_option_values(name: str, arguments: Sequence[str]) -> list[str]:
    """All that an option is set to among the arguments."""
    found = []
    for place, word in enumerate(arguments):
        if word == to_flag(name) and place + 1 < len(arguments):
            found.append(arguments[place + 1])
        elif word.startswith(f"{to_flag(name)}="):
            found.append(word.partition("=")[2])
    return found


def list_option_words(name: str, arguments: Sequence[str]) -> list[str]:
    """All words that an option is set to the last time: there are several where it is a list."""
    places = [place for place, word in enumerate(arguments) if word.partition("=")[0] == to_flag(name)]
    first = [arguments[places[-1]].partition("=")[2]] if "=" in arguments[places[-1]] else []
    return first or [*takewhile(lambda word: not word.startswith("--"), arguments[places[-1] + 1 :])]


def find_option_value(name: str, arguments: Sequence[str]) -> str | None:
    """What an option is set to among the arguments, the last time."""
    return next(reversed(list_option_values(name, arguments)), None)


def normalize_flags(arguments: Sequence[str], pieces: Iterable[Settings]) -> list[str]:
    """The arguments with every switch written in the one way that changes its default, or left out if it does not.

    A switch `--x` can then be written `--x`, `--x True`, `--no-x` or `--x False`, whatever its default is.
    """
    values = [value for piece in pieces for value in piece.to_values().items()]
    defaults = {to_flag(name): value for name, value in values if isinstance(value, bool)}
    words = [*arguments]
    out = []
    while words:
        word = words.pop(0)
        bare = word.replace("--no-", "--", 1)
        if bare not in defaults:
            out.append(word)
            continue
        said = words.pop(0) == "True" if words and words[0] in ("True", "False") else True
        default = defaults[bare]
        if (said if word == bare else not said) != default:
            out.append(f"--no-{bare[2:]}" if default else bare)
    return out
