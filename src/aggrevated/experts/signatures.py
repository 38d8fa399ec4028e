"""User methods as functions of states: the names of their parameters decide which inputs they receive."""

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
    """The first argument of a user method."""

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
    "which receives states that only the simulator can read; to receive the environment's observations, name its "
    "parameter observation (one at a time) or observations (a batch)"
)
TIME_PARAMETER_NAMES = ("t", "time")
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class ParameterList:
    """The positional parameters of a function, and how many of them are required."""

    names: tuple[str, ...]
    required: int

    @property
    def input_kind(self) -> InputKind | None:
        """Return the kind of input that the first parameter's name asks for; None for other names."""
        return INPUT_KIND_BY_NAME.get(self.names[0]) if self.names else None

    @property
    def has_time_parameter(self) -> bool:
        """Return whether the second parameter is the time step."""
        return self.required > 1 or (len(self.names) > 1 and self.names[1] in TIME_PARAMETER_NAMES)


def read_parameters(function: Callable[..., Any], name: str) -> ParameterList:
    """Return the positional parameters of a function, or raise a `UsageError` if they cannot be inspected."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"cannot inspect the signature of {name} ({error}); wrap it in a function of (observation) or (states, t)"
        ) from error
    positional = [parameter for parameter in parameters if parameter.kind in POSITIONAL]
    names = tuple(parameter.name for parameter in positional)
    required = sum(parameter.default is parameter.empty for parameter in positional)
    required_keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if required_keywords:
        raise UsageError(f"{name} needs the keyword argument {required_keywords[0]}; give it a default")
    if not positional and any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return ParameterList(("states", "t"), 2)  # a function of *args is called as the protocols say
    return ParameterList(names, required)


@dataclass(frozen=True)
class UserMethod:
    """A user method as a function of states that returns an array [n, ...] or a list of n results.

    The optional `second` argument is one value for all states, or one for each state.
    """

    part: str
    method: str
    call: Callable[..., Any]
    input_kind: InputKind
    environment: EnvironmentView

    def __call__(self, states: Array, second: Sequence[Any] | Array | int | None = None) -> Any:
        if self.input_kind is InputKind.OBSERVATION:
            return self._call_one_by_one(states, second)
        inputs = states if self.input_kind is InputKind.STATES else self.environment.batch(states)
        arguments = (inputs,) if second is None else (inputs, second)
        try:
            return call_user_code(self.part, self.method, partial(self.call, *arguments), len(states))
        except UserCodeError as error:
            if self.input_kind is not InputKind.STATES or states.dtype != object:
                raise
            raise UserCodeError(
                self.part, error.what, f"{error.remedy}, {OPAQUE_STATES_REMEDY}", error.row
            ) from error.__cause__

    def _call_one_by_one(self, states: Array, second: Sequence[Any] | Array | int | None) -> list[Any]:
        seconds = [second] * len(states) if second is None or isinstance(second, int) else second
        results = []
        observations = self.environment.observations(states)
        for row, (observation, other) in enumerate(zip(observations, seconds, strict=True)):
            arguments = (observation,) if second is None else (observation, other)
            try:
                results.append(call_user_code(self.part, self.method, partial(self.call, *arguments)))
            except UserCodeError as error:
                raise error.add_position(row=row) from error.__cause__
        return results


@dataclass(frozen=True)
class ActMethod:
    """π*(s): `act(states, t)` of a user method."""

    user_method: UserMethod
    takes_time: bool

    def __call__(self, states: Array, t: int) -> Any:
        method = self.user_method
        actions = method(states, t if self.takes_time else None)
        if method.input_kind is InputKind.STATES:
            return actions
        return method.environment.to_simulator_actions(method.part, split_rows(actions, len(states), method.part))


@dataclass(frozen=True)
class CostMethod:
    """Q*(s, ·) or V*(s): `q(states)` or `v(states)` of a user method."""

    user_method: UserMethod

    def __call__(self, states: Array) -> Any:
        return self.user_method(states)


@dataclass(frozen=True)
class StateActionCostMethod:
    """Q*(s, a): `q_of(states, actions)` of a user method."""

    user_method: UserMethod

    def __call__(self, states: Array, actions: Array) -> Any:
        method = self.user_method
        if method.input_kind is InputKind.STATES:
            return method(states, actions)
        native = method.environment.to_native_actions(actions)
        return method(states, native if method.input_kind is InputKind.OBSERVATION else np.stack(native))


def split_rows(actions: Any, n: int, part: str) -> Sequence[Any]:
    """Return the n actions of a batch as a list."""
    if not hasattr(actions, "__len__") or len(actions) != n:
        kind = f"shape {np.shape(actions)}" if isinstance(actions, np.ndarray) else f"type {type(actions).__name__}"
        raise UserCodeError(part, f"gave actions of {kind} for {n} observations", "return one for each: fix its act")
    return list(actions)
