"""Comparison of methods: returns, and the cost at which a learner became as good as its expert."""

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
CostCurve: TypeAlias = dict[str, list[float]]  # cost and return of a trial at each improvement
LEVELS = {"expert": 1.0, "more": 1.05}  # by name: fraction of the expert's return


def fill_missing_iterations(lines: Sequence[Metrics]) -> list[Metrics]:
    """Return one line per iteration; a missing line is replaced by the next one."""
    filled = list[Metrics]()
    for line in lines:
        filled += [line] * (line.iteration - len(filled))
    return filled


def make_cost_curve(run: Run, result: Result) -> CostCurve:
    """Return the cost and the validation return whenever the best policy so far improved.

    The first point is the initial policy, the last the end of the run; between points nothing changed.
    """
    k = run.config.loop.trajectories
    best = result.initial_return
    # The expert takes every step of a start: steps are also queries. Its seconds are not recorded.
    queries = started = result.start_simulator_steps
    points = [(started, 0, queries, 0.0, 0, best)]
    lines = fill_missing_iterations(run.metrics())
    for line in lines:
        if line.best_return > best or line is lines[-1]:
            best = line.best_return
            costs = (line.simulator_steps, line.iteration * k, line.oracle_queries, line.cpu_seconds)
            points.append((*costs, line.iteration, best))
    names = (*COST_AXES, "iteration", "best_return")
    return {name: list(column) for name, column in zip(names, zip(*points, strict=True), strict=True)}


def get_worst_return(run: Run) -> float:
    """Return the return of the worst policy, where the problem has a ratio; else 0."""
    problem = run.config.problem
    return problem.worst_return(problem.horizon) if isinstance(problem, ControlProblem) else 0.0


def compute_target_return(run: Run, result: Result, ratio: float) -> float:
    """Return the return at this ratio of the way from the lowest to the expert's return."""
    expert = float(result.to_dict()["expert_return"])
    lowest = get_worst_return(run)
    return lowest + ratio * (expert - lowest)


def find_steps_to_reach(curve: CostCurve, level: float) -> dict[str, float | None]:
    """Return the cost on each axis when the best so far first reached the level; None if it never did."""
    at = next((i for i, value in enumerate(curve["best_return"]) if value >= level), None)
    return {name: None if at is None else curve[name][at] for name in COST_AXES}


def mean_best_return(curve: CostCurve, budget: float, before: float) -> float:
    """Return the best return so far, averaged over the budget of simulator steps.

    Until the start is paid for, the return is `before`.
    """
    at = np.clip([0.0, *curve["simulator_steps"], budget], 0.0, budget)
    return float(np.diff(np.maximum.accumulate(at)) @ np.array([before, *curve["best_return"]]) / budget)


def make_reach_row(label: str, costs_by_level: Mapping[str, Sequence[Mapping[str, float | None]]]) -> JsonDict:
    """Return one method's row: per level, median costs with intervals and how many trials reached it."""
    row: JsonDict = {"label": label}
    for level, trials in costs_by_level.items():
        row[f"{level}_reached"] = sum(trial["simulator_steps"] is not None for trial in trials)
        row["trials"] = len(trials)
        for name in (name for name in COST_AXES if name in trials[0]):
            key = level if name == "simulator_steps" else f"{level}_{name}"
            row |= estimate_median_time([trial[name] for trial in trials]).to_fields(key)
    return row


@dataclass(frozen=True)
class TrialGroup:
    """The trials of one method, all of them finished."""

    label: str
    runs: list[Run]
    results: list[Result]

    @classmethod
    def from_runs(cls, runs: list[Run], prefix: str = "") -> TrialGroup:
        """Return the group of these runs.

        Raises:
            DataError: a run has not ended.
        """
        results = []
        for run in runs:
            result = run.result()
            if result is None:
                raise DataError(f"{run.folder} has not ended; finish it with 'aggrevated resume {run.folder}'")
            results.append(result)
        return cls(prefix + runs[0].label, runs, results)

    def get_column(self, name: str) -> Array:
        """Return one number of each trial, [trials].

        Raises:
            DataError: a result lacks this number.
        """
        values = [result.to_dict().get(name, "absent") for result in self.results]
        for run, value in zip(self.runs, values, strict=True):
            if not has_exact_type(value, float) and value is not None:
                raise DataError(f"{run.folder}/result.json has no number for {name}; restore it, or start a new run")
        return np.array(values, float)

    def mean(self, name: str) -> float:
        """Return the mean of one number over the trials."""
        return float(self.get_column(name).mean())


RETURN_FIELDS = ("best_return", "test_return")
MEANS = ("expert_return", *COST_FIELDS, "oracle_queries", "seconds", "cpu_seconds")


def summarize_group(group: TrialGroup) -> JsonDict:
    """Return interquartile means over the trials of the returns and the ratio, with their intervals.

    Where returns have no ratio, the gain over the expert takes its place. Costs are means.
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
        **{field: group.mean(field) for field in MEANS},
        **estimate(compared).to_fields(name),
    }


def describe_compared_quantity(group: TrialGroup) -> str:
    """Return "ratio", or "gain" over the expert where returns have no ratio."""
    return "ratio" if group.runs[0].config.problem.has_ratio else "gain"


def compute_relative_to_expert(group: TrialGroup) -> Array:
    """Return the ratio or the gain of each trial, [trials]."""
    if describe_compared_quantity(group) == "ratio":
        return group.get_column("ratio")
    return group.get_column("test_return") - group.get_column("expert_return")


def make_comparison_table(groups: Sequence[TrialGroup], closing: str) -> Table:
    """Return the table of all groups: best validation return, test return and comparison with the expert."""
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
    """Format an interval for people."""
    return f"{low:.{digits}f}-{high:.{digits}f}" if low >= 0 else f"{low:.{digits}f} to {high:.{digits}f}"


def plot_groups(groups: Sequence[TrialGroup], path: Path) -> None:
    """Plot the learning curves of all groups in one figure.

    Raises:
        UsageError: the runs are of different tasks.
    """
    configs = [run.config for group in groups for run in group.runs]
    names = {config.task.name for config in configs}
    if len(names) > 1:
        raise UsageError(f"the runs are of different tasks ({', '.join(sorted(names))}); compare runs of one task")
    experts = {config.problem.expert_identity() for config in configs}
    expert_return = float(np.mean([group.mean("expert_return") for group in groups]))
    expert = expert_return if len(experts) == 1 else None  # different experts have no common line
    # an oracle that simulates has a cost that episodes do not show
    with_steps = any(group.get_column("oracle_steps").any() for group in groups)
    curves = [make_curve(group, with_steps) for group in groups]
    plot_learning_curves(curves, expert, configs[0].task.title, path, configs[0].problem.metric_name)


def make_curve(group: TrialGroup, with_steps: bool) -> Curve:
    """Return the best return so far over episodes, from the initial policy on.

    `with_steps` adds simulator steps.
    """
    config = group.runs[0].config
    trials = [fill_missing_iterations(run.metrics()) for run in group.runs]
    first = [result.initial_return for result in group.results]
    best = pad_curves([[one, *(line.best_return for line in lines)] for one, lines in zip(first, trials, strict=True)])
    steps = (
        pad_curves([[line.simulator_steps for line in lines] for lines in trials]).mean(axis=0) if with_steps else None
    )
    dotted = not config.method_spec.queries_expert  # RL, as in the paper's figures
    episodes = np.arange(best.shape[1]) * config.loop.trajectories
    return Curve(group.label, episodes, best, dotted, steps, group.mean("validation_steps"))
