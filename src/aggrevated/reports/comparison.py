"""When a learner was as good as its expert, and what it had spent by then: budgets that can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError, UsageError
from aggrevated.core.settings import has_exact_type
from aggrevated.core.statistics import estimate, estimate_median_time
from aggrevated.plots.learning_curves import Curve, pad_curves, plot_learning_curves
from aggrevated.problems.control import ControlProblem
from aggrevated.reports import Table, make_number_column, make_text_column
from aggrevated.storage import JsonDict
from aggrevated.training.checkpoint import COST_FIELDS
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
    k = run.config.loop.trajectories
    best = result.initial_return
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


def get_worst_return(run: Run) -> float:
    """The return that counts as nothing, where there is a ratio."""
    world = run.config.problem
    return world.worst_return(world.horizon) if isinstance(world, ControlProblem) else 0.0


def compute_target_return(run: Run, result: Result, ratio: float) -> float:
    """The return that is so much of the expert's."""
    expert = float(result.to_dict()["expert_return"])
    lowest = get_worst_return(run)
    return lowest + ratio * (expert - lowest)


def find_steps_to_reach(course: CostCurve, level: float) -> dict[str, float | None]:
    """What had been spent when the best so far was first at that level; None: never within the budget."""
    at = next((place for place, value in enumerate(course["best_return"]) if value >= level), None)
    return {name: None if at is None else course[name][at] for name in COST_AXES}


def mean_best_return(course: CostCurve, budget: float, before: float) -> float:
    """The best return so far, on average over what may be spent: high for whoever is good, and soon.

    Until the start is paid for, nothing is known but `before`.
    """
    at = np.clip([0.0, *course["simulator_steps"], budget], 0.0, budget)
    return float(np.diff(np.maximum.accumulate(at)) @ np.array([before, *course["best_return"]]) / budget)


def make_reach_row(label: str, found: Mapping[str, Sequence[Mapping[str, float | None]]]) -> JsonDict:
    """Of one method: for each level the medians of what it took, their intervals, and in how many trials."""
    row: JsonDict = {"label": label}
    for level, trials in found.items():
        row[f"{level}_reached"] = sum(trial["simulator_steps"] is not None for trial in trials)
        row["trials"] = len(trials)
        for name in (name for name in COST_AXES if name in trials[0]):
            key = level if name == "simulator_steps" else f"{level}_{name}"
            row |= estimate_median_time([trial[name] for trial in trials]).to_fields(key)
    return row


@dataclass(frozen=True)
class TrialGroup:
    """The trials of one method, all ended."""

    label: str
    runs: list[Run]
    results: list[Result]

    @classmethod
    def from_runs(cls, runs: list[Run], prefix: str = "") -> TrialGroup:
        """The group of these runs; a run that has not ended is refused, never left out."""
        results = []
        for run in runs:
            result = run.result()
            if result is None:
                raise DataError(f"{run.folder} has not ended; finish it with 'aggrevated resume {run.folder}'")
            results.append(result)
        return cls(prefix + runs[0].label, runs, results)

    def get_column(self, name: str) -> Array:
        """One number of every trial, [trials]."""
        values = [result.to_dict().get(name, "absent") for result in self.results]
        for run, value in zip(self.runs, values, strict=True):
            if not has_exact_type(value, float) and value is not None:
                raise DataError(f"{run.folder}/result.json has no number for {name}; restore it, or start a new run")
        return np.array(values, float)

    def mean(self, name: str) -> float:
        return float(self.get_column(name).mean())


RETURN_FIELDS = ("best_return", "test_return")
MEANS = ("expert_return", *COST_FIELDS, "oracle_queries", "seconds", "cpu_seconds")


def summarize_group(group: TrialGroup) -> JsonDict:
    """The paper's metric, the test return and the ratio: interquartile means over the trials, with their own intervals.

    Where returns have no ratio it is what the policy earns above its expert. What was spent is a mean.
    """
    name = describe_compared_quantity(group)
    compared = compute_relative_to_expert(group)
    if np.isnan(compared).any():
        raise DataError(f"{group.label}: the expert earns nothing within this horizon; compare runs with a longer one")
    run = group.runs[0]
    return {
        "method": run.config.method,
        "update": run.config.update.name,
        "policy": run.config.policy.name,
        "label": group.label,
        "run": str(run.folder if len(group.runs) == 1 else run.folder.parent),
        "trials": len(group.results),
        **{
            key: value for one in RETURN_FIELDS for key, value in estimate(group.get_column(one)).to_fields(one).items()
        },
        **{one: group.mean(one) for one in MEANS},
        **estimate(compared).to_fields(name),
    }


def describe_compared_quantity(group: TrialGroup) -> str:
    """What is compared: the ratio of returns, or the gain above the expert's."""
    return "ratio" if group.runs[0].config.problem.has_ratio else "gain"


def compute_relative_to_expert(group: TrialGroup) -> Array:
    """That of every trial."""
    if describe_compared_quantity(group) == "ratio":
        return group.get_column("ratio")
    return group.get_column("test_return") - group.get_column("expert_return")


def make_comparison_table(groups: Sequence[TrialGroup], closing: str) -> Table:
    """The table of all groups, best so far, fresh and beside the expert."""
    digits = groups[0].runs[0].config.problem.digits
    name = describe_compared_quantity(groups[0])
    figures = 3 if name == "ratio" else digits
    columns = {
        "method": make_text_column("label"),
        "trials": make_text_column("trials"),
        "best": make_number_column("best_return", digits),
        "test": make_number_column("test_return", digits),
        "expert": make_number_column("expert_return", digits),
        name: make_number_column(name, figures),
        "95 %": lambda row: format_interval(row[f"{name}_low"], row[f"{name}_high"], figures),
    }
    return Table([summarize_group(group) for group in groups], columns, closing)


def format_interval(low: float, high: float, digits: int) -> str:
    """An interval, for people."""
    return f"{low:.{digits}f}-{high:.{digits}f}" if low >= 0 else f"{low:.{digits}f} to {high:.{digits}f}"


def plot_groups(groups: Sequence[TrialGroup], path: Path) -> None:
    """The learning curves of all groups in one figure."""
    configs = [run.config for group in groups for run in group.runs]
    names = {config.task.name for config in configs}
    if len(names) > 1:
        raise UsageError(f"the runs are of different tasks ({', '.join(sorted(names))}); compare runs of one task")
    experts = {config.problem.expert_identity() for config in configs}
    returned = float(np.mean([group.mean("expert_return") for group in groups]))
    expert = returned if len(experts) == 1 else None  # different experts have no line in common
    costly = any(
        group.get_column("oracle_steps").any() for group in groups
    )  # the oracle's roll-outs are part of the bill
    curves = [make_curve(group, costly) for group in groups]
    plot_learning_curves(curves, expert, configs[0].task.title, path, configs[0].problem.metric_name)


def make_curve(group: TrialGroup, costly: bool) -> Curve:
    """Best so far over episodes, from the first policy on; `costly`: over simulator steps, too."""
    config = group.runs[0].config
    trials = [fill_missing_iterations(run.metrics()) for run in group.runs]
    first = [result.initial_return for result in group.results]
    best = pad_curves([[one, *(line.best_return for line in lines)] for one, lines in zip(first, trials, strict=True)])
    steps = pad_curves([[line.simulator_steps for line in lines] for lines in trials]).mean(axis=0) if costly else None
    dotted = not config.method_spec.queries_expert  # RL, as in the paper's figures
    episodes = np.arange(best.shape[1]) * config.loop.trajectories
    return Curve(group.label, episodes, best, dotted, steps, group.mean("validation_steps"))
