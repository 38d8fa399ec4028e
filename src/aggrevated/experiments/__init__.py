"""One file per figure of the paper: the task, its tuned settings, and the rows of the figure. Data only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aggrevated.simulators import Simulator


@dataclass(frozen=True)
class Row:
    """One method in a figure or table; with another policy than the task's where one is named."""

    method: str
    update: str
    policy: str | None = None
    start: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)  # further ones that are not the task's
    paper: float | None = None  # what the paper reports


@dataclass(frozen=True, kw_only=True)
class Task:
    """All that a run needs to know of a task. Every number can be overridden on the command line."""

    name: str
    title: str
    world: str  # which of `aggrevated.setup.WORLDS`
    horizon: int
    expert: str  # the shipped expert's name
    policy: str
    policies: tuple[str, ...] = ("mlp", "window", "lstm", "gru")
    hidden: tuple[int, ...]
    trajectories: int  # K
    iterations: int  # N
    validation_episodes: int
    # by start, policy, method, update, "method/update[/policy]", "start/method"
    settings: Mapping[str, Mapping[str, Any]]
    figure: tuple[Row, ...]  # of the paper's figure
    oracles: tuple[str, ...] = ("q-network", "monte-carlo")  # how its experts can be asked for Q*, the usual way first
    trials: int = 10
    measured: str = "return"
    digits: int = 1  # behind the point, when that is shown
    packages: tuple[str, ...] = ()  # that it needs besides the usual ones

    @property
    def finite(self) -> bool:
        """Whether its actions are a finite set: then experts know Q*, and else they are rolled out for it."""
        return self.oracles[0] in KNOW_EVERY_ACTION


@dataclass(frozen=True, kw_only=True)
class ControlTask(Task):
    """A simulator with an expert that was trained in it."""

    world: str = "control"
    simulator: Callable[[int], Simulator]  # from the horizon H
    floor: Callable[[int], float]  # the lowest return possible within H; ratios are measured from there
    seen_by_expert: Callable[[int], Simulator]  # the simulator as the expert sees it, likewise

    def ratio(self, returned: float, expert: float, horizon: int) -> float | None:
        """(R − floor) / (R* − floor): 1 is as good as the expert. For Acrobot that is the share of steps saved.

        None where the expert itself is at the floor, as it is when H is too short for it.
        """
        floor = self.floor(horizon)
        return (returned - floor) / (expert - floor) if expert > floor else None


TO_THE_END = -1  # annealed over all iterations, however many they are
KNOW_EVERY_ACTION = ("q-network", "gold")  # oracles that tell Q* of every action, without a roll-out
IMITATION = (Row("aggrevated", "natural"), Row("aggrevated", "regular"))
PAPER = (*IMITATION, Row("reinforce", "regular"), Row("tnpg", "natural"))  # the rows of all its figures of control
# Hopper and Walker: reinforcement learning also from the same supervised start
CONTINUOUS = (*PAPER, Row("reinforce", "regular", start="supervised"), Row("tnpg", "natural", start="supervised"))


def control_tasks() -> dict[str, ControlTask]:
    """The tasks with a simulator and a trained expert, by name."""
    from aggrevated.experiments import acrobot, acrobot_partial, cartpole, hopper, walker

    return {module.TASK.name: module.TASK for module in (cartpole, acrobot, acrobot_partial, hopper, walker)}


def tasks() -> dict[str, Task]:
    """Every task, by name."""
    from aggrevated.experiments import algebra

    return {**control_tasks(), algebra.TASK.name: algebra.TASK}
