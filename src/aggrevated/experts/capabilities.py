"""Objects and functions of others on the rungs of the ladder: which they stand on is told by their methods."""

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
from aggrevated.experts.checked import CHECK, query_q_per_action
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
    """An expert with `act`, and with those of `q`, `q_of` and `v` that were found: no method that cannot answer."""

    act: Callable[[Array, int], Array]

    def __init__(self, name: str, discount: float, **methods: Callable[..., Any]) -> None:
        self.name = name
        self.discount = discount
        vars(self).update(methods)


class GreedyFromQ:
    """`act` of an expert that only says what actions cost: the one that costs least."""

    def __init__(self, costs: Callable[[Array], Any], part: str, count: int) -> None:
        self.costs = costs
        self.part = part
        self.count = count

    def __call__(self, states: Array, t: int) -> Array:
        told = check_numeric_array(
            self.part, "costs-to-go", self.costs(states), (len(states), self.count), "mend its q"
        )
        chosen: Array = np.argmin(check_finite(self.part, "costs-to-go", told, CHECK), axis=1)
        return chosen


class PerActionQ:
    """Q* of every action of a finite set, from a `q_of`."""

    def __init__(self, expert: StateActionQExpert, count: int) -> None:
        self.expert = expert
        self.count = count

    def __call__(self, states: Array) -> Array:
        return query_q_per_action(self.expert, states, self.count)


def adapt_object(given: Any, simulator: Simulator, called: str, renamed: bool) -> Expert:
    """An object with some of the methods of the ladder; as it is, where they are ours already."""
    methods: dict[str, Callable[..., Any]] = {}
    for rung in CAPABILITIES:
        if has_method(given, rung):
            found, method = adapt_method(rung, getattr(given, rung), simulator, called)
            methods.setdefault(found, method)
    space = simulator.action_space
    if "q" in methods and not isinstance(space, Discrete):
        raise UsageError(
            f"the expert {called} has q(states) of every action, and {simulator.name} has infinitely many; give it "
            "q(states, actions)"
        )
    expert = AdaptedExpert(called, get_discount(given), **methods)
    if "act" not in methods:
        expert.act = make_greedy_act(expert, methods, space, called)
    elif (
        not renamed
        and get_name(given)
        and all(is_native_signature(m) for m in methods.values())
        and is_complete(given, methods)
    ):
        return cast(Expert, given)
    for passed_on in ("networks", "description"):
        if hasattr(given, passed_on):
            setattr(expert, passed_on, getattr(given, passed_on))
    return expert


def adapt_method(rung: str, method: Callable[..., Any], simulator: Simulator, called: str) -> tuple[str, Any]:
    """(the rung that a method of that name stands on by its parameters, the method as we ask it)."""
    if rung == "act":
        return rung, adapt_act(method, simulator, called)
    taken = read_parameters(method, f"the {rung} of {called}")
    part = f"the expert {called}"
    wanted = {"q": (1, 2), "q_of": (2,), "v": (1,)}[rung]
    if taken.required not in wanted:
        shape = {"q": "q(states) or q(states, actions)", "q_of": "q_of(states, actions)", "v": "v(states)"}[rung]
        raise UsageError(f"the {rung} of {called} needs {taken.required} arguments; give it as {shape}")
    asked = UserMethod(part, rung, method, taken.input_kind or InputKind.STATES, EnvironmentView(simulator))
    return ("q_of", StateActionCostMethod(asked)) if taken.required == 2 else (rung, CostMethod(asked))


def adapt_act(function: Callable[..., Any], simulator: Simulator, called: str) -> ActMethod:
    """A method `act`, or a function, of one observation, or of states or an observation and the time."""
    taken = read_parameters(function, called)
    if not taken.names or taken.required > 2:
        raise UsageError(f"{called} needs {taken.required} arguments; give a function of (observation) or (states, t)")
    usual = InputKind.STATES if taken.has_time_parameter else InputKind.OBSERVATION
    return ActMethod(
        UserMethod(f"the expert {called}", "act", function, taken.input_kind or usual, EnvironmentView(simulator)),
        taken.has_time_parameter,
    )


def is_native_signature(method: Any) -> bool:
    """Whether it can be asked as it is: about a batch of states, and by the name and with the arguments that we use."""
    asked: UserMethod = method.asked
    if asked.input_kind is not InputKind.STATES:
        return False
    if isinstance(method, ActMethod):
        return method.timed
    return asked.method == "q_of" if isinstance(method, StateActionCostMethod) else True


def is_complete(given: Any, methods: dict[str, Any]) -> bool:
    """Whether it has all that its methods need beside them."""
    return "v" not in methods or hasattr(given, "discount")


def make_greedy_act(expert: Any, methods: dict[str, Any], space: Any, called: str) -> Callable[[Array, int], Array]:
    """What an expert without `act` would do: what costs least, where every action can be asked about."""
    part = f"the expert {called}"
    if "q" in methods:
        return GreedyFromQ(methods["q"], part, int(space.n))
    if "q_of" in methods and isinstance(space, Discrete):
        return GreedyFromQ(PerActionQ(expert, int(space.n)), part, int(space.n))
    raise UsageError(f"the expert {called} has {' and '.join(methods)}, but no act(states, t); give it one")


def has_method(given: Any, method: str) -> bool:
    """Whether it has such a method; a module's parts, which can be called as well, are none."""
    return callable(getattr(type(given) if is_module(given) else given, method, None))


def is_module(given: Any) -> bool:
    """Whether it is a network of torch; without torch nothing is."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(given, torch.nn.Module)


def get_name(given: Any) -> str:
    """The name that it has; nothing where it has none."""
    found = getattr(given, "name", None)
    return found if isinstance(found, str) and not inspect.isclass(given) else ""
