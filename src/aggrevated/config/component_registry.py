"""Where pieces are found by name, and which option chooses among them."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from gymnasium.spaces import Space

from aggrevated.core.registry import Shelf
from aggrevated.core.settings import Settings, known
from aggrevated.errors import UsageError
from aggrevated.losses import LossSettings
from aggrevated.oracles import OracleSettings
from aggrevated.oracles.loki import ReinforcementSettings
from aggrevated.policies import PolicySettings
from aggrevated.policies.heads import HeadSettings
from aggrevated.starts import StartSettings
from aggrevated.tasks import Task
from aggrevated.updates import UpdateSettings

HEADS: Shelf[Any] = Shelf("head", "aggrevated.policies.heads", HeadSettings, "aggrevated.heads")
SHELVES: dict[str, Shelf[Any]] = {  # by the place in a config
    "policy": Shelf("policy", "aggrevated.policies", PolicySettings, "aggrevated.policies"),
    "update": Shelf("update", "aggrevated.updates", UpdateSettings, "aggrevated.updates"),
    "start": Shelf("start", "aggrevated.starts", StartSettings, "aggrevated.starts"),
    "reinforcement": Shelf("reinforcement", "aggrevated.oracles", ReinforcementSettings, "aggrevated.reinforcements"),
    "oracle": Shelf("oracle", "aggrevated.oracles", OracleSettings, "aggrevated.oracles"),
    "loss": Shelf("loss", "aggrevated.losses", LossSettings, "aggrevated.losses"),
}
OPTIONS = {place: "gradient" if place == "loss" else place for place in SHELVES}  # what chooses it


def names_of(task: Task, place: str) -> list[str]:
    """The pieces that a run of the task can choose from."""
    own = [piece.name for piece in task.brings if issubclass(piece, SHELVES[place].base)]
    return own if own and place == "policy" else SHELVES[place].names(task.brings)


def piece(task: Task, place: str, name: str) -> type[Settings]:
    """The one of that name, or a `UsageError` that lists them."""
    known(name, OPTIONS[place], names_of(task, place))
    found: type[Settings] = SHELVES[place].get(name, task.brings)
    return found


def all_of(task: Task, place: str) -> Iterator[type[Settings]]:
    """Every one of them that can be imported: a broken one disturbs nobody who does not ask for it."""
    for name in names_of(task, place):
        with suppress(UsageError):
            yield piece(task, place, name)


def all_heads() -> Iterator[type[HeadSettings]]:
    """Every head that can be imported."""
    for name in HEADS.names():
        with suppress(UsageError):
            yield HEADS.get(name)


def head_for(actions: Space[Any]) -> type[HeadSettings]:
    """The head for such actions, or a `UsageError` where there is none."""
    for found in all_heads():
        if found.fits(actions):
            return found
    raise UsageError(
        f"no policy here takes actions of type {type(actions).__name__}{actions.shape or ''}: wrap the environment so "
        "that they are Discrete or a Box of one axis, or add a head for them"
    )
