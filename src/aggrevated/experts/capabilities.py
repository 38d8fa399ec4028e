"""Objects and functions of others on the rungs of the ladder: which they stand on is told by their methods."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from gymnasium.spaces import Discrete

from aggrevated.core.arrays import Array
from aggrevated.core.user_code import finite, numbers
from aggrevated.errors import UsageError
from aggrevated.experts import ActionValueExpert, Expert, discount_of
from aggrevated.experts.checked import CHECK, costs_of_each
from aggrevated.experts.environment_view import Native
from aggrevated.experts.signatures import Act, Asked, CostOf, Costs, Form, parameters
from aggrevated.simulators import Simulator

RUNGS = ("act", "q", "q_of", "v")


class Adapted:
    """An expert with `act`, and with those of `q`, `q_of` and `v` that were found: no method that cannot answer."""

    act: Callable[[Array, int], Array]

    def __init__(self, name: str, discount: float, **methods: Callable[..., Any]) -> None:
        self.name, self.discount = name, discount
        vars(self).update(methods)


class Cheapest:
    """`act` of an expert that only says what actions cost: the one that costs least."""

    def __init__(self, costs: Callable[[Array], Any], part: str, count: int) -> None:
        self.costs, self.part, self.count = costs, part, count

    def __call__(self, states: Array, t: int) -> Array:
        told = numbers(self.part, "costs-to-go", self.costs(states), (len(states), self.count), "mend its q")
        chosen: Array = np.argmin(finite(self.part, "costs-to-go", told, CHECK), axis=1)
        return chosen


class EachOf:
    """Q* of every action of a finite set, from a `q_of`."""

    def __init__(self, expert: ActionValueExpert, count: int) -> None:
        self.expert, self.count = expert, count

    def __call__(self, states: Array) -> Array:
        return costs_of_each(self.expert, states, self.count)


def adapted(given: Any, simulator: Simulator, called: str, renamed: bool) -> Expert:
    """An object with some of the methods of the ladder; as it is, where they are ours already."""
    methods: dict[str, Callable[..., Any]] = {}
    for rung in RUNGS:
        if has(given, rung):
            found, method = rung_of(rung, getattr(given, rung), simulator, called)
            methods.setdefault(found, method)
    space = simulator.action_space
    if "q" in methods and not isinstance(space, Discrete):
        raise UsageError(
            f"the expert {called} has q(states) of every action, and {simulator.name} has infinitely many; give it "
            "q(states, actions)"
        )
    expert = Adapted(called, discount_of(given), **methods)
    if "act" not in methods:
        expert.act = best_by(expert, methods, space, called)
    elif not renamed and named(given) and all(is_ours(m) for m in methods.values()) and is_whole(given, methods):
        return cast(Expert, given)
    for passed_on in ("networks", "said"):
        if hasattr(given, passed_on):
            setattr(expert, passed_on, getattr(given, passed_on))
    return expert


def rung_of(rung: str, method: Callable[..., Any], simulator: Simulator, called: str) -> tuple[str, Any]:
    """(the rung that a method of that name stands on by its parameters, the method as we ask it)."""
    if rung == "act":
        return rung, acting(method, simulator, called)
    taken, part = parameters(method, f"the {rung} of {called}"), f"the expert {called}"
    wanted = {"q": (1, 2), "q_of": (2,), "v": (1,)}[rung]
    if taken.required not in wanted:
        shape = {"q": "q(states) or q(states, actions)", "q_of": "q_of(states, actions)", "v": "v(states)"}[rung]
        raise UsageError(f"the {rung} of {called} needs {taken.required} arguments; give it as {shape}")
    asked = Asked(part, rung, method, taken.form or Form.STATES, Native(simulator))
    return ("q_of", CostOf(asked)) if taken.required == 2 else (rung, Costs(asked))


def acting(function: Callable[..., Any], simulator: Simulator, called: str) -> Act:
    """A method `act`, or a function, of one observation, or of states or an observation and the time."""
    taken = parameters(function, called)
    if not taken.names or taken.required > 2:
        raise UsageError(f"{called} needs {taken.required} arguments; give a function of (observation) or (states, t)")
    usual = Form.STATES if taken.timed else Form.OBSERVATION
    return Act(Asked(f"the expert {called}", "act", function, taken.form or usual, Native(simulator)), taken.timed)


def is_ours(method: Any) -> bool:
    """Whether it can be asked as it is: about a batch of states, and by the name and with the arguments that we use."""
    asked: Asked = method.asked
    if asked.form is not Form.STATES:
        return False
    if isinstance(method, Act):
        return method.timed
    return asked.method == "q_of" if isinstance(method, CostOf) else True


def is_whole(given: Any, methods: dict[str, Any]) -> bool:
    """Whether it has all that its methods need beside them."""
    return "v" not in methods or hasattr(given, "discount")


def best_by(expert: Any, methods: dict[str, Any], space: Any, called: str) -> Callable[[Array, int], Array]:
    """What an expert without `act` would do: what costs least, where every action can be asked about."""
    part = f"the expert {called}"
    if "q" in methods:
        return Cheapest(methods["q"], part, int(space.n))
    if "q_of" in methods and isinstance(space, Discrete):
        return Cheapest(EachOf(expert, int(space.n)), part, int(space.n))
    raise UsageError(f"the expert {called} has {' and '.join(methods)}, but no act(states, t); give it one")


def has(given: Any, method: str) -> bool:
    """Whether it has such a method; a module's parts, which can be called as well, are none."""
    return callable(getattr(type(given) if is_module(given) else given, method, None))


def is_module(given: Any) -> bool:
    """Whether it is a network of torch; without torch nothing is."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(given, torch.nn.Module)


def named(given: Any) -> str:
    """The name that it has; nothing where it has none."""
    found = getattr(given, "name", None)
    return found if isinstance(found, str) and not inspect.isclass(given) else ""
