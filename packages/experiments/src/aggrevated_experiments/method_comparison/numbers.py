"""The numbers of a study of methods side by side: of a method in a case, of a trial, of a difference."""

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

TIME_TO_EXPERT_KEYS = {
    name: f"{name}_to_expert" for name in ("steps", "episodes", "queries")
}  # how soon the expert is reached
COUNT_KEYS = ("simulator_steps", "oracle_steps", "validation_steps", "oracle_queries", "iterations")


def summarize_method(figure: StudySpec, label: str, row: FigureRow, group: TrialGroup, first: Array) -> JsonDict:
    """All that is known of one method in one case."""
    final = figure.compute_final_scores(group)
    name = figure.get_measure_name(group)
    pairs = zip(group.runs, group.results, final, strict=True)
    trials = [summarize_trial(run, result, figure.within) | {name: float(value)} for run, result, value in pairs]
    found = estimate(final)
    until = {one: summarize_time_to_expert(trials, one) for one in TIME_TO_EXPERT_KEYS.values()}
    return {
        "label": label,
        "method": row.method,
        "update": row.update,
        "imitates": group.runs[0].config.method_spec.queries_expert,
        "iqm": found.value,
        "low": found.low,
        "high": found.high,
        "mean": float(final.mean()),
        "reached": sum(trial["steps_to_expert"] is not None for trial in trials),
        **until,
        "to_first": summarize_paired_difference(final, first),
        "trials": trials,
    }


def summarize_trial(run: Run, result: Result, within: float) -> JsonDict:
    """One trial: what it earned, what it spent, and when it reached the expert; None if it never did."""
    facts = result.to_dict()
    spent = find_steps_to_reach(
        make_cost_curve(run, result), compute_expert_threshold(run, float(facts["expert_return"]), within)
    )
    return {
        "seed": result.seed,
        **{name: facts[name] for name in ("test_return", "expert_return", "best_return", "initial_return")},
        **{name: facts[name] for name in COUNT_KEYS},
        "budget": result.budget,
        "episodes": result.iterations * run.config.loop.trajectories,
        "steps_to_expert": spent["simulator_steps"],
        "episodes_to_expert": spent["episodes"],
        "queries_to_expert": spent["oracle_queries"],
        "weights_sha256": result.weights_sha256,
    }


def compute_expert_threshold(run: Run, expert: float, within: float) -> float:
    """The return that counts as the expert's."""
    return expert - within * (expert - get_worst_return(run) if run.config.problem.has_ratio else 1.0)


def summarize_time_to_expert(trials: Sequence[JsonDict], one: str) -> JsonDict:
    """The median, with what was not reached above all that was, and its own interval; None: not reached."""
    found = estimate_median_time([trial[one] for trial in trials])
    return estimate_to_dict(found, "median")


def summarize_paired_difference(values: Array, first: Array) -> JsonDict:
    """The mean difference to the first method over the same seeds, and its own interval."""
    return estimate_to_dict(estimate_paired_difference(values, first), "difference")


def estimate_to_dict(found: Estimate, name: str) -> JsonDict:
    """For JSON; None: never."""
    numbers = {name: found.value, "low": found.low, "high": found.high}
    return {key: None if np.isinf(value) else value for key, value in numbers.items()}
