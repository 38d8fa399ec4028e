"""A piece of a run declares itself: what can be set about it, in the file of what it builds.

A piece is a frozen dataclass whose fields are its settings, each with type, default, help and rule in that one place.
The command line's options, `config.json`, "has no effect" and the tables of the docs are derived from them.
"""

from __future__ import annotations

import difflib
import itertools
import math
import shlex
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar, Protocol, Self, TypeVar, get_args, get_origin, get_type_hints

from aggrevated.core.errors import UsageError

T = TypeVar("T")


@dataclass(frozen=True)
class Rule:
    """What a value must be: a test, and the words for it."""

    predicate: Callable[[Any], bool]
    description: str

    def check(self, name: str, value: object) -> None:
        """A `UsageError` that names the setting and its value, unless it holds."""
        check_setting(self.predicate(value), name, value, self.description)


MAX_COUNT = (
    1_000_000  # of what is counted, unless a rule says otherwise: no array of it, and no sum, is too large to be
)
MAX_LAYER_WIDTH = 100_000  # of a layer
MAX_LAYER_WEIGHTS = 100_000_000  # between two layers


def at_least(least: int, most: int = MAX_COUNT) -> Rule:
    """That number, or more; but not more than anybody can count up to."""
    return Rule(lambda value: least <= value <= most, f"at least {least}, and at most {most:,}")


def between(least: float, most: float) -> Rule:
    """One of these two, or a number between them."""
    return Rule(lambda value: least <= value <= most, f"between {least} and {most}")


def one_of(names: Iterable[str]) -> Rule:
    """One of these names."""
    among = list(names)
    return Rule(lambda value: value in among, f"one of {', '.join(among)}")


ANY_VALUE = Rule(lambda value: True, "anything")
NON_NEGATIVE = Rule(lambda value: 0 <= value < float("inf"), "0 or more")
POSITIVE = Rule(lambda value: 0 < value < float("inf"), "a positive number")
UNIT_INTERVAL = between(0, 1)
BELOW_1 = Rule(lambda value: 0 <= value < 1, "0 or more, and below 1")
COUNT = Rule(lambda value: 0 <= value <= MAX_COUNT, f"0 or more, and at most {MAX_COUNT:,}")
SEED = Rule(lambda value: 0 <= value < 2**63, "0 or more, and below 2^63")
TRIALS = at_least(1, 10_000)  # runs side by side, or workers that do them
LAYER_WIDTHS = Rule(
    lambda value: (
        all(1 <= width <= MAX_LAYER_WIDTH for width in value)
        and all(a * b <= MAX_LAYER_WEIGHTS for a, b in itertools.pairwise(value))
    ),
    f"widths of at least 1 and at most {MAX_LAYER_WIDTH:,}, with at most {MAX_LAYER_WEIGHTS:,} weights between two",
)


def check_recurrent_width(hidden: tuple[int, ...], policy: str) -> None:
    """A `UsageError` unless it is one width, whose layer, four gates joined to all of it, has weights to count."""
    most = math.isqrt(MAX_LAYER_WEIGHTS // 4)
    rule = f"one width for the policy {policy}, of at most {most:,}"
    check_setting(len(hidden) == 1 and hidden[0] <= most, "hidden", hidden, rule)


def setting(default: T, words: str, rule: Rule = ANY_VALUE) -> T:
    """A field of a piece: its default, what it is in words, and what it must be."""
    return field(default=default, metadata={"words": words, "rule": rule})


class SelectedComponents(Protocol):
    """The pieces of one run, as they see each other."""

    @property
    def has_discrete_actions(self) -> bool:
        """Whether the actions are a finite set, and no vectors."""
        ...

    @property
    def problem(self) -> Settings: ...
    @property
    def policy(self) -> Settings: ...
    @property
    def oracle(self) -> Settings: ...
    @property
    def reinforcement(self) -> Settings: ...
    @property
    def loss(self) -> Settings: ...
    @property
    def update(self) -> Settings: ...
    @property
    def start(self) -> Settings: ...


@dataclass(frozen=True)
class Settings:
    """The base of all pieces: each has a name, by which it is chosen, and a method that builds what it is for."""

    name: ClassVar[str] = ""

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        """What was left open, filled in; `given` are the settings that somebody chose on purpose.

        `iterations` is 0 where their number is open.
        """
        return self

    def get_implied_settings(self) -> Mapping[str, Any]:
        """Settings of other pieces that follow from these, by name."""
        return {}

    def check(self, chosen: SelectedComponents) -> None:
        """Raise a `UsageError` for what does not fit the other pieces."""

    def to_values(self) -> dict[str, Any]:
        """Its settings, by name."""
        return {name: getattr(self, name) for name in get_declared_settings(type(self))}

    def to_dict(self) -> dict[str, Any]:
        """For config.json: its name and its settings."""
        listed = {name: list(value) if isinstance(value, tuple) else value for name, value in self.to_values().items()}
        return {"name": self.name, **listed}

    def check_types(self) -> None:
        """Raise a `UsageError` for the first value that is of another type."""
        kinds = get_type_hints(type(self))
        for name, value in self.to_values().items():
            check_setting(not isinstance(value, str) or is_storable_text(value), name, repr(value), "a text in UTF-8")
            check_setting(
                has_exact_type(value, kinds[name]),
                name,
                repr(value),
                TYPE_DESCRIPTIONS[get_origin(kinds[name]) or kinds[name]],
            )

    def check_values(self) -> None:
        """Raise a `UsageError` for the first value that is of another type, or not what it must be."""
        self.check_types()
        for name, declared in get_declared_settings(type(self)).items():
            declared.metadata["rule"].check(name, getattr(self, name))

    def __getstate__(self) -> Mapping[str, Any]:
        """What was computed and kept beside the fields is not copied or sent to other processes."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def get_declared_settings(piece: type[Settings]) -> dict[str, Field[Any]]:
    """The declared settings of a piece, by name; fields without words are no settings but parts."""
    return {f.name: f for f in fields(piece) if "words" in f.metadata}


TYPE_DESCRIPTIONS = {
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    str: "a text",
    tuple: "whole numbers",
}


def is_supported_type(kind: Any) -> bool:
    """Whether a setting can be of that type."""
    return (get_origin(kind) or kind) in TYPE_DESCRIPTIONS


def has_exact_type(value: object, kind: Any) -> bool:
    """Whether the value is of that type, to the letter: True is no number, and every whole number is a number."""
    if get_origin(kind) is tuple:
        return type(value) is tuple and all(has_exact_type(one, get_args(kind)[0]) for one in value)
    return type(value) in ((int, float) if kind is float else (kind,))


def parse_value(name: str, text: str, kind: Any) -> Any:
    """Return one value of that type from its words; a `UsageError` that names the setting if it is not one."""
    try:
        if get_origin(kind) is tuple:
            return tuple(get_args(kind)[0](one) for one in text.split())
        return {"True": True, "False": False}[text] if kind is bool else kind(text)
    except (ValueError, KeyError) as error:
        words = TYPE_DESCRIPTIONS[get_origin(kind) or kind]
        raise UsageError(f"{to_flag(name)} is {text!r}, but must be {words}") from error


def is_storable_text(text: str) -> bool:
    """Whether a text can stand in a file and name one: no bytes that are no UTF-8, and no NUL."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def check_setting(holds: bool, name: str, value: object, rule: str) -> None:
    """A `UsageError` that names the setting, its value and the rule, unless it holds."""
    if not holds:
        raise UsageError(f"{to_flag(name)} is {value}, but must be {rule}")


def to_flag(name: str) -> str:
    """What the command line calls a setting."""
    return f"--{name.replace('_', '-')}"


def format_option(name: str, value: Any) -> str:
    """A setting as the command line takes it."""
    if isinstance(value, bool):
        return to_flag(name if value else f"no_{name}")
    words = map(str, value) if isinstance(value, tuple) else [str(value)]
    return " ".join([to_flag(name), *map(shlex.quote, words)])


def check_known(name: str, kind: str, among: Iterable[str]) -> str:
    """`name`, if it is one of those that exist; else a `UsageError` that lists them and guesses what was meant."""
    names = list(among)
    if name in names:
        return name
    raise UsageError(f"unknown {kind} {name!r}{suggest_close_match(name, names)}: choose one of {', '.join(names)}")


def suggest_close_match(name: str, among: Iterable[str], spelled: Callable[[str], str] = str) -> str:
    """Which of them was meant, as words behind what was said; nothing where none is like it."""
    near = difflib.get_close_matches(str(name), sorted(among), 1)
    return f" (did you mean {spelled(near[0])}?)" if near else ""
