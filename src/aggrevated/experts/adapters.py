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
from aggrevated.core.user_code import answer
from aggrevated.errors import UsageError
from aggrevated.experts import ActionValueExpert, CriticExpert, Expert, ValueExpert
from aggrevated.experts.capabilities import RUNGS, Adapted, acting, adapted, has, is_module, named
from aggrevated.experts.demonstration_files import MINARI, demonstrations_in, read_demonstrations
from aggrevated.experts.demonstrations import Demonstrations
from aggrevated.experts.environment_view import Native
from aggrevated.experts.q_function import QFunction, QFunctionExpert
from aggrevated.experts.sb3_predict import PredictingExpert
from aggrevated.simulators import Simulator

LADDER = (
    "an object with q(states), q(states, actions), v(states) or act(states, t); a function of one observation; a "
    "function or class of `simulator` that makes one of these; a Stable-Baselines3 model; an nn.Module; a QFunction; "
    "or demonstrations: a list of (observations, actions), or an .npz file"
)


def as_expert(given: Any, simulator: Simulator, name: str | None = None) -> Expert:
    """What was given as an expert in that simulator; a `UsageError` if nothing in it can be asked."""
    if is_factory(given):
        called = name or name_of(given)
        made = answer(f"the expert {called}", "making", lambda: given(simulator))
        if is_factory(made):
            raise UsageError(f"{called} makes what makes an expert; let it make the expert itself")
        return as_expert(made, simulator, name or named(made) or called)
    called = name or name_of(given)
    if recorded(given):
        from aggrevated.experts.behavior_clone import clone_of

        return clone_of(demonstrations_of(given), simulator, name)
    if isinstance(given, QFunction):
        return knowing_q(given, simulator, name or name_of(given.given))
    if inspect.isclass(given) or isinstance(given, str | Path):
        shown = f"the class {given.__name__}" if inspect.isclass(given) else repr(str(given))
        raise UsageError(f"{shown} is no expert: give {LADDER}")
    if any(has(given, rung) for rung in RUNGS):
        return adapted(given, simulator, called, renamed=name is not None)
    if predicts(given):
        return PredictingExpert(called, given, Native(simulator))
    if is_module(given):
        from aggrevated.experts.torch_modules import ModuleExpert, Outputs

        return ModuleExpert(called, Outputs.of(f"the expert {called}", given), simulator)
    if callable(given):
        return Adapted(called, 1.0, act=acting(given, simulator, called))
    raise UsageError(f"{type(given).__name__} {given!r:.80} is no expert: give {LADDER}")


def kind_of(expert: Expert) -> str:
    """The highest rung that it stands on: "q", "q_of", "v" or "act"."""
    if isinstance(expert, ValueExpert):
        return "q"
    if isinstance(expert, ActionValueExpert):
        return "q_of"
    return "v" if isinstance(expert, CriticExpert) else "act"


def knowing_q(given: QFunction, simulator: Simulator, called: str) -> Expert:
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
        from aggrevated.experts.torch_modules import Outputs

        outputs = Outputs.of(f"the expert {called}", cast(Any, given.given))
    return QFunctionExpert(called, outputs, simulator, int(space.n), given.rewards, given.discount)


def is_factory(given: Any) -> bool:
    """Whether it is a function or a class whose only parameter is called `simulator`."""
    if not inspect.isclass(given) and not inspect.isroutine(given) and not hasattr(given, "func"):
        return False
    try:
        found = list(inspect.signature(given).parameters.values())
    except (TypeError, ValueError):
        return False
    required = [parameter.name for parameter in found if parameter.default is parameter.empty]
    return required == ["simulator"]


def recorded(given: Any) -> bool:
    """Whether it is demonstrations, or where they are."""
    if isinstance(given, str | Path):
        return str(given).endswith(".npz") or str(given).startswith(MINARI)
    return isinstance(given, Demonstrations | list | tuple)


def demonstrations_of(given: Any) -> Demonstrations:
    """Recorded, read or listed."""
    if isinstance(given, Demonstrations):
        return given
    return read_demonstrations(given) if isinstance(given, str | Path) else demonstrations_in(given)


def predicts(given: Any) -> bool:
    """Whether it has a `predict` as Stable-Baselines3's models have it."""
    method = getattr(given, "predict", None)
    return callable(method) and "deterministic" in inspect.signature(method).parameters


def name_of(given: Any) -> str:
    """Its name, or else what it is called in its program."""
    own = named(given) or getattr(given, "__name__", "") or type(given).__name__
    return str(own).strip("<>")
