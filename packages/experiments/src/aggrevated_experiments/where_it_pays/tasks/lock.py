"""Task of a combination lock, whose expert knows the combination; without it, rewards are very sparse."""

from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

from aggrevated.core.settings import COUNT, SEED, at_least, setting
from aggrevated.experts import Expert
from aggrevated.problems.control import ControlProblem, SimulatorFactory
from aggrevated.simulators import Simulator
from aggrevated.tasks import Preset, Task
from aggrevated_experiments.where_it_pays.simulators.lock import Lock, LockExpert

MAX_LENGTH = 1000


@dataclass(frozen=True, kw_only=True)
class LockProblem(ControlProblem):
    """A lock with an expert that knows its combination."""

    name = "lock"
    digits = 2
    protocol_settings = ("combination_length", "combination_seed", "horizon")
    make: SimulatorFactory = field(init=False, compare=False)
    make_expert: Callable[[Simulator], Expert] | None = field(default=LockExpert, compare=False)  # type: ignore[assignment]
    horizon: int = setting(
        0, "H, the number of digits after which an episode is cut; 0: the length of the lock.", COUNT
    )
    combination_length: int = setting(10, "L, the number of digits of the combination.", at_least(1, MAX_LENGTH))
    combination_seed: int = setting(0, "Seed of the combination, which all episodes and trials share.", SEED)

    def __post_init__(self) -> None:
        make = partial(Lock, length=self.combination_length, combination_seed=self.combination_seed)
        object.__setattr__(self, "make", make)

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        return super(LockProblem, replace(self, horizon=self.horizon or self.combination_length)).fill_defaults(
            iterations, given
        )

    def expert_identity(self) -> object:
        return super().expert_identity(), self.combination_length, self.combination_seed


TASK = Task(
    name="lock",
    title="Combination lock",
    problem=LockProblem(),
    defaults=(Preset({"hidden": (32,)}),),
)
