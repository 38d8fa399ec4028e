"""Adaptation of user objects and functions to experts, by the methods that they have."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from gymnasium.spaces import Discrete

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError
from aggrevated.core.user_code import check_finite, check_numeric_array
from aggrevated.experts import Expert, StateActionQExpert, get_discount
from aggrevated.experts.checked import WEIGHTS_REMEDY, query_q_per_action
from aggrevated.experts.environment_view import EnvironmentView
from aggrevated.experts.signatures import (
    ActMethod,
    CostMethod,
    InputKind,
    StateActionCostMethod,
    UserMethod,
    read_parameters,
)
from aggrevated.simulators import Simulator

CAPABILITIES = ("act", "q", "q_of", "v")


class AdaptedExpert:
    """An expert around a user's object: `act`, and `q`, `q_of` or `v` if the object has them."""

    act: Callable[[Array, int], Array]

    def __init__(self, name: str, discount: float, **methods: Callable[..., Any]) -> None:
        self.name = name
        self.discount = discount
        vars(self).update(methods)


class GreedyFromQ:
    """The `act` of an expert without one: the action of least cost."""

    def __init__(self, costs: Callable[[Array], Any], part: str, count: int) -> None:
        self.costs = costs
        self.part = part
        self.count = count

    def __call__(self, states: Array, t: int) -> Array:
        shape = (len(states), self.count)
        costs = check_numeric_array(self.part, "costs-to-go", self.costs(states), shape, "fix its q")
        actions: Array = np.argmin(check_finite(self.part, "costs-to-go", costs, WEIGHTS_REMEDY), axis=1)
        return actions


class PerActionQ:
    """Q* of every discrete action, from a `q_of`."""

    def __init__(self, expert: StateActionQExpert, count: int) -> None:
        self.expert = expert
        self.count = count

    def __call__(self, states: Array) -> Array:
        return query_q_per_action(self.expert, states, self.count)


def adapt_object(candidate: Any, simulator: Simulator, name: str, renamed: bool) -> Expert:
    """Return an object with some of `CAPABILITIES` as an expert, unchanged if it is one already."""
    methods: dict[str, Callable[..., Any]] = {}
    for method_name in CAPABILITIES:
        if has_method(candidate, method_name):
            capability, method = adapt_method(method_name, getattr(candidate, method_name), simulator, name)
            methods.setdefault(capability, method)
    space = simulator.action_space
    if "q" in methods and not isinstance(space, Discrete):
        raise UsageError(
            f"the expert {name} has q(states) of all actions, and {simulator.name} has infinitely many; give it "
            "q(states, actions)"
        )
    expert = AdaptedExpert(name, get_discount(candidate), **methods)
    if "act" not in methods:
        expert.act = make_greedy_act(expert, methods, space, name)
    elif (
        not renamed
        and get_name(candidate)
        and all(is_native_signature(m) for m in methods.values())
        and is_complete(candidate, methods)
    ):
        return cast(Expert, candidate)
    for attribute in ("networks", "description"):
        if hasattr(candidate, attribute):
            setattr(expert, attribute, getattr(candidate, attribute))
    return expert


def adapt_method(method_name: str, method: Callable[..., Any], simulator: Simulator, name: str) -> tuple[str, Any]:
    """Return the capability of a method, which depends on its parameters, and the adapted method."""
    if method_name == "act":
        return method_name, adapt_act(method, simulator, name)
    parameters = read_parameters(method, f"the {method_name} of {name}")
    part = f"the expert {name}"
    accepted = {"q": (1, 2), "q_of": (2,), "v": (1,)}[method_name]
    if parameters.required not in accepted:
        shape = {"q": "q(states) or q(states, actions)", "q_of": "q_of(states, actions)", "v": "v(states)"}[method_name]
        raise UsageError(f"the {method_name} of {name} needs {parameters.required} arguments; define it as {shape}")
    input_kind = parameters.input_kind or InputKind.STATES
    user_method = UserMethod(part, method_name, method, input_kind, EnvironmentView(simulator))
    if parameters.required == 2:
        return "q_of", StateActionCostMethod(user_method)
    return method_name, CostMethod(user_method)


def adapt_act(function: Callable[..., Any], simulator: Simulator, name: str) -> ActMethod:
    """Adapt a function of one observation, or of (states, t) or (observation, t), to `act(states, t)`."""
    parameters = read_parameters(function, name)
    if not parameters.names or parameters.required > 2:
        raise UsageError(
            f"{name} needs {parameters.required} arguments; pass a function of (observation) or (states, t)"
        )
    default = InputKind.STATES if parameters.has_time_parameter else InputKind.OBSERVATION
    input_kind = parameters.input_kind or default
    user_method = UserMethod(f"the expert {name}", "act", function, input_kind, EnvironmentView(simulator))
    return ActMethod(user_method, parameters.has_time_parameter)


def is_native_signature(method: Any) -> bool:
    """Return whether the user's method has the name and arguments of the protocols in `aggrevated.experts`."""
    user_method: UserMethod = method.user_method
    if user_method.input_kind is not InputKind.STATES:
        return False
    if isinstance(method, ActMethod):
        return method.takes_time
    return user_method.method == "q_of" if isinstance(method, StateActionCostMethod) else True


def is_complete(candidate: Any, methods: dict[str, Any]) -> bool:
    """Return whether an object has the attributes that its methods need: a critic needs a `discount`."""
    return "v" not in methods or hasattr(candidate, "discount")


def make_greedy_act(expert: Any, methods: dict[str, Any], space: Any, name: str) -> Callable[[Array, int], Array]:
    """Return an `act` that minimizes the costs of `q` or `q_of`."""
    part = f"the expert {name}"
    if "q" in methods:
        return GreedyFromQ(methods["q"], part, int(space.n))
    if "q_of" in methods and isinstance(space, Discrete):
        return GreedyFromQ(PerActionQ(expert, int(space.n)), part, int(space.n))
    raise UsageError(f"the expert {name} has {' and '.join(methods)}, but no act(states, t); define one")


def has_method(candidate: Any, method: str) -> bool:
    """Return whether an object has a method of that name; submodules of an `nn.Module` do not count."""
    return callable(getattr(type(candidate) if is_module(candidate) else candidate, method, None))


def is_module(candidate: Any) -> bool:
    """Return whether an object is an `nn.Module`; False if torch was not imported."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(candidate, torch.nn.Module)


def get_name(candidate: Any) -> str:
    """Return an object's attribute `name`, or "" if it has none."""
    name = getattr(candidate, "name", None)
    return name if isinstance(name, str) and not inspect.isclass(candidate) else ""
