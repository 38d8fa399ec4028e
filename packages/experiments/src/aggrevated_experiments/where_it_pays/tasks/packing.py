"""Task of bin packing with an exact solver: policies learned with few items can be tested with more."""

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

MAX_ITEMS = 1000


@dataclass(frozen=True, kw_only=True)
class PackingProblem(ControlProblem):
    """Bin packing with an exact expert; the worst return takes one bin per item."""

    name = "packing"
    digits = 2
    protocol_settings = ("horizon", "items")
    make: SimulatorFactory = field(init=False, compare=False)
    make_expert: Callable[[Simulator], Expert] | None = field(default=ExactPacking, compare=False)  # type: ignore[assignment]
    worst_return: Callable[[int], float] = field(default=negative_horizon, compare=False)
    horizon: int = setting(
        0, "H, the number of items after which an episode is cut; 0: all items.", at_least(0, MAX_ITEMS)
    )
    items: int = setting(12, "Number of items per episode.", at_least(1, MAX_ITEMS))

    def __post_init__(self) -> None:
        object.__setattr__(self, "make", partial(Packing, items=self.items))

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        too_long = self.horizon > MAX_ITEMS  # the base class raises
        horizon = self.horizon if too_long else min(self.horizon or self.items, self.items)
        cut = replace(self, horizon=horizon)
        return super(PackingProblem, cut).fill_defaults(iterations, given)

    def expert_identity(self) -> object:
        return super().expert_identity(), self.items


TASK = Task(
    name="packing",
    title="Bin packing",
    problem=PackingProblem(),
    defaults=(Preset({"hidden": (64,)}),),
)
