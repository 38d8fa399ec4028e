"""One file per figure of the paper: the task, its tuned settings, and the rows of the figure. Data only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aggrevated.simulators import Simulator


@dataclass(frozen=True)
class Row:
    """One method in a figure; with another policy than the task's where one is named."""

    method: str
    update: str
    policy: str | None = None
    start: str | None = None


@dataclass(frozen=True)
class Task:
    """All that a run needs to know of a task. Every number can be overridden on the command line."""

    name: str
    title: str
    simulator: Callable[[int], Simulator]  # from the horizon H
    horizon: int
    floor: Callable[[int], float]  # the lowest return possible within H; ratios are measured from there
    expert: str  # the shipped expert's name
    seen_by_expert: Callable[[int], Simulator]  # the simulator as the expert sees it, likewise
    policy: str
    hidden: tuple[int, ...]
    trajectories: int  # K
    iterations: int  # N
    validation_episodes: int
    settings: Mapping[
        str, Mapping[str, float | str]
    ]  # by start, method, update, "method/update[/policy]", "start/method"
    figure: tuple[Row, ...]  # of the paper's figure
    oracle: str = "q-network"  # how the expert is asked for Q*
    trials: int = 10

    @property
    def finite(self) -> bool:
        """Whether its actions are a finite set: then experts know Q*, and else they are rolled out for it."""
        return self.oracle == "q-network"

    def ratio(self, returned: float, expert: float, horizon: int) -> float | None:
        """(R − floor) / (R* − floor): 1 is as good as the expert. For Acrobot that is the share of steps saved.

        None where the expert itself is at the floor, as it is when H is too short for it.
        """
        floor = self.floor(horizon)
        return (returned - floor) / (expert - floor) if expert > floor else None


IMITATION = (Row("aggrevated", "natural"), Row("aggrevated", "regular"))
PAPER = (*IMITATION, Row("reinforce", "regular"), Row("tnpg", "natural"))  # the rows of all its figures of control
# Hopper and Walker: reinforcement learning also from the same supervised start
CONTINUOUS = (*PAPER, Row("reinforce", "regular", start="supervised"), Row("tnpg", "natural", start="supervised"))


def tasks() -> dict[str, Task]:
    """Every task, by name."""
    from aggrevated.experiments import acrobot, acrobot_partial, cartpole, hopper, walker

    return {module.TASK.name: module.TASK for module in (cartpole, acrobot, acrobot_partial, hopper, walker)}
