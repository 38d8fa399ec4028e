"""What varies: choices and ranges, as `--vary` says them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np

from aggrevated.config.resolver import (
    OPTION_NAMES,
    apply_settings,
    default_config,
    list_component_types,
    raise_unused_setting,
)
from aggrevated.core.errors import UsageError
from aggrevated.core.settings import WORDS_OF_TYPES, check_setting, declared_settings, to_flag
from aggrevated.tasks import Task

FORMS = "NAME=LOW..HIGH, NAME=LOW..HIGH:log or NAME=a,b,c"
RANGE = re.compile(r"(?P<low>[^:,]+?)\.\.(?P<high>[^:,]+)(?P<log>:log)?(?::(?P<count>\d+))?")
DIGITS = 4  # of a number that a search comes up with: enough to tell it from others, few enough to copy


@dataclass(frozen=True)
class Choices:
    """One of these values."""

    name: str
    values: tuple[Any, ...]

    @property
    def points(self) -> tuple[Any, ...]:
        """What a grid tries."""
        return self.values

    @property
    def ends(self) -> tuple[Any, ...]:
        """Where all of them are in order if these are."""
        return self.values

    def __str__(self) -> str:
        return f"{to_flag_name(self.name)}={','.join(map(format_value, self.values))}"


@dataclass(frozen=True)
class Range:
    """A number from low to high; `log`: as many below the geometric mean as above it."""

    name: str
    low: float
    high: float
    whole: bool = False
    log: bool = False
    count: int = 0  # the points of a grid; 0: none were given

    @property
    def points(self) -> tuple[float, ...]:
        """What a grid tries."""
        spaced = (np.geomspace if self.log else np.linspace)(self.low, self.high, self.count)
        return tuple(dict.fromkeys(self.tidy(float(value)) for value in spaced))

    @property
    def ends(self) -> tuple[float, ...]:
        """Where all of them are in order if these are."""
        return self.low, self.high

    def tidy(self, value: float) -> float:
        """The number with few digits, which can be copied from a table; never outside of the range."""
        if self.whole:
            return round(value)
        places = DIGITS - math.floor(math.log10(self.high - self.low))
        short = float(f"{value:.{DIGITS}g}") if self.log else round(value, places)
        return min(max(short, self.low), self.high)

    def __str__(self) -> str:
        points = f":{self.count}" if self.count else ""
        ends = f"{format_value(self.low)}..{format_value(self.high)}"
        return f"{to_flag_name(self.name)}={ends}{':log' if self.log else ''}{points}"


Variation: TypeAlias = Choices | Range


def parse_variations(words: Sequence[str], task: Task, method: str) -> tuple[Variation, ...]:
    """What each of the words says; a `UsageError` for the first that says nothing that can be."""
    found = tuple(parse_variation(word, task, method) for word in words)
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{to_flag(name)} is varied twice; say all its values in one --vary")
    return found


def parse_variation(word: str, task: Task, method: str) -> Variation:
    """One --vary."""
    name, equals, text = word.partition("=")
    name = name.removeprefix("--").replace("-", "_")
    if not (name and equals and text):
        raise UsageError(f"--vary is {word!r}, but must be {FORMS}")
    kind = setting_type(name, task, method)
    if kind in (int, float) and ".." in text:
        return parse_range(name, text, kind)
    found = parse_choices(name, text, kind)
    return Choices(name, tuple(with_absolute_path(task, name, one) for one in found.values))


def setting_type(name: str, task: Task, method: str) -> Any:
    """The type of a setting that a run of the task can have, or a `UsageError`."""
    if name in ("method", *OPTION_NAMES.values()):
        return str
    owners = [piece for piece in list_component_types(task) if name in declared_settings(piece)]
    if not owners:
        raise_unused_setting(default_config(task, method, {}), name)
    return get_type_hints(owners[0])[name]


def parse_range(name: str, text: str, kind: type) -> Range:
    """LOW..HIGH[:log][:POINTS]."""
    match = RANGE.fullmatch(text)
    check_setting(match is not None, name, repr(text), "LOW..HIGH, LOW..HIGH:log or, for a grid, LOW..HIGH:log:POINTS")
    assert match is not None
    low, high = (parse_value(name, match[end], kind) for end in ("low", "high"))
    check_setting(
        math.isfinite(low) and math.isfinite(high) and low < high, name, repr(text), "from a LOW to a higher HIGH"
    )
    check_setting(low > 0 or not match["log"], name, repr(text), "above 0 for a range that is :log")
    check_setting(match["count"] is None or int(match["count"]) >= 2, name, repr(text), "of at least 2 points")
    return Range(name, low, high, kind is int, bool(match["log"]), int(match["count"] or 0))


def parse_choices(name: str, text: str, kind: Any) -> Choices:
    """a,b,c."""
    words = [one.strip() for one in text.split(",")]
    fixed = f"; or fix it with {to_flag(name)} {text}" if all(words) else ""
    check_setting(len(words) > 1 and all(words), name, repr(text), f"a range or at least two choices{fixed}")
    values = [parse_value(name, one, kind) for one in words]
    check_setting(len(set(values)) == len(values), name, repr(text), "choices that differ")
    return Choices(name, tuple(values))


def parse_value(name: str, text: str, kind: Any) -> Any:
    """One value of that type, from its words."""
    words = WORDS_OF_TYPES[get_origin(kind) or kind]
    try:
        if get_origin(kind) is tuple:
            return tuple(get_args(kind)[0](one) for one in text.split())
        return {"True": True, "False": False}[text] if kind is bool else kind(text)
    except (ValueError, KeyError) as error:
        raise UsageError(f"{to_flag(name)} is {text!r}, but must be {words}") from error


def with_absolute_path(task: Task, name: str, value: Any) -> Any:
    """The same, but a file or folder of the task's world with its whole path: a sweep may go on somewhere else."""
    if not isinstance(value, str) or name not in declared_settings(type(task.problem)):
        return value
    return apply_settings(task.problem, {name: value}).fill_defaults(1, ()).to_values()[name]


def format_value(value: Any) -> str:
    """A value as it is said on the command line."""
    return " ".join(map(format_value, value)) if isinstance(value, tuple | list) else str(value)


def to_flag_name(name: str) -> str:
    """A setting's name as --vary has it."""
    return to_flag(name).removeprefix("--")
