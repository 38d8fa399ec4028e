"""Options that are derived from pieces: a flag for each setting of the pieces that a command uses, with its default."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, make_dataclass
from inspect import getdoc
from itertools import takewhile
from typing import Annotated, Any, TypeVar, get_origin, get_type_hints

from tyro.conf import arg

from aggrevated.core.settings import Settings, declared_settings, to_flag

T = TypeVar("T")
METAVARS = {int: "INT", float: "FLOAT", str: "TEXT", bool: "", tuple: "INT [INT ...]"}


def make_option_group(place: str, *pieces: Settings) -> type:
    """The options of a piece, or of all from which it varies, as one group of the help: None, but for switches."""
    options = {name: make_option(piece, name) for piece in reversed(pieces) for name in piece.to_values()}
    made = make_dataclass(f"{place.capitalize()}Options", list(options.values()), frozen=True)
    lines = [
        f"{one.name}: {docstring_summary(one)}" if one.name not in ("", place) else docstring_summary(one)
        for one in pieces
    ]
    made.__doc__ = " ".join(lines)
    return made


def make_option(piece: Settings, name: str) -> tuple[str, Any, Any]:
    """The field of one setting, as `make_dataclass` takes it."""
    kind, default = get_type_hints(type(piece))[name], getattr(piece, name)
    words = declared_settings(type(piece))[name].metadata["words"]
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


def docstring_summary(piece: object) -> str:
    return (getdoc(type(piece)) or "").splitlines()[0]


def explicit_settings(command: object, pieces: Mapping[str, Settings]) -> dict[str, Any]:
    """The settings that somebody chose on purpose, by name, from the groups of a command."""
    found = {}
    for place, piece in pieces.items():
        for name, usual in piece.to_values().items():
            value = getattr(getattr(command, place, None), name, None)
            if value is not None and not (isinstance(value, bool) and value == usual):
                found[name] = value
    return found


def specialize_command(command: type[T], groups: Mapping[str, type], usual: object) -> type[T]:
    """The command with these groups of options besides its own; `usual` is what they are without being set."""
    fields = [(place, options, field(default_factory=options)) for place, options in groups.items()]
    made = make_dataclass(command.__name__, fields, bases=(command,), frozen=True, namespace={"default_config": usual})
    made.__doc__ = getdoc(command)
    return made


def iter_unknown_options(arguments: Sequence[str], known: Container[str]) -> Iterator[str]:
    """The options among the arguments that are not known, with underscores and without what is assigned to them."""
    options = (word[2:] for word in arguments if word.startswith("--") and word != "--")
    names = (option.partition("=")[0].replace("-", "_") for option in options)
    return (name for name in names if name not in known and name.removeprefix("no_") not in known)


def option_values(name: str, arguments: Sequence[str]) -> list[str]:
    """All that an option is set to among the arguments."""
    found = []
    for place, word in enumerate(arguments):
        if word == to_flag(name) and place + 1 < len(arguments):
            found.append(arguments[place + 1])
        elif word.startswith(f"{to_flag(name)}="):
            found.append(word.partition("=")[2])
    return found


def option_words(name: str, arguments: Sequence[str]) -> list[str]:
    """All words that an option is set to the last time: there are several where it is a list."""
    places = [place for place, word in enumerate(arguments) if word.partition("=")[0] == to_flag(name)]
    first = [arguments[places[-1]].partition("=")[2]] if "=" in arguments[places[-1]] else []
    return first or [*takewhile(lambda word: not word.startswith("--"), arguments[places[-1] + 1 :])]


def option_value(name: str, arguments: Sequence[str]) -> str | None:
    """What an option is set to among the arguments, the last time."""
    return next(reversed(option_values(name, arguments)), None)


def normalize_flags(arguments: Sequence[str], pieces: Iterable[Settings]) -> list[str]:
    """The arguments with every switch written in the one way that changes its default, or left out if it does not.

    `--use-geometry`, `--use-geometry True`, `--no-geometry` and `--use-geometry False` can then be said whatever the default is.
    """
    values = [value for piece in pieces for value in piece.to_values().items()]
    defaults = {to_flag(name): value for name, value in values if isinstance(value, bool)}
    words, out = [*arguments], []
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
