"""Tasks: a simulator, its expert, and the settings that the paper's experiment on it uses."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from aggrevated.simulators import Simulator


@dataclass(frozen=True)
class Task:
    """All that a run needs to know of a task, besides the method. Every number can be overridden on the command line."""

    name: str
    title: str
    simulator: Callable[[int], Simulator]  # from the horizon H
    horizon: int
    floor: Callable[[int], float]  # the lowest return that is possible within H, from which ratios are measured
    expert: str  # name of the shipped expert
    hidden: tuple[int, ...] = (16,)
    trajectories: int = 50  # K
    iterations: int = 100  # N
    learning_rate: Mapping[str, float] = field(default_factory=dict)  # of each update that has one
    delta_kl: float = 1e-4
    damping: float = 10.0

    def ratio(self, returned: float, expert: float, horizon: int) -> float:
        """How much of the expert's return above the floor is reached: 1 is as good as the expert."""
        floor = self.floor(horizon)
        return (returned - floor) / (expert - floor)
