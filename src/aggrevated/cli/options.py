"""Options: their types, those of engines, and those that are derived from the components of a run."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, make_dataclass
from inspect import getdoc
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, get_origin, get_type_hints

from tyro.conf import Suppress, UseAppendAction, arg
from tyro.constructors import PrimitiveConstructorSpec

from aggrevated.core.settings import Settings, get_declared_settings, to_flag

if TYPE_CHECKING:
    from aggrevated.config import Config
    from aggrevated.engines import Engine


def parse_path(arguments: list[str]) -> Path:
    """Return the path; raise a `ValueError` if it is empty."""
    if not arguments[0]:
        raise ValueError("it is empty: give a path")
    return Path(arguments[0])


def parse_new_path(arguments: list[str]) -> Path:
    """Return the path of a new file; raise a `ValueError` if it has no file name."""
    path = parse_path(arguments)
    if path.name in ("", ".."):
        raise ValueError(f"{arguments[0]} has no file name: give the path of a file")
    return path


def make_path_type(metavar: str, parse: object = parse_path) -> object:
    """Return the tyro constructor of a path."""
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=parse,  # type: ignore[arg-type]
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
    bool, arg(help="Import the Python code that the run names, module:attribute. Read it first.")
]
RunFolder: TypeAlias = Annotated[AnyPath, arg(metavar="RUN")]


ENGINES = ("in-process", "processes", "ray")


@dataclass(frozen=True)
class EngineOptions:
    """Engine that does the work. These options change nothing in the result and are not saved with a run."""

    engine: Name = None
    """in-process, processes or ray; default: in-process for one run, processes for several."""
    workers: Integer = None
    """Number of parallel jobs; default: one per core, or all of the Ray cluster."""
    ray_address: Name = None
    """HOST:PORT of a Ray cluster; default: a new one on this machine, on the loopback address."""
    block_size: Integer = None
    """Number of trajectories per job; default: two jobs per worker."""
    time_limit: Seconds = None
    """Time limit in seconds for one step of one episode in the simulator or the expert; default: none."""
    log: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="NAME", help_behavior_hint="")] = ()
    """Logger that writes the metrics to the run folder, too: tensorboard or wandb (offline). May be repeated."""

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
        from aggrevated.core.user_code import MIN_TIME_LIMIT

        name = self.engine or ("processes" if runs > 1 or self.workers else "in-process")
        check_setting(name in ENGINES, "engine", name, f"one of {', '.join(ENGINES)}")
        for option, value, rule in (("workers", self.workers, TRIALS), ("block_size", self.block_size, at_least(1))):
            rule.check(option, 1 if value is None else value)
        limit = self.time_limit
        is_valid = limit is None or MIN_TIME_LIMIT <= limit < float("inf")
        check_setting(is_valid, "time_limit", limit, f"at least {MIN_TIME_LIMIT} seconds")
        if self.ray_address and name != "ray":
            raise UsageError("--ray-address is for --engine ray: choose that engine, or leave it out")
        if self.workers and name == "in-process":
            raise UsageError("--workers has no effect on --engine in-process: choose processes, or leave it out")
        if self.block_size and runs > 1:
            raise UsageError("--block-size has no effect on several runs, each of which is one job: leave it out")
        if self.log:
            from aggrevated.loggers import find_writer_factories

            find_writer_factories(self.log)
        if self.ray_address:
            from aggrevated.engines.ray import check_reachable

            check_reachable(self.ray_address)
        return name


T = TypeVar("T")
METAVARS = {int: "INT", float: "FLOAT", str: "TEXT", bool: "", tuple: "INT [INT ...]"}


def make_option_group(slot: str, *components: Settings) -> type:
    """Return the options of a component, or of all that a sweep varies; they are None unless set, switches excepted."""
    options = {
        name: make_option(component, name) for component in reversed(components) for name in component.to_values()
    }
    group = make_dataclass(f"{slot.capitalize()}Options", list(options.values()), frozen=True)
    lines = [
        f"{one.name}: {get_docstring_summary(one)}" if one.name not in ("", slot) else get_docstring_summary(one)
        for one in components
    ]
    group.__doc__ = " ".join(lines)
    return group


def make_option(component: Settings, name: str) -> tuple[str, Any, Any]:
    """Return the field of one setting for `make_dataclass`."""
    kind = get_type_hints(type(component))[name]
    default = getattr(component, name)
    help_text = get_declared_settings(type(component))[name].metadata["words"]
    described = arg(
        help=help_text,
        metavar=METAVARS[get_origin(kind) or kind],
        help_behavior_hint=f"(default: {format_default(default)})",
    )
    if kind is bool:
        text = f"Switch off: {help_text[0].lower()}{help_text[1:]}" if default else help_text
        return name, Annotated[bool, arg(help=text, help_behavior_hint="")], field(default=default)
    return name, Annotated[kind | None, described], field(default=None)


def format_default(value: Any) -> str:
    """Return a default as help shows it."""
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value) if value != "" else "none"


def get_docstring_summary(component: object) -> str:
    return (getdoc(type(component)) or "").splitlines()[0]


def get_explicit_settings(command: object, components: Mapping[str, Settings]) -> dict[str, Any]:
    """Return the settings that the arguments set, by name, from the groups of a command."""
    explicit = {}
    for slot, component in components.items():
        for name, default in component.to_values().items():
            value = getattr(getattr(command, slot, None), name, None)
            if value is not None and not (isinstance(value, bool) and value == default):
                explicit[name] = value
    return explicit


def specialize_command(command: type[T], groups: Mapping[str, type], **attributes: object) -> type[T]:
    """Return the command with these groups of options besides its own, and with these class attributes."""
    groups_as_fields = [(slot, options, field(default_factory=options)) for slot, options in groups.items()]
    subclass = make_dataclass(command.__name__, groups_as_fields, bases=(command,), frozen=True, namespace=attributes)
    subclass.__doc__ = getdoc(command)
    return subclass


HELP_ALL = "--help-all"
HELP_FLAGS = {"-h", "--help", HELP_ALL}


def specialize_help(
    command: type[T], arguments: Sequence[str], main_options: Container[str]
) -> tuple[type[T], list[str]]:
    """Return the command whose --help lists the main options only, and the arguments; --help-all lists all options."""
    if HELP_ALL in arguments or not HELP_FLAGS & {*arguments}:
        return command, [*arguments]
    short = hide_options(command, main_options)
    short.__doc__ = f"{getdoc(command)}\n\nThese are the options that are set most often. {HELP_ALL} lists all options."
    return short, [*arguments]


def hide_options(command: type[T], visible: Container[str]) -> type[T]:
    """Return the command whose help lists the visible options only, in its groups, too."""
    hidden: list[tuple[str, Any, Any]] = []
    types = get_type_hints(command, include_extras=True)
    for option in fields(command):  # type: ignore[arg-type]
        if is_dataclass(types[option.name]):
            group = hide_options(types[option.name], visible)
            hidden.append((option.name, group, field(default_factory=group)))
        elif option.name not in visible:
            suppressed = Suppress[types[option.name]]  # type: ignore[valid-type, name-defined]
            hidden.append((option.name, suppressed, field(default=option.default)))
    return make_dataclass(command.__name__, hidden, bases=(command,), frozen=True)


def iter_unknown_options(arguments: Sequence[str], known: Container[str]) -> Iterator[str]:
    """Yield the names of the unknown options among the arguments, with underscores and without values."""
    options = (argument[2:] for argument in arguments if argument.startswith("--") and argument != "--")
    names = (option.partition("=")[0].replace("-", "_") for option in options)
    return (name for name in names if name not in known and name.removeprefix("no_") not in known)


def list_option_values(name: str, arguments: Sequence[str]) -> list[str]:
    """Return all values of an option among the arguments."""
    values = []
    for position, argument in enumerate(arguments):
        if argument == to_flag(name) and position + 1 < len(arguments):
            values.append(arguments[position + 1])
        elif argument.startswith(f"{to_flag(name)}="):
            values.append(argument.partition("=")[2])
    return values


def list_option_words(name: str, arguments: Sequence[str]) -> list[str]:
    """Return the words of the last value of an option; a list has several."""
    last = max(position for position, argument in enumerate(arguments) if argument.partition("=")[0] == to_flag(name))
    assigned = [arguments[last].partition("=")[2]] if "=" in arguments[last] else []
    return assigned or [*takewhile(lambda argument: not argument.startswith("--"), arguments[last + 1 :])]


def find_option_value(name: str, arguments: Sequence[str]) -> str | None:
    """Return the last value of an option among the arguments; None if it is not set."""
    return next(reversed(list_option_values(name, arguments)), None)


def normalize_flags(arguments: Sequence[str], components: Iterable[Settings]) -> list[str]:
    """Return the arguments with every switch in the form that changes its default; without it if it does not.

    Users may write `--x`, `--x True`, `--no-x` or `--x False`, whatever the default of the switch is.
    """
    values = [value for component in components for value in component.to_values().items()]
    defaults = {to_flag(name): value for name, value in values if isinstance(value, bool)}
    remaining = [*arguments]
    normalized = []
    while remaining:
        argument = remaining.pop(0)
        bare = argument.replace("--no-", "--", 1)
        if bare not in defaults:
            normalized.append(argument)
            continue
        value = remaining.pop(0) == "True" if remaining and remaining[0] in ("True", "False") else True
        default = defaults[bare]
        if (value if argument == bare else not value) != default:
            normalized.append(f"--no-{bare[2:]}" if default else bare)
    return normalized


def format_trust_option(config: "Config") -> str:
    """Return " --trust-code" if the config names Python code, which `resume` imports only with it; else ""."""
    from aggrevated.problems.code_references import is_reference

    names = (config.task.name, str(getattr(config.problem, "expert", "")))
    return " --trust-code" if any(map(is_reference, names)) else ""
