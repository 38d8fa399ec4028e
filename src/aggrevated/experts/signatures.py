"""Methods and functions of others, asked about our states in the form that they take: told by their parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError, UserCodeError
from aggrevated.core.user_code import call_user_code
from aggrevated.experts.environment_view import EnvironmentView


class InputKind(Enum):
    """What a method takes first."""

    STATES = "a batch of our states, [n, ...]"
    OBSERVATIONS = "a batch of the environment's observations, [n, ...]"
    OBSERVATION = "one observation of the environment"


INPUT_KIND_BY_NAME = {
    "states": InputKind.STATES,
    "observations": InputKind.OBSERVATIONS,
    "observation": InputKind.OBSERVATION,
    "obs": InputKind.OBSERVATION,
}
OPAQUE_STATES_REMEDY = (
    "which is given states that only the simulator can read; to get what the environment shows, call its parameter "
    "observation, for one, or observations"
)
TIME_PARAMETER_NAMES = ("t", "time")
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class ParameterList:
    """The parameters of a function that are given by their place."""

    names: tuple[str, ...]
    required: int

    @property
    def input_kind(self) -> InputKind | None:
        """By the first one's name; None where that says nothing."""
        return INPUT_KIND_BY_NAME.get(self.names[0]) if self.names else None

    @property
    def has_time_parameter(self) -> bool:
        """Whether the second one is the time."""
        return self.required > 1 or (len(self.names) > 1 and self.names[1] in TIME_PARAMETER_NAMES)


def read_parameters(function: Callable[..., Any], called: str) -> ParameterList:
    """What it takes; a `UsageError` where nobody can tell."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"nobody can see what {called} takes ({error}); write a function of (observation) or (states, t) around it"
        ) from error
    placed = [parameter for parameter in found if parameter.kind in POSITIONAL]
    names = tuple(parameter.name for parameter in placed)
    required = sum(parameter.default is parameter.empty for parameter in placed)
    named = [p.name for p in found if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if named:
        raise UsageError(f"{called} needs {named[0]} by its name; give it a default")
    if not placed and any(parameter.kind is parameter.VAR_POSITIONAL for parameter in found):
        return ParameterList(("states", "t"), 2)  # whatever it is given: as our own experts are asked
    return ParameterList(names, required)


@dataclass(frozen=True)
class UserMethod:
    """A method: `asked(states, more)` gives what it answers, an array [n, ...] or a list of n.

    `more` are second arguments, one for each state.
    """

    part: str
    method: str
    call: Callable[..., Any]
    input_kind: InputKind
    native: EnvironmentView

    def __call__(self, states: Array, more: Sequence[Any] | Array | int | None = None) -> Any:
        if self.input_kind is InputKind.OBSERVATION:
            return self._call_one_by_one(states, more)
        shown = states if self.input_kind is InputKind.STATES else self.native.batch(states)
        arguments = (shown,) if more is None else (shown, more)
        try:
            return call_user_code(self.part, self.method, partial(self.call, *arguments), len(states))
        except UserCodeError as error:
            if self.input_kind is not InputKind.STATES or states.dtype != object:
                raise
            raise UserCodeError(
                self.part, error.what, f"{error.remedy}, {OPAQUE_STATES_REMEDY}", error.row
            ) from error.__cause__

    def _call_one_by_one(self, states: Array, more: Sequence[Any] | Array | int | None) -> list[Any]:
        seconds = [more] * len(states) if more is None or isinstance(more, int) else more
        answers = []
        for row, (shown, second) in enumerate(zip(self.native.observations(states), seconds, strict=True)):
            arguments = (shown,) if more is None else (shown, second)
            try:
                answers.append(call_user_code(self.part, self.method, partial(self.call, *arguments)))
            except UserCodeError as error:
                raise error.add_position(row=row) from error.__cause__
        return answers


@dataclass(frozen=True)
class ActMethod:
    """π*(s): `act(states, t)`, of a method that takes what it likes."""

    asked: UserMethod
    timed: bool

    def __call__(self, states: Array, t: int) -> Any:
        given = self.asked(states, t if self.timed else None)
        if self.asked.input_kind is InputKind.STATES:
            return given
        return self.asked.native.ours(self.asked.part, split_rows(given, len(states), self.asked.part))


@dataclass(frozen=True)
class CostMethod:
    """Q*(s, ·) or V*(s): `q(states)` or `v(states)`."""

    asked: UserMethod

    def __call__(self, states: Array) -> Any:
        return self.asked(states)


@dataclass(frozen=True)
class StateActionCostMethod:
    """Q*(s, a): `q_of(states, actions)`."""

    asked: UserMethod

    def __call__(self, states: Array, actions: Array) -> Any:
        if self.asked.input_kind is InputKind.STATES:
            return self.asked(states, actions)
        taken = self.asked.native.taken(actions)
        return self.asked(states, taken if self.asked.input_kind is InputKind.OBSERVATION else np.stack(taken))


def split_rows(given: Any, n: int, part: str) -> Sequence[Any]:
    """The n answers in what was given at once."""
    if not hasattr(given, "__len__") or len(given) != n:
        said = f"shape {np.shape(given)}" if isinstance(given, np.ndarray) else f"type {type(given).__name__}"
        raise UserCodeError(part, f"gave actions of {said} for {n} observations", "give one for each: mend its act")
    return list(given)
