"""Numbers of a method comparison: of a method in a case, of a trial, of a difference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.statistics import Estimate, estimate, estimate_median_time
from aggrevated.reports.comparison import TrialGroup, find_steps_to_reach, get_worst_return, make_cost_curve
from aggrevated.storage import JsonDict
from aggrevated.tasks import FigureRow
from aggrevated.training.records import Result
from aggrevated.training.run_folder import Run
from aggrevated_experiments.method_comparison.spec import StudySpec
from aggrevated_experiments.paired_statistics import estimate_paired_difference

# keys of the costs at which the expert was reached
TIME_TO_EXPERT_KEYS = {name: f"{name}_to_expert" for name in ("steps", "episodes", "queries")}
COUNT_KEYS = ("simulator_steps", "oracle_steps", "validation_steps", "oracle_queries", "iterations")


def summarize_method(figure: StudySpec, label: str, row: FigureRow, group: TrialGroup, first: Array) -> JsonDict:
    """Return all numbers of one method in one case; `first` are the final scores of the first method."""
    final = figure.compute_final_scores(group)
    name = figure.get_measure_name(group)
    pairs = zip(group.runs, group.results, final, strict=True)
    trials = [summarize_trial(run, result, figure.within) | {name: float(value)} for run, result, value in pairs]
    score = estimate(final)
    times = {key: summarize_time_to_expert(trials, key) for key in TIME_TO_EXPERT_KEYS.values()}
    return {
        "label": label,
        "method": row.method,
        "update": row.update,
        "imitates": group.runs[0].config.method_spec.queries_expert,
        "iqm": score.value,
        "low": score.low,
        "high": score.high,
        "mean": float(final.mean()),
        "reached": sum(trial["steps_to_expert"] is not None for trial in trials),
        **times,
        "to_first": summarize_paired_difference(final, first),
        "trials": trials,
    }


def summarize_trial(run: Run, result: Result, within: float) -> JsonDict:
    """Return one trial's returns and costs, with None for an expert's return that was never reached."""
    record = result.to_dict()
    costs = find_steps_to_reach(
        make_cost_curve(run, result), compute_expert_threshold(run, float(record["expert_return"]), within)
    )
    return {
        "seed": result.seed,
        **{name: record[name] for name in ("test_return", "expert_return", "best_return", "initial_return")},
        **{name: record[name] for name in COUNT_KEYS},
        "budget": result.budget,
        "episodes": result.iterations * run.config.loop.trajectories,
        "steps_to_expert": costs["simulator_steps"],
        "episodes_to_expert": costs["episodes"],
        "queries_to_expert": costs["oracle_queries"],
        "weights_sha256": result.weights_sha256,
    }


def compute_expert_threshold(run: Run, expert: float, within: float) -> float:
    """Return the return that counts as having reached the expert."""
    return expert - within * (expert - get_worst_return(run) if run.config.problem.has_ratio else 1.0)


def summarize_time_to_expert(trials: Sequence[JsonDict], key: str) -> JsonDict:
    """Return the median and its interval; trials that never reached the expert rank last.

    None stands for never.
    """
    median = estimate_median_time([trial[key] for trial in trials])
    return estimate_to_dict(median, "median")


def summarize_paired_difference(values: Array, first: Array) -> JsonDict:
    """Return the mean difference from the first method over the same seeds, with its interval."""
    return estimate_to_dict(estimate_paired_difference(values, first), "difference")


def estimate_to_dict(estimated: Estimate, name: str) -> JsonDict:
    """Return an estimate for JSON, with None instead of infinity."""
    numbers = {name: estimated.value, "low": estimated.low, "high": estimated.high}
    return {key: None if np.isinf(value) else value for key, value in numbers.items()}
