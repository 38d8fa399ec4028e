"""A walk along a cliff, with an expert that knows exactly what every step costs: mistakes that differ greatly."""

from collections.abc import Callable
from dataclasses import dataclass, field

from aggrevated.core.settings import at_least, setting
from aggrevated.experts import Expert
from aggrevated.problems.control import Control, Maker
from aggrevated.simulators import Simulator
from aggrevated.tasks import Task, Tuned
from aggrevated_experiments.where_it_pays.simulators.cliff import Cliff, CliffExpert

LONGEST = 10_000


@dataclass(frozen=True, kw_only=True)
class CliffWorld(Control):
    """A cliff, and dynamic programming."""

    name = "cliff"
    digits = 2
    rated = False  # the worst return has no meaning; what is lost to the expert has
    make: Maker = field(default=Cliff, compare=False)
    make_expert: Callable[[Simulator], Expert] | None = field(default=CliffExpert, compare=False)  # type: ignore[assignment]
    horizon: int = setting(50, "H, after how many steps a walk is over.", at_least(1, LONGEST))


TASK = Task(
    name="cliff",
    title="Walk along a cliff",
    world=CliffWorld(),
    usual=(Tuned({"hidden": (16,)}),),
    tuned=(Tuned({"learning_rate": 0.1}, update="follow-the-leader"),),  # DAgger: the best of .003, .01, .03, .1, .3
)
