"""Rows of Table 1: scores of a group of trials, paired differences, curves, and untrained baselines."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from aggrevated.config import Config
from aggrevated.core.statistics import estimate, estimate_probability_of_improvement
from aggrevated.parsing.parser import Corpus, Parser
from aggrevated.parsing.problem import AlgebraProblemSettings
from aggrevated.parsing.scoring import evaluate_next_symbol_baseline, evaluate_random_baseline
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated.plots.learning_curves import Curve
from aggrevated.reports import (
    format_markdown_table,
)
from aggrevated.reports.comparison import TrialGroup
from aggrevated.starts.supervised import SupervisedStartSettings
from aggrevated.storage import JsonDict
from aggrevated.tasks import FigureRow
from aggrevated.training.records import Metrics, Result
from aggrevated_experiments.paired_statistics import estimate_paired_difference

PAIRED_NOTE = (
    "Differences of UAS between two rows on the same pages with the same seed: their mean, its 95 % "
    "interval by Student's t, in how many trials the first is above the second, and how probable an improvement is "
    "(P(X > Y) + P(X = Y)/2 over all pairs of trials)."
)
COMPARISON_HEADER = "method | against | difference | 95 % interval | above in | probability of improvement"


def summarize_row(group: TrialGroup, row: FigureRow) -> JsonDict:
    """Return a method's test UAS over the trials with its interval, and the paper's number."""
    config = group.runs[0].config
    iterations = group.results[0].iterations
    scores = [result.more for result in group.results]
    uas, macro, exact = (np.array([score[of] for score in scores]) for of in ("uas_micro", "uas_macro", "exact_match"))
    return {
        "label": group.label,
        "method": config.method,
        "update": config.update.name,
        "policy": config.policy.name,
        "start": config.start.name,
        "trials": len(scores),
        **estimate(uas).to_fields("uas_micro"),
        "uas_macro": estimate(macro).value,
        "exact_match": estimate(exact).value,
        "paper": row.paper_value,
        "iterations": iterations,
        "pages": count_pages_seen(config, iterations),
        "of_start": sum(is_start_best(result) for result in group.results),
        "cpu_seconds": group.mean("cpu_seconds"),
    }


def is_start_best(result: Result) -> bool:
    """Return whether no learned policy exceeded the initial one on validation."""
    return result.best_return <= result.initial_return


def count_pages_seen(config: Config, iterations: int) -> int:
    """Return the number of pages learned from, those of a supervised start included."""
    started = config.start.demonstrations if isinstance(config.start, SupervisedStartSettings) else 0
    return started + iterations * config.loop.trajectories


def compare_groups(groups: Sequence[TrialGroup]) -> list[JsonDict]:
    """Compare AggreVaTeD with all others on the same policy, start and pages, and its updates pairwise."""
    pairs = [
        (one, other) for one in groups for other in groups if is_comparable(*(g.runs[0].config for g in (one, other)))
    ]
    return [compare_pair(one, other) for one, other in pairs]


def is_comparable(one: Config, other: Config) -> bool:
    """Return whether two configs are compared.

    Reinforcement learning is compared with the same update only, and other updates with the regular one.
    """
    matches = (one.policy.name, one.start.name, one.problem) == (other.policy.name, other.start.name, other.problem)
    if one.method != "aggrevated" or not matches:
        return False
    if other.method == "aggrevated":
        return other.update.name == "regular" != one.update.name
    return (
        other.method_spec.queries_expert or other.update.name == one.update.name or one.update.name == "exponentiated"
    )


def compare_pair(one: TrialGroup, other: TrialGroup) -> JsonDict:
    """Return the differences of UAS trial by trial: same pages, same seed."""
    a, b = (np.array([result.more["uas_micro"] for result in group.results]) for group in (one, other))
    return {
        "label": one.label,
        "against": other.label,
        **estimate_paired_difference(a, b).to_fields("difference"),
        "above": int((a > b).sum()),
        "trials": len(a),
        **estimate_probability_of_improvement(a, b).to_fields("improvement"),
        "each": (a - b).tolist(),
    }


def describe_comparisons(comparisons: Sequence[JsonDict]) -> str:
    """Return how many comparisons with other methods have an interval above, below or around 0."""
    others = [comparison for comparison in comparisons if not comparison["against"].startswith("AggreVaTeD")]
    above = sum(comparison["difference_low"] > 0 for comparison in others)
    below = sum(comparison["difference_high"] < 0 for comparison in others)
    return (
        f"Of {len(others)} comparisons of AggreVaTeD with other methods from the same start, {above} have an interval "
        f"above 0, {below} one below 0, and {len(others) - above - below} one with 0 in it. "
        f"{describe_comparisons_by_method(others)}"
    )


def describe_comparisons_by_method(comparisons: Sequence[JsonDict]) -> str:
    """Return how many comparisons with each other method have an interval above or below 0."""
    methods = [comparison["against"].split(",")[0] for comparison in comparisons]
    sentences = []
    for name in dict.fromkeys(methods):
        of_method = [comparison for comparison, method in zip(comparisons, methods, strict=True) if method == name]
        above = sum(comparison["difference_low"] > 0 for comparison in of_method)
        below = sum(comparison["difference_high"] < 0 for comparison in of_method)
        sentences.append(f"Against {name}: of {len(of_method)}, {above} above 0 and {below} below.")
    return " ".join(sentences)


def render_comparisons(comparisons: Sequence[JsonDict]) -> list[str]:
    """Return the comparisons as a table with a note on how to read it; [] without comparisons."""
    return (
        [
            format_markdown_table(COMPARISON_HEADER, [format_comparison_row(comparison) for comparison in comparisons]),
            PAIRED_NOTE,
        ]
        if comparisons
        else []
    )


def format_comparison_row(comparison: JsonDict) -> list[str]:
    """Return one line of the table of comparisons."""
    interval = f"{comparison['difference_low']:+.3f} to {comparison['difference_high']:+.3f}"
    wins = f"{comparison['above']} of {comparison['trials']}"
    return [
        comparison["label"],
        comparison["against"],
        f"**{comparison['difference']:+.3f}**",
        interval,
        wins,
        f"{comparison['improvement']:.2f}",
    ]


def get_validation_uas(metrics: Metrics) -> float:
    """Return the UAS on validation pages."""
    return metrics.current_return


def get_test_uas(metrics: Metrics) -> float:
    """Return the UAS on test pages."""
    return float(metrics.more["test_uas"])


def make_uas_curve(group: TrialGroup, value: Callable[[Metrics], float]) -> Curve:
    """Return a UAS of the validated policies over the pages seen."""
    trials = [[metrics for metrics in run.metrics() if metrics.more] for run in group.runs]
    pages = np.array([count_pages_seen(group.runs[0].config, metrics.iteration) for metrics in trials[0]])
    return Curve(group.label, pages, np.array([[value(metrics) for metrics in trial] for trial in trials]))


def summarize_curves(group: TrialGroup) -> JsonDict:
    """Return the validation and test curves of each trial, for JSON."""
    validation, test = (make_uas_curve(group, of) for of in (get_validation_uas, get_test_uas))
    both = {"validation_uas": validation.returns.tolist(), "test_uas": test.returns.tolist()}
    return {"label": group.label, "pages": validation.episodes.tolist(), **both}


def compute_baselines(configs: Sequence[Config]) -> list[JsonDict]:
    """Return UAS without learning on the test pages of all trials.

    One baseline makes each head the next symbol, the other takes random transitions.
    """
    parsers = [make_test_parser(config) for config in configs]
    real = any(isinstance(config.problem, AlgebraProblemSettings) and config.problem.crohme for config in configs)
    next_symbol, random = (
        estimate(np.array([evaluate(parser) for parser in parsers])).value
        for evaluate in (evaluate_next_symbol_baseline, evaluate_random_baseline)
    )
    return [
        {"label": "always the next head", "uas_micro": next_symbol, "paper": None},
        {"label": "random transitions", "uas_micro": random, "paper": None if real else 0.15},
    ]


def make_test_parser(config: Config) -> Parser:
    """Return a parser of the test pages."""
    problem = config.problem
    assert isinstance(problem, AlgebraProblemSettings)
    pages = problem.split().test
    return Parser(
        Corpus.from_pages(pages), np.arange(len(pages)), in_order=True, system=SYSTEMS[problem.transition_system]
    )


def to_public_dict(config: Config) -> JsonDict:
    """Return the settings without the path of data on this machine."""
    assert isinstance(config.problem, AlgebraProblemSettings)
    return config.with_settings(crohme=Path(config.problem.crohme).name).to_dict()


def format_row(row: JsonDict) -> list[str]:
    """Return one line of the page's table; baselines have only their UAS."""
    of_paper = "" if row["paper"] is None else f"{row['paper']:.3f}"
    if "trials" not in row:
        return [row["label"], f"{row['uas_micro']:.3f}", *[""] * 7, of_paper]
    interval = f"{row['uas_micro_low']:.3f} to {row['uas_micro_high']:.3f}"
    of_start = f"{row['of_start']} of {row['trials']}" if row["of_start"] else ""
    cost = [str(row["iterations"]), f"{row['pages']:,}", of_start, f"{row['cpu_seconds']:.0f}"]
    scores = [f"**{row['uas_micro']:.3f}**", interval, f"{row['uas_macro']:.3f}", f"{row['exact_match']:.2f}"]
    return [row["label"], *scores, *cost, of_paper]
