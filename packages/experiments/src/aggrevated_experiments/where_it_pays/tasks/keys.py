"""A grid world of locked doors and keys, with breadth-first search as its expert: other rooms in every episode."""

from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

from aggrevated.core.settings import COUNT, at_least, setting
from aggrevated.experts import Expert
from aggrevated.problems.control import Control, Maker, no_step_saved
from aggrevated.simulators import Simulator
from aggrevated.tasks import Task, Tuned
from aggrevated_experiments.where_it_pays.experts.breadth_first import BreadthFirst
from aggrevated_experiments.where_it_pays.simulators.keys import COLOURS, NARROWEST, Keys, OnlyMoves

LARGEST = 30


@dataclass(frozen=True, kw_only=True)
class KeysWorld(Control):
    """Rooms behind locked doors, and an expert that knows the way."""

    name = "keys"
    measured_on = ("horizon", "size", "doors", "on_the_spot")
    make: Maker = field(init=False, compare=False)
    make_expert: Callable[[Simulator], Expert] | None = field(default=BreadthFirst, compare=False)  # type: ignore[assignment]
    lowest: Callable[[int], float] = field(default=no_step_saved, compare=False)
    horizon: int = setting(0, "H, after how many steps an episode is cut; 0: 2 * size * (doors + 1).", COUNT)
    size: int = setting(8, "The side of the grid, in cells.", at_least(2 * NARROWEST + 1, LARGEST))
    doors: int = setting(2, "How many locked doors there are, with a key for each.", at_least(0, COLOURS))
    on_the_spot: bool = setting(
        True, "A step into a wall or a locked door is one on the spot; if not, it may not be taken."
    )

    def __post_init__(self) -> None:
        kind = Keys if self.on_the_spot else OnlyMoves
        object.__setattr__(self, "make", partial(kind, size=self.size, doors=self.doors))

    def completed(self, iterations: int, given: Container[str]) -> Self:
        """So many steps are enough for the longest ways: across the grid and back, for each key and for the goal."""
        horizon = self.horizon or 2 * self.size * (self.doors + 1)
        return super(KeysWorld, replace(self, horizon=horizon)).completed(iterations, given)

    def yardstick(self) -> object:
        return super().yardstick(), self.size, self.doors, self.on_the_spot


TASK = Task(
    name="keys",
    title="Doors and keys",
    world=KeysWorld(),
    usual=(Tuned({"hidden": (64,)}),),
)
