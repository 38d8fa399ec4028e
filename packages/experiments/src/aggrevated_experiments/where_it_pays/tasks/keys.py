"""Task of a grid world with locked doors, new rooms in every episode, and breadth-first search as expert."""

from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

from aggrevated.core.settings import COUNT, at_least, setting
from aggrevated.experts import Expert
from aggrevated.problems.control import ControlProblem, SimulatorFactory, negative_horizon
from aggrevated.simulators import Simulator
from aggrevated.tasks import Preset, Task
from aggrevated_experiments.where_it_pays.experts.breadth_first import BreadthFirst
from aggrevated_experiments.where_it_pays.simulators.keys import COLOURS, MIN_ROOM_SIDE, Keys, MaskedKeys

MAX_GRID_SIZE = 30


@dataclass(frozen=True, kw_only=True)
class KeysProblem(ControlProblem):
    """Rooms behind locked doors, with an expert by breadth-first search."""

    name = "keys"
    protocol_settings = ("horizon", "grid_size", "doors", "blocked_moves_stay")
    make: SimulatorFactory = field(init=False, compare=False)
    make_expert: Callable[[Simulator], Expert] | None = field(default=BreadthFirst, compare=False)  # type: ignore[assignment]
    worst_return: Callable[[int], float] = field(default=negative_horizon, compare=False)
    horizon: int = setting(0, "H, the number of steps after which an episode is cut; 0: 2 * size * (doors + 1).", COUNT)
    grid_size: int = setting(8, "Side of the grid in cells.", at_least(2 * MIN_ROOM_SIDE + 1, MAX_GRID_SIZE))
    doors: int = setting(2, "Number of locked doors, each with a key.", at_least(0, COLOURS))
    blocked_moves_stay: bool = setting(
        True, "Whether a move into a wall or a locked door stays in place; if not, it is illegal."
    )

    def __post_init__(self) -> None:
        kind = Keys if self.blocked_moves_stay else MaskedKeys
        object.__setattr__(self, "make", partial(kind, size=self.grid_size, doors=self.doors))

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        """Fill in a horizon for the longest ways: across the grid and back, for each key and for the goal."""
        horizon = self.horizon or 2 * self.grid_size * (self.doors + 1)
        return super(KeysProblem, replace(self, horizon=horizon)).fill_defaults(iterations, given)

    def expert_identity(self) -> object:
        return super().expert_identity(), self.grid_size, self.doors, self.blocked_moves_stay


TASK = Task(
    name="keys",
    title="Doors and keys",
    problem=KeysProblem(),
    defaults=(Preset({"hidden": (64,)}),),
)
