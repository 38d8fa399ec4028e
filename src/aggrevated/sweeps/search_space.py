"""What varies: choices and ranges, as `--vary` gives them and as Optuna takes them."""

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
DIGITS = 4  # of a sampled number: enough to tell it from others, few enough to copy


@dataclass(frozen=True)
class Variation:
    """A setting that varies: by choices, which are words to Optuna, or from a low number to a high one."""

    name: str
    kind: Any  # the type of its values
    text: str  # as --vary has it
    choices: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    count: int = 0  # the points of a range in a grid; 0: none were given

    @property
    def label(self) -> str:
        """The name that --vary, tables and Optuna's parameters have."""
        return to_flag(self.name).removeprefix("--")

    @property
    def distribution(self) -> BaseDistribution:
        """Optuna's distribution of its parameter."""
        if self.choices:
            return CategoricalDistribution(self.choices)
        if self.kind is int:
            return IntDistribution(round(self.low), round(self.high), log=self.log)
        return FloatDistribution(self.low, self.high, log=self.log)

    @property
    def points(self) -> tuple[Any, ...]:
        """The parameters that a grid tries."""
        spaced = (np.geomspace if self.log else np.linspace)(self.low, self.high, self.count)
        return self.choices or tuple(dict.fromkeys(self.to_value(float(one)) for one in spaced))

    @property
    def ends(self) -> tuple[Any, ...]:
        """Parameters that are valid only if all are."""
        return self.choices or (self.low, self.high)

    def to_value(self, param: Any) -> Any:
        """Return the setting that a parameter stands for; of a range with few digits, never outside of it."""
        if self.choices:
            return parse_value(self.name, param, self.kind)
        short = round(param) if self.kind is int else float(f"{param:.{DIGITS}g}")
        return min(max(short, self.low), self.high)

    def __str__(self) -> str:
        return f"{self.label}={self.text}"


def parse_variations(words: Sequence[str], task: Task, method: str) -> tuple[Variation, ...]:
    """Return what each --vary says; a `UsageError` for the first that is not possible."""
    found = tuple(parse_variation(word, task, method) for word in words)
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{to_flag(name)} is varied twice; say all its values in one --vary")
    return found


def parse_variation(word: str, task: Task, method: str) -> Variation:
    """Return what one --vary says."""
    name, equals, text = word.partition("=")
    name = name.removeprefix("--").replace("-", "_")
    if not (name and equals and text):
        raise UsageError(f"--vary is {word!r}, but must be {FORMS}")
    kind = find_setting_type(name, task, method)
    if kind in (int, float) and ".." in text:
        return parse_range(name, text, kind)
    choices = [one.strip() for one in text.split(",")]
    fixed = f"; or fix it with {to_flag(name)} {text}" if all(choices) else ""
    several = len(choices) > 1 and all(choices)
    check_setting(several, name, repr(text), f"a range or at least two choices{fixed}")
    values = {parse_value(name, one, kind) for one in choices}
    check_setting(len(values) == len(choices), name, repr(text), "choices that differ")
    if kind is str:
        choices = [resolve_setting_path(task, name, one) for one in choices]
    return Variation(name, kind, ",".join(choices), tuple(choices))


def find_setting_type(name: str, task: Task, method: str) -> Any:
    """Return the type of a setting that a run of the task can have; a `UsageError` if it can have none."""
    if name in ("method", *OPTION_NAMES.values()):
        return str
    owners = [piece for piece in list_component_types(task) if name in get_declared_settings(piece)]
    if not owners:
        raise_unused_setting(select_components(task, method, {}).config, name)
    return get_type_hints(owners[0])[name]


def parse_range(name: str, text: str, kind: type) -> Variation:
    """Return the range that LOW..HIGH[:log][:POINTS] says."""
    match = RANGE.fullmatch(text)
    form = "LOW..HIGH, LOW..HIGH:log or, for a grid, LOW..HIGH:log:POINTS"
    check_setting(match is not None, name, repr(text), form)
    assert match is not None
    low, high = (parse_value(name, match[end], kind) for end in ("low", "high"))
    ordered = math.isfinite(low) and math.isfinite(high) and low < high
    check_setting(ordered, name, repr(text), "from a LOW to a higher HIGH")
    check_setting(low > 0 or not match["log"], name, repr(text), "above 0 for a range that is :log")
    count = int(match["count"] or 0)
    check_setting(match["count"] is None or count >= 2, name, repr(text), "of at least 2 points")
    return Variation(name, kind, text, low=low, high=high, log=bool(match["log"]), count=count)


def resolve_setting_path(task: Task, name: str, value: Any) -> Any:
    """Return the value; of a path of the task's problem the whole one, for a sweep may go on elsewhere."""
    if not isinstance(value, str) or name not in get_declared_settings(type(task.problem)):
        return value
    return apply_settings(task.problem, {name: value}).fill_defaults(1, ()).to_values()[name]
