"""Task of a walk along a cliff, with an exact expert: mistakes differ greatly in cost."""

from collections.abc import Callable
from dataclasses import dataclass, field

from aggrevated.core.settings import at_least, setting
from aggrevated.experts import Expert
from aggrevated.problems.control import ControlProblem, SimulatorFactory
from aggrevated.simulators import Simulator
from aggrevated.tasks import Preset, Task
from aggrevated_experiments.where_it_pays.simulators.cliff import Cliff, CliffExpert

MAX_HORIZON = 10_000


@dataclass(frozen=True, kw_only=True)
class CliffProblem(ControlProblem):
    """A cliff with an expert by dynamic programming."""

    name = "cliff"
    digits = 2
    has_ratio = False  # the worst return is meaningless; differences from the expert are compared
    make: SimulatorFactory = field(default=Cliff, compare=False)
    make_expert: Callable[[Simulator], Expert] | None = field(default=CliffExpert, compare=False)  # type: ignore[assignment]
    horizon: int = setting(50, "H, the number of steps after which a walk ends.", at_least(1, MAX_HORIZON))


TASK = Task(
    name="cliff",
    title="Walk along a cliff",
    problem=CliffProblem(),
    defaults=(Preset({"hidden": (16,)}),),
    presets=(Preset({"learning_rate": 0.1}, update="follow-the-leader"),),  # best of .003, .01, .03, .1, .3
)
