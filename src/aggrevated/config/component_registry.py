"""Where pieces are found by name, and which option chooses among them."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from gymnasium.spaces import Space

from aggrevated.core.registry import Registry
from aggrevated.core.settings import Settings, check_known
from aggrevated.errors import UsageError
from aggrevated.losses import LossSettings
from aggrevated.oracles import OracleSettings
from aggrevated.oracles.loki import ReinforcementSettings
from aggrevated.policies import PolicySettings
from aggrevated.policies.heads import HeadSettings
from aggrevated.starts import StartSettings
from aggrevated.tasks import Task
from aggrevated.updates import UpdateSettings

HEAD_REGISTRY: Registry[Any] = Registry("head", "aggrevated.policies.heads", HeadSettings, "aggrevated.heads")
REGISTRIES: dict[str, Registry[Any]] = {  # by the place in a config
    "policy": Registry("policy", "aggrevated.policies", PolicySettings, "aggrevated.policies"),
    "update": Registry("update", "aggrevated.updates", UpdateSettings, "aggrevated.updates"),
    "start": Registry("start", "aggrevated.starts", StartSettings, "aggrevated.starts"),
    "reinforcement": Registry(
        "reinforcement", "aggrevated.oracles", ReinforcementSettings, "aggrevated.reinforcements"
    ),
    "oracle": Registry("oracle", "aggrevated.oracles", OracleSettings, "aggrevated.oracles"),
    "loss": Registry("loss", "aggrevated.losses", LossSettings, "aggrevated.losses"),
}
OPTION_NAMES = {place: "gradient" if place == "loss" else place for place in REGISTRIES}  # what chooses it


def list_component_names(task: Task, place: str) -> list[str]:
    """The pieces that a run of the task can choose from."""
    own = [piece.name for piece in task.components if issubclass(piece, REGISTRIES[place].base)]
    return own if own and place == "policy" else REGISTRIES[place].names(task.components)


def find_component(task: Task, place: str, name: str) -> type[Settings]:
    """The one of that name, or a `UsageError` that lists them."""
    check_known(name, OPTION_NAMES[place], list_component_names(task, place))
    found: type[Settings] = REGISTRIES[place].get(name, task.components)
    return found


def iter_components(task: Task, place: str) -> Iterator[type[Settings]]:
    """Every one of them that can be imported: a broken one disturbs nobody who does not ask for it."""
    for name in list_component_names(task, place):
        with suppress(UsageError):
            yield find_component(task, place, name)


def iter_heads() -> Iterator[type[HeadSettings]]:
    """Every head that can be imported."""
    for name in HEAD_REGISTRY.names():
        with suppress(UsageError):
            yield HEAD_REGISTRY.get(name)


def select_head(actions: Space[Any]) -> type[HeadSettings]:
    """The head for such actions, or a `UsageError` where there is none."""
    for found in iter_heads():
        if found.accepts(actions):
            return found
    raise UsageError(
        f"no policy here takes actions of type {type(actions).__name__}{actions.shape or ''}: wrap the environment so "
        "that they are Discrete or a Box of one axis, or add a head for them"
    )
