"""The expert ladder: whatever can act, or knows more, becomes an expert.

Strongest first: what every action costs, `q(states)`; what an action costs, `q(states, actions)`; what a state costs,
`v(states)`; what to do, `act`; what somebody did, recorded.
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
    """What was given as an expert in that simulator; a `UsageError` if nothing in it can be asked."""
    if is_expert_factory(given):
        called = name or display_name(given)
        made = call_user_code(f"the expert {called}", "making", lambda: given(simulator))
        if is_expert_factory(made):
            raise UsageError(f"{called} makes what makes an expert; let it make the expert itself")
        return as_expert(made, simulator, name or get_name(made) or called)
    called = name or display_name(given)
    if is_demonstrations(given):
        from aggrevated.experts.behavior_clone import fit_behavior_clone

        return fit_behavior_clone(to_demonstrations(given), simulator, name)
    if isinstance(given, QFunction):
        return expert_from_q_function(given, simulator, name or display_name(given.given))
    if inspect.isclass(given) or isinstance(given, str | Path):
        shown = f"the class {given.__name__}" if inspect.isclass(given) else repr(str(given))
        raise UsageError(f"{shown} is no expert: give {ACCEPTED_EXPERTS}")
    if any(has_method(given, rung) for rung in CAPABILITIES):
        return adapt_object(given, simulator, called, renamed=name is not None)
    if has_sb3_predict(given):
        return SB3PredictExpert(called, given, EnvironmentView(simulator))
    if is_module(given):
        from aggrevated.experts.torch_modules import ModuleExpert, ModuleOutputs

        return ModuleExpert(called, ModuleOutputs.from_module(f"the expert {called}", given), simulator)
    if callable(given):
        return AdaptedExpert(called, 1.0, act=adapt_act(given, simulator, called))
    raise UsageError(f"{type(given).__name__} {given!r:.80} is no expert: give {ACCEPTED_EXPERTS}")


def get_expert_capability(expert: Expert) -> str:
    """The highest rung that it stands on: "q", "q_of", "v" or "act"."""
    if isinstance(expert, DiscreteQExpert):
        return "q"
    if isinstance(expert, StateActionQExpert):
        return "q_of"
    return "v" if isinstance(expert, StateValueExpert) else "act"


def expert_from_q_function(given: QFunction, simulator: Simulator, called: str) -> Expert:
    """What a `QFunction` says that it is."""
    space = simulator.action_space
    if not isinstance(space, Discrete):
        raise UsageError(
            f"a QFunction knows every action, and {simulator.name} has infinitely many; give q(states, actions)"
        )
    if not callable(given.given):
        raise UsageError(
            f"a QFunction of {type(given.given).__name__}: give an nn.Module, or a function of observations"
        )
    outputs: Callable[[Array], Any] = given.given
    if is_module(given.given):
        from aggrevated.experts.torch_modules import ModuleOutputs

        outputs = ModuleOutputs.from_module(f"the expert {called}", cast(Any, given.given))
    return QFunctionExpert(called, outputs, simulator, int(space.n), given.rewards, given.discount)


def is_expert_factory(given: Any) -> bool:
    """Whether it is a function or a class whose only parameter is called `simulator`."""
    if not inspect.isclass(given) and not inspect.isroutine(given) and not hasattr(given, "func"):
        return False
    try:
        found = list(inspect.signature(given).parameters.values())
    except (TypeError, ValueError):
        return False
    required = [parameter.name for parameter in found if parameter.default is parameter.empty]
    return required == ["simulator"]


def is_demonstrations(given: Any) -> bool:
    """Whether it is demonstrations, or where they are."""
    if isinstance(given, str | Path):
        return str(given).endswith(".npz") or str(given).startswith(MINARI)
    return isinstance(given, Demonstrations | list | tuple)


def to_demonstrations(given: Any) -> Demonstrations:
    """Recorded, read or listed."""
    if isinstance(given, Demonstrations):
        return given
    return read_demonstrations(given) if isinstance(given, str | Path) else demonstrations_from_list(given)


def has_sb3_predict(given: Any) -> bool:
    """Whether it has a `predict` as Stable-Baselines3's models have it."""
    method = getattr(given, "predict", None)
    return callable(method) and "deterministic" in inspect.signature(method).parameters


def display_name(given: Any) -> str:
    """Its name, or else what it is called in its program."""
    own = get_name(given) or getattr(given, "__name__", "") or type(given).__name__
    return str(own).strip("<>")
