"""Search space of a sweep: the choices and ranges of `--vary`, and Optuna's distributions for them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from aggrevated.config.resolver import (
    OPTION_NAMES,
    apply_settings,
    list_component_types,
    raise_unused_setting,
    select_components,
)
from aggrevated.core.errors import UsageError
from aggrevated.core.settings import check_setting, get_declared_settings, parse_value, to_flag
from aggrevated.tasks import Task

FORMS = "NAME=LOW..HIGH, NAME=LOW..HIGH:log or NAME=a,b,c"
RANGE = re.compile(r"(?P<low>[^:,]+?)\.\.(?P<high>[^:,]+)(?P<log>:log)?(?::(?P<count>\d+))?")
DIGITS = 4  # significant digits of a sampled number


@dataclass(frozen=True)
class Variation:
    """A setting that varies, by choices or in a range.

    Args:
        name: Name of the setting.
        kind: Type of its values.
        text: Text of --vary after NAME=.
        choices: Choices as text; empty for a range.
        low: Lowest value of a range.
        high: Highest value of a range.
        log: Whether a range is sampled on a logarithmic scale.
        count: Points of a range in a grid; 0: not given.
    """

    name: str
    kind: Any
    text: str
    choices: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    count: int = 0

    @property
    def label(self) -> str:
        """Name of the setting in --vary, in tables and of Optuna's parameter."""
        return to_flag(self.name).removeprefix("--")

    @property
    def distribution(self) -> BaseDistribution:
        """Optuna's distribution of the parameter."""
        if self.choices:
            return CategoricalDistribution(self.choices)
        if self.kind is int:
            return IntDistribution(round(self.low), round(self.high), log=self.log)
        return FloatDistribution(self.low, self.high, log=self.log)

    @property
    def points(self) -> tuple[Any, ...]:
        """Parameters that a grid tries."""
        spaced = (np.geomspace if self.log else np.linspace)(self.low, self.high, self.count)
        return self.choices or tuple(dict.fromkeys(self.to_value(float(point)) for point in spaced))

    @property
    def ends(self) -> tuple[Any, ...]:
        """Parameters whose validity implies that of all others: the choices, or both ends of the range."""
        return self.choices or (self.low, self.high)

    def to_value(self, param: Any) -> Any:
        """Return the setting of a parameter; in a range it is rounded to few digits but stays in the range."""
        if self.choices:
            return parse_value(self.name, param, self.kind)
        rounded = round(param) if self.kind is int else float(f"{param:.{DIGITS}g}")
        return min(max(rounded, self.low), self.high)

    def __str__(self) -> str:
        return f"{self.label}={self.text}"


def parse_variations(arguments: Sequence[str], task: Task, method: str) -> tuple[Variation, ...]:
    """Parse all values of --vary; raise a `UsageError` for the first that is not possible."""
    variations = tuple(parse_variation(argument, task, method) for argument in arguments)
    names = [variation.name for variation in variations]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{to_flag(name)} is varied twice; give all its values in one --vary")
    return variations


def parse_variation(argument: str, task: Task, method: str) -> Variation:
    """Parse one value of --vary."""
    name, equals, text = argument.partition("=")
    name = name.removeprefix("--").replace("-", "_")
    if not (name and equals and text):
        raise UsageError(f"--vary is {argument!r}, but must be {FORMS}")
    kind = find_setting_type(name, task, method)
    if kind in (int, float) and ".." in text:
        return parse_range(name, text, kind)
    choices = [choice.strip() for choice in text.split(",")]
    fixed = f"; or fix it with {to_flag(name)} {text}" if all(choices) else ""
    has_several = len(choices) > 1 and all(choices)
    check_setting(has_several, name, repr(text), f"a range or at least two choices{fixed}")
    values = {parse_value(name, choice, kind) for choice in choices}
    check_setting(len(values) == len(choices), name, repr(text), "choices that differ")
    if kind is str:
        choices = [resolve_setting_path(task, name, choice) for choice in choices]
    return Variation(name, kind, ",".join(choices), tuple(choices))


def find_setting_type(name: str, task: Task, method: str) -> Any:
    """Return the type of a setting of the task; raise a `UsageError` if no run of the task has it."""
    if name in ("method", *OPTION_NAMES.values()):
        return str
    owners = [component for component in list_component_types(task) if name in get_declared_settings(component)]
    if not owners:
        raise_unused_setting(select_components(task, method, {}).config, name)
    return get_type_hints(owners[0])[name]


def parse_range(name: str, text: str, kind: type) -> Variation:
    """Parse a range LOW..HIGH[:log][:POINTS]."""
    match = RANGE.fullmatch(text)
    expected = "LOW..HIGH, LOW..HIGH:log or, for a grid, LOW..HIGH:log:POINTS"
    check_setting(match is not None, name, repr(text), expected)
    assert match is not None
    low, high = (parse_value(name, match[end], kind) for end in ("low", "high"))
    is_ordered = math.isfinite(low) and math.isfinite(high) and low < high
    check_setting(is_ordered, name, repr(text), "from a LOW to a higher HIGH")
    check_setting(low > 0 or not match["log"], name, repr(text), "above 0 for a range that is :log")
    count = int(match["count"] or 0)
    check_setting(match["count"] is None or count >= 2, name, repr(text), "of at least 2 points")
    return Variation(name, kind, text, low=low, high=high, log=bool(match["log"]), count=count)


def resolve_setting_path(task: Task, name: str, value: Any) -> Any:
    """Return the value, with absolute paths, since a sweep may be resumed from another folder."""
    if not isinstance(value, str) or name not in get_declared_settings(type(task.problem)):
        return value
    return apply_settings(task.problem, {name: value}).fill_defaults(1, ()).to_values()[name]
