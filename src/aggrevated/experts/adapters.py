"""Conversion of user objects to experts.

From the strongest capability to the weakest: costs of all actions, `q(states)`; cost of one action,
`q(states, actions)`; cost of a state, `v(states)`; actions, `act`; recorded demonstrations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from gymnasium.spaces import Discrete

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError
from aggrevated.core.user_code import call_user_code
from aggrevated.experts import DiscreteQExpert, Expert, StateActionQExpert, StateValueExpert
from aggrevated.experts.capabilities import (
    CAPABILITIES,
    AdaptedExpert,
    adapt_act,
    adapt_object,
    get_name,
    has_method,
    is_module,
)
from aggrevated.experts.demonstrations import MINARI, Demonstrations, demonstrations_from_list, read_demonstrations
from aggrevated.experts.environment_view import EnvironmentView
from aggrevated.experts.q_function import QFunction, QFunctionExpert
from aggrevated.experts.stable_baselines import SB3PredictExpert
from aggrevated.simulators import Simulator

ACCEPTED_EXPERTS = (
    "an object with q(states), q(states, actions), v(states) or act(states, t); a function of one observation; a "
    "function or class of `simulator` that makes one of these; a Stable-Baselines3 model; an nn.Module; a QFunction; "
    "or demonstrations: a list of (observations, actions), or an .npz file"
)


def as_expert(given: Any, simulator: Simulator, name: str | None = None) -> Expert:
    """Return an object of yours as an expert for a simulator.

    Args:
        given: an object with some of `q(states)`, `q(states, actions)`, `v(states)` and `act(states, t)`;
            a function of one observation; a Stable-Baselines3 model; an `nn.Module`; a `QFunction`;
            demonstrations; or a function or class with the one parameter `simulator` that returns one of these.
            Methods whose first parameter is called `observation` or `observations` receive the environment's
            observations instead of states.
        simulator: simulator in which the expert acts.
        name: name of the expert; by default the object's own `name`, or the name of its function or class.

    Returns:
        The expert. It has exactly those of `q`, `q_of` and `v` that the object can answer.

    Raises:
        UsageError: the object is not of one of these kinds, or its methods take other parameters.

    Example:
        >>> import numpy as np
        >>> from aggrevated import CartPole, as_expert
        >>> expert = as_expert(lambda observation: int(observation[2] > 0), CartPole(), "lean")
        >>> expert.act(np.array([[0.0, 0.0, 0.1, 0.0], [0.0, 0.0, -0.1, 0.0]]), 0)
        array([1, 0])
    """
    if is_expert_factory(given):
        display = name or display_name(given)
        result = call_user_code(f"the expert {display}", "making", lambda: given(simulator))
        if is_expert_factory(result):
            raise UsageError(f"{display} returns a function that makes an expert; return the expert itself")
        return as_expert(result, simulator, name or get_name(result) or display)
    display = name or display_name(given)
    if is_demonstrations(given):
        from aggrevated.experts.behavior_clone import fit_behavior_clone

        return fit_behavior_clone(to_demonstrations(given), simulator, name)
    if isinstance(given, QFunction):
        return expert_from_q_function(given, simulator, name or display_name(given.given))
    if inspect.isclass(given) or isinstance(given, str | Path):
        kind = f"the class {given.__name__}" if inspect.isclass(given) else repr(str(given))
        raise UsageError(f"{kind} is not an expert: pass {ACCEPTED_EXPERTS}")
    if any(has_method(given, capability) for capability in CAPABILITIES):
        return adapt_object(given, simulator, display, renamed=name is not None)
    if has_sb3_predict(given):
        return SB3PredictExpert(display, given, EnvironmentView(simulator))
    if is_module(given):
        from aggrevated.experts.torch_modules import ModuleExpert, ModuleOutputs

        return ModuleExpert(display, ModuleOutputs.from_module(f"the expert {display}", given), simulator)
    if callable(given):
        return AdaptedExpert(display, 1.0, act=adapt_act(given, simulator, display))
    raise UsageError(f"{type(given).__name__} {given!r:.80} is not an expert: pass {ACCEPTED_EXPERTS}")


def get_expert_capability(expert: Expert) -> str:
    """Return the strongest capability of an expert.

    Args:
        expert: expert whose methods are looked at.

    Returns:
        "q" (costs of all actions), "q_of" (cost of one action), "v" (cost of a state) or "act" (no costs).

    Example:
        >>> from aggrevated import CartPole, get_expert_capability, load_expert
        >>> get_expert_capability(load_expert("cartpole", CartPole()))
        'q'
    """
    if isinstance(expert, DiscreteQExpert):
        return "q"
    if isinstance(expert, StateActionQExpert):
        return "q_of"
    return "v" if isinstance(expert, StateValueExpert) else "act"


def expert_from_q_function(q_function: QFunction, simulator: Simulator, name: str) -> Expert:
    """Return the expert that minimizes the costs of a `QFunction`."""
    space = simulator.action_space
    if not isinstance(space, Discrete):
        raise UsageError(
            f"a QFunction returns costs of all actions, and {simulator.name} has infinitely many; pass an object with "
            "q(states, actions)"
        )
    function = q_function.given
    if not callable(function):
        raise UsageError(
            f"a QFunction of {type(function).__name__} cannot be called; pass an nn.Module or a function of "
            "observations"
        )
    outputs: Callable[[Array], Any] = function
    if is_module(function):
        from aggrevated.experts.torch_modules import ModuleOutputs

        outputs = ModuleOutputs.from_module(f"the expert {name}", cast(Any, function))
    return QFunctionExpert(name, outputs, simulator, int(space.n), q_function.rewards, q_function.discount)


def is_expert_factory(candidate: Any) -> bool:
    """Return whether an object is a function or class whose only required parameter is `simulator`."""
    if not inspect.isclass(candidate) and not inspect.isroutine(candidate) and not hasattr(candidate, "func"):
        return False
    try:
        parameters = list(inspect.signature(candidate).parameters.values())
    except (TypeError, ValueError):
        return False
    required = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    return required == ["simulator"]


def is_demonstrations(candidate: Any) -> bool:
    """Return whether an object is demonstrations, or the path or Minari name of some."""
    if isinstance(candidate, str | Path):
        return str(candidate).endswith(".npz") or str(candidate).startswith(MINARI)
    return isinstance(candidate, Demonstrations | list | tuple)


def to_demonstrations(candidate: Any) -> Demonstrations:
    """Return an object that `is_demonstrations` accepts as `Demonstrations`."""
    if isinstance(candidate, Demonstrations):
        return candidate
    return read_demonstrations(candidate) if isinstance(candidate, str | Path) else demonstrations_from_list(candidate)


def has_sb3_predict(candidate: Any) -> bool:
    """Return whether an object has the `predict` of Stable-Baselines3's models."""
    method = getattr(candidate, "predict", None)
    return callable(method) and "deterministic" in inspect.signature(method).parameters


def display_name(candidate: Any) -> str:
    """Return the object's `name`, or the name of its function or class."""
    name = get_name(candidate) or getattr(candidate, "__name__", "") or type(candidate).__name__
    return str(name).strip("<>")
