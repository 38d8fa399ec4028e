"""When a learner was as good as its expert, and what it had spent by then: budgets that can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from aggrevated.core.statistics import median_time
from aggrevated.problems.control import ControlProblem
from aggrevated.storage import JsonDict
from aggrevated.training.records import Metrics, Result
from aggrevated.training.run_folder import Run

COST_AXES = ("simulator_steps", "episodes", "oracle_queries", "cpu_seconds")
CostCurve: TypeAlias = dict[str, list[float]]  # what a trial had spent, and earned, whenever it was better
LEVELS = {"expert": 1.0, "more": 1.05}  # by name, in ratios


def fill_missing_iterations(lines: Sequence[Metrics]) -> list[Metrics]:
    """One for each iteration: those that were lost are as the next that is there."""
    found = list[Metrics]()
    for line in lines:
        found += [line] * (line.iteration - len(found))
    return found


def make_cost_curve(run: Run, result: Result) -> CostCurve:
    """What had been spent whenever the best policy so far was a better one, and what it earned on validation.

    The first is the policy that the run began with, the last how it ended: between them nothing changed.
    """
    k, best = run.config.loop.trajectories, result.initial_return
    asked = started = result.start_simulator_steps  # the expert takes every step of a start; its seconds are not kept
    points = [(started, 0, asked, 0.0, 0, best)]
    lines = fill_missing_iterations(run.metrics())
    for line in lines:
        if line.best_return > best or line is lines[-1]:
            best = line.best_return
            spent = (line.simulator_steps, line.iteration * k, line.oracle_queries, line.cpu_seconds)
            points.append((*spent, line.iteration, best))
    names = (*COST_AXES, "iteration", "best_return")
    return {name: list(column) for name, column in zip(names, zip(*points, strict=True), strict=True)}


def worst_return(run: Run) -> float:
    """The return that counts as nothing, where there is a ratio."""
    world = run.config.problem
    return world.worst_return(world.horizon) if isinstance(world, ControlProblem) else 0.0


def target_return(run: Run, result: Result, ratio: float) -> float:
    """The return that is so much of the expert's."""
    expert, lowest = float(result.to_dict()["expert_return"]), worst_return(run)
    return lowest + ratio * (expert - lowest)


def steps_to_reach(course: CostCurve, level: float) -> dict[str, float | None]:
    """What had been spent when the best so far was first at that level; None: never within the budget."""
    at = next((place for place, value in enumerate(course["best_return"]) if value >= level), None)
    return {name: None if at is None else course[name][at] for name in COST_AXES}


def mean_best_return(course: CostCurve, budget: float, before: float) -> float:
    """The best return so far, on average over what may be spent: high for whoever is good, and soon.

    Until the start is paid for, nothing is known but `before`.
    """
    at = np.clip([0.0, *course["simulator_steps"], budget], 0.0, budget)
    return float(np.diff(np.maximum.accumulate(at)) @ np.array([before, *course["best_return"]]) / budget)


def reach_row(label: str, found: Mapping[str, Sequence[Mapping[str, float | None]]]) -> JsonDict:
    """Of one method: for each level the medians of what it took, their intervals, and in how many trials."""
    row: JsonDict = {"label": label}
    for level, trials in found.items():
        row[f"{level}_reached"] = sum(trial["simulator_steps"] is not None for trial in trials)
        row["trials"] = len(trials)
        for name in (name for name in COST_AXES if name in trials[0]):
            key = level if name == "simulator_steps" else f"{level}_{name}"
            row |= median_time([trial[name] for trial in trials]).named(key)
    return row
