"""Bin packing with an exact solver as its expert: what is learned with a few items can be tested with more."""

from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

from aggrevated.core.settings import at_least, setting
from aggrevated.experts import Expert
from aggrevated.problems.control import ControlProblem, SimulatorFactory, negative_horizon
from aggrevated.simulators import Simulator
from aggrevated.tasks import Preset, Task
from aggrevated_experiments.where_it_pays.experts.exact_packing import ExactPacking
from aggrevated_experiments.where_it_pays.simulators.packing import Packing

MAX_ITEMS = 1000  # items


@dataclass(frozen=True, kw_only=True)
class PackingProblem(ControlProblem):
    """Items, bins, and an expert that knows how few are enough; the lowest return is a bin for each item."""

    name = "packing"
    digits = 2
    protocol_settings = ("horizon", "items")
    make: SimulatorFactory = field(init=False, compare=False)
    make_expert: Callable[[Simulator], Expert] | None = field(default=ExactPacking, compare=False)  # type: ignore[assignment]
    worst_return: Callable[[int], float] = field(default=negative_horizon, compare=False)
    horizon: int = setting(0, "H, after how many items an episode is cut; 0: after all.", at_least(0, MAX_ITEMS))
    items: int = setting(12, "How many items there are.", at_least(1, MAX_ITEMS))

    def __post_init__(self) -> None:
        object.__setattr__(self, "make", partial(Packing, items=self.items))

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        asked = min(self.horizon or self.items, self.items) if self.horizon <= MAX_ITEMS else self.horizon  # is refused
        cut = replace(self, horizon=asked)
        return super(PackingProblem, cut).fill_defaults(iterations, given)

    def expert_identity(self) -> object:
        return super().expert_identity(), self.items


TASK = Task(
    name="packing",
    title="Bin packing",
    problem=PackingProblem(),
    defaults=(Preset({"hidden": (64,)}),),
)
