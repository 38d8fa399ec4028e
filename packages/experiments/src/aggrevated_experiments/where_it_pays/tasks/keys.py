"""A grid world of locked doors and keys, with breadth-first search as its expert: other rooms in every episode."""

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
    """Rooms behind locked doors, and an expert that knows the way."""

    name = "keys"
    protocol_settings = ("horizon", "grid_size", "doors", "blocked_moves_stay")
    make: SimulatorFactory = field(init=False, compare=False)
    make_expert: Callable[[Simulator], Expert] | None = field(default=BreadthFirst, compare=False)  # type: ignore[assignment]
    worst_return: Callable[[int], float] = field(default=negative_horizon, compare=False)
    horizon: int = setting(0, "H, after how many steps an episode is cut; 0: 2 * size * (doors + 1).", COUNT)
    grid_size: int = setting(8, "The side of the grid, in cells.", at_least(2 * MIN_ROOM_SIDE + 1, MAX_GRID_SIZE))
    doors: int = setting(2, "How many locked doors there are, with a key for each.", at_least(0, COLOURS))
    blocked_moves_stay: bool = setting(
        True, "A step into a wall or a locked door is one on the spot; if not, it may not be taken."
    )

    def __post_init__(self) -> None:
        kind = Keys if self.blocked_moves_stay else MaskedKeys
        object.__setattr__(self, "make", partial(kind, size=self.grid_size, doors=self.doors))

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        """So many steps are enough for the longest ways: across the grid and back, for each key and for the goal."""
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
