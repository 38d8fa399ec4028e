"""Settings of components: dataclass fields that declare type, default, help text and rule of each setting.

Command-line options, `config.json`, the checks of effects and the tables of the docs are derived from these
fields.
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
    """Condition on a value: a predicate and its description."""

    predicate: Callable[[Any], bool]
    description: str

    def check(self, name: str, value: object) -> None:
        """Raise a `UsageError` with the setting and its value unless the value fulfills the rule."""
        check_setting(self.predicate(value), name, value, self.description)


MAX_COUNT = 1_000_000  # largest count unless a rule says otherwise, so that arrays and sums stay feasible
MAX_LAYER_WIDTH = 100_000
MAX_LAYER_WEIGHTS = 100_000_000  # between two layers


def at_least(minimum: int, maximum: int = MAX_COUNT) -> Rule:
    """Return the rule that a count is at least `minimum`.

    Args:
        minimum: least allowed value.
        maximum: largest allowed value.

    Returns:
        A rule for `setting`.

    Example:
        >>> at_least(1).description
        'at least 1, and at most 1,000,000'
    """
    return Rule(lambda value: minimum <= value <= maximum, f"at least {minimum}, and at most {maximum:,}")


def between(minimum: float, maximum: float) -> Rule:
    """Return the rule that a number is in a closed interval.

    Args:
        minimum: least allowed value.
        maximum: largest allowed value.

    Returns:
        A rule for `setting`.

    Example:
        >>> between(0, 1).predicate(0.5)
        True
    """
    return Rule(lambda value: minimum <= value <= maximum, f"between {minimum} and {maximum}")


def one_of(names: Iterable[str]) -> Rule:
    """Return the rule that a text is one of some names.

    Args:
        names: allowed values.

    Returns:
        A rule for `setting`.

    Example:
        >>> one_of(["relu", "tanh"]).description
        'one of relu, tanh'
    """
    allowed = list(names)
    return Rule(lambda value: value in allowed, f"one of {', '.join(allowed)}")


ANY_VALUE = Rule(lambda value: True, "anything")
NON_NEGATIVE = Rule(lambda value: 0 <= value < float("inf"), "0 or more")
POSITIVE = Rule(lambda value: 0 < value < float("inf"), "a positive number")
UNIT_INTERVAL = between(0, 1)
BELOW_1 = Rule(lambda value: 0 <= value < 1, "0 or more, and below 1")
COUNT = Rule(lambda value: 0 <= value <= MAX_COUNT, f"0 or more, and at most {MAX_COUNT:,}")
SEED = Rule(lambda value: 0 <= value < 2**63, "0 or more, and below 2^63")
TRIALS = at_least(1, 10_000)  # trials of a task, or their workers
LAYER_WIDTHS = Rule(
    lambda value: (
        all(1 <= width <= MAX_LAYER_WIDTH for width in value)
        and all(a * b <= MAX_LAYER_WEIGHTS for a, b in itertools.pairwise(value))
    ),
    f"widths of at least 1 and at most {MAX_LAYER_WIDTH:,}, with at most {MAX_LAYER_WEIGHTS:,} weights between two",
)


def check_recurrent_width(hidden: tuple[int, ...], policy: str) -> None:
    """Raise a `UsageError` unless `hidden` is one width with at most MAX_LAYER_WEIGHTS weights of 4 gates."""
    maximum = math.isqrt(MAX_LAYER_WEIGHTS // 4)
    rule = f"one width for the policy {policy}, of at most {maximum:,}"
    check_setting(len(hidden) == 1 and hidden[0] <= maximum, "hidden", hidden, rule)


def setting(default: T, description: str, rule: Rule = ANY_VALUE) -> T:
    """Declare a field of a settings class.

    Args:
        default: default value.
        description: help text of the option, one sentence with the unit.
        rule: condition that values must fulfill.

    Returns:
        A dataclass field with this default.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class MySettings(Settings):
        ...     name = "mine"
        ...     steps: int = setting(10, "Number of gradient steps.", at_least(1))
        >>> MySettings(steps=20).to_dict()
        {'name': 'mine', 'steps': 20}
    """
    return field(default=default, metadata={"words": description, "rule": rule})


class SelectedComponents(Protocol):
    """Components of one run, as their `check` methods see them."""

    @property
    def has_discrete_actions(self) -> bool:
        """Return whether actions are discrete; otherwise they are vectors."""
        ...

    @property
    def problem(self) -> Settings:
        """Return the settings of the problem."""
        ...

    @property
    def policy(self) -> Settings:
        """Return the settings of the policy."""
        ...

    @property
    def oracle(self) -> Settings:
        """Return the settings of the oracle."""
        ...

    @property
    def reinforcement(self) -> Settings:
        """Return the settings of the reinforcement that follows imitation."""
        ...

    @property
    def loss(self) -> Settings:
        """Return the settings of the loss."""
        ...

    @property
    def update(self) -> Settings:
        """Return the settings of the update."""
        ...

    @property
    def start(self) -> Settings:
        """Return the settings of the start of the policy."""
        ...


@dataclass(frozen=True)
class Settings:
    """Base class of the settings of a component: a name to select it by, and a method that builds it."""

    name: ClassVar[str] = ""

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        """Return the settings with defaults that depend on other settings filled in.

        Args:
            iterations: number of iterations of the run, 0 if not limited.
            given: names of the settings that the user has set, which stay.

        Returns:
            Settings that are complete.
        """
        return self

    def get_implied_settings(self) -> Mapping[str, Any]:
        """Return settings of other components that follow from these, by name."""
        return {}

    def list_unused_settings(self, chosen: SelectedComponents) -> Mapping[str, str]:
        """Return the settings without effect on this run: by name, what they have no effect on, and the remedy.

        Args:
            chosen: all components of the run, with all their settings.
        """
        return {}

    def check(self, chosen: SelectedComponents) -> None:
        """Check that the settings fit the other components.

        Args:
            chosen: all components of the run.

        Raises:
            UsageError: the settings do not fit.
        """

    def to_values(self) -> dict[str, Any]:
        """Return the values of the settings by name."""
        return {name: getattr(self, name) for name in get_declared_settings(type(self))}

    def to_dict(self) -> dict[str, Any]:
        """Return name and settings for config.json."""
        listed = {name: list(value) if isinstance(value, tuple) else value for name, value in self.to_values().items()}
        return {"name": self.name, **listed}

    def check_types(self) -> None:
        """Check the types of all values.

        Raises:
            UsageError: a value has another type than declared.
        """
        types = get_type_hints(type(self))
        for name, value in self.to_values().items():
            check_setting(not isinstance(value, str) or is_storable_text(value), name, repr(value), "a text in UTF-8")
            check_setting(
                has_exact_type(value, types[name]),
                name,
                repr(value),
                TYPE_DESCRIPTIONS[get_origin(types[name]) or types[name]],
            )

    def check_values(self) -> None:
        """Check types and rules of all values.

        Raises:
            UsageError: a value has another type than declared, or breaks its rule.
        """
        self.check_types()
        for name, declared in get_declared_settings(type(self)).items():
            declared.metadata["rule"].check(name, getattr(self, name))

    def __getstate__(self) -> Mapping[str, Any]:
        """Return the fields only: cached values are not copied or sent to other processes."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def get_declared_settings(component: type[Settings]) -> dict[str, Field[Any]]:
    """Return the fields that are settings, by name; other fields lack a description."""
    return {f.name: f for f in fields(component) if "words" in f.metadata}


TYPE_DESCRIPTIONS = {
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    str: "a text",
    tuple: "whole numbers",
}


def is_supported_type(kind: Any) -> bool:
    """Return whether a setting can have that type."""
    return (get_origin(kind) or kind) in TYPE_DESCRIPTIONS


def has_exact_type(value: object, kind: Any) -> bool:
    """Return whether a value has that type; a bool is not a number, but an int is a float."""
    if get_origin(kind) is tuple:
        return type(value) is tuple and all(has_exact_type(entry, get_args(kind)[0]) for entry in value)
    return type(value) in ((int, float) if kind is float else (kind,))


def parse_value(name: str, text: str, kind: Any) -> Any:
    """Parse the text of one value, or raise a `UsageError` with the setting's name."""
    try:
        if get_origin(kind) is tuple:
            return tuple(get_args(kind)[0](entry) for entry in text.split())
        return {"True": True, "False": False}[text] if kind is bool else kind(text)
    except (ValueError, KeyError) as error:
        description = TYPE_DESCRIPTIONS[get_origin(kind) or kind]
        raise UsageError(f"{to_flag(name)} is {text!r}, but must be {description}") from error


def is_storable_text(text: str) -> bool:
    """Return whether a text can be stored in files and file names: valid UTF-8 without NUL."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def check_setting(holds: bool, name: str, value: object, rule: str) -> None:
    """Check one setting.

    Args:
        holds: whether the value fulfills the rule.
        name: name of the setting.
        value: value in the message.
        rule: description of the rule.

    Raises:
        UsageError: `holds` is false.

    Example:
        >>> check_setting(False, "batch_size", 0, "at least 1")
        Traceback (most recent call last):
        ...
        aggrevated.core.errors.UsageError: --batch-size is 0, but must be at least 1
    """
    if not holds:
        raise UsageError(f"{to_flag(name)} is {value}, but must be {rule}")


def to_flag(name: str) -> str:
    """Return the command-line flag of a setting.

    Args:
        name: name of the setting.

    Returns:
        The flag, with dashes.

    Example:
        >>> to_flag("alpha_start")
        '--alpha-start'
    """
    return f"--{name.replace('_', '-')}"


def format_option(name: str, value: Any) -> str:
    """Return a setting as command-line arguments."""
    if isinstance(value, bool):
        return to_flag(name if value else f"no_{name}")
    arguments = map(str, value) if isinstance(value, tuple) else [str(value)]
    return " ".join([to_flag(name), *map(shlex.quote, arguments)])


def check_known(name: str, kind: str, among: Iterable[str]) -> str:
    """Return `name` if it is known; otherwise raise a `UsageError` with all names and the closest match."""
    names = list(among)
    if name in names:
        return name
    raise UsageError(f"unknown {kind} {name!r}{suggest_close_match(name, names)}: choose one of {', '.join(names)}")


def suggest_close_match(name: str, among: Iterable[str], format_name: Callable[[str], str] = str) -> str:
    """Return " (did you mean …?)" with the closest match, or an empty text if none is close."""
    matches = difflib.get_close_matches(str(name), sorted(among), 1)
    return f" (did you mean {format_name(matches[0])}?)" if matches else ""
