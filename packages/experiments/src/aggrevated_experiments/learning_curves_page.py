"""Page of a reproduced figure of the paper: learning curves of all its methods, and tables."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from aggrevated import __version__
from aggrevated.config import Config
from aggrevated.config.resolver import config_from_dict
from aggrevated.core.arrays import Array
from aggrevated.core.statistics import estimate, estimate_probability_of_improvement
from aggrevated.problems.control import require_control_problem
from aggrevated.reports import (
    Table,
    add_run_name,
    format_markdown_table,
    get_package_versions,
    make_thousands_column,
    write_page,
)
from aggrevated.reports.comparison import (
    LEVELS,
    CostCurve,
    TrialGroup,
    compute_target_return,
    find_steps_to_reach,
    format_interval,
    get_worst_return,
    make_comparison_table,
    make_cost_curve,
    make_reach_row,
    mean_best_return,
)
from aggrevated.storage import JsonDict, read_json
from aggrevated.tasks import Task, find_task
from aggrevated_experiments.paired_statistics import estimate_paired_difference
from aggrevated_experiments.peers import Peer, find_expert_training_steps, load_peers
from aggrevated_experiments.plots.budgets import MethodCurves, plot_budgets

HEADER = (
    "method | trials | best so far | last policy | chosen policy, fresh | ratio | 95 % interval | "
    "mean ratio over the budget | 95 % interval | simulator steps | validation steps | questions | CPU s"
)
REACH_HEADER = (
    "method | the expert: steps | 95 % interval | trials | episodes | questions | CPU s | 1.05 × it: steps | "
    "95 % interval | trials"
)
PAIRED_HEADER = (
    "first | second | difference of ratios | 95 % interval | P(first is better) | 95 % interval | "
    "difference over the budget | 95 % interval | seeds"
)


def write_learning_curves_page(
    name: str,
    groups: Sequence[TrialGroup],
    task: Task,
    command: str,
    folder: Path,
    tuned: Sequence[JsonDict],
    short: JsonDict,
    notes: Sequence[str] = (),
) -> Table:
    """Write NAME.json, .png, .svg and .md into the folder, and return the table.

    Args:
        name: name of the figure and of its files.
        groups: the finished trials of each method.
        task: the task of all groups.
        command: the command that reproduces the page.
        folder: folder of the report.
        tuned: the tuning of each tuned method.
        short: settings and SHA-256 of a short run.
        notes: further paragraphs of the page.
    """
    table = make_comparison_table(groups, f"figure and page: {folder}/{name}.png and .md")
    cost_curves = {group.label: make_cost_curves(group) for group in groups}
    results: JsonDict = {
        "command": command,
        "versions": get_package_versions(("aggrevated", "torch", "numpy", "gymnasium", *task.packages)),
        "settings": {group.label: group.runs[0].config.to_dict() for group in groups},
        "tuning": list(tuned),
        **summarize_groups(groups, table, cost_curves),
        "expert": {"return": table.rows[0]["expert_return"], "steps": find_expert_training_steps(task.name)},
        "reach": [
            *(make_group_reach_row(group, cost_curves[group.label]) for group in groups),
            *load_peer_reach_rows(task, folder),
        ],
        "short": short,
    }
    plot_cost_curves(groups, cost_curves, task, folder / name, results["expert"]["return"])
    write_page(folder, name, results, [*render_page(name, task, results), *notes])
    return table


def write_with_peers(name: str, folder: Path) -> None:
    """Rewrite the page of a task with the current results of other libraries; all else stays as it is."""
    results = read_json(folder / f"{name}.json")
    task = find_task(name)
    method_rows = [row for row in results["reach"] if not is_peer_row(row)]
    results["reach"] = [*method_rows, *load_peer_reach_rows(task, folder)]
    write_page(folder, name, results, render_page(name, task, results))


def summarize_groups(
    groups: Sequence[TrialGroup], table: Table, cost_curves: Mapping[str, Sequence[CostCurve]]
) -> JsonDict:
    """Return the scores, the cost curves and the comparisons of all trials."""
    budget = groups[0].results[0].budget or min(
        curve["simulator_steps"][-1] for curves in cost_curves.values() for curve in curves
    )
    areas = {group.label: compute_areas(group, cost_curves[group.label], budget) for group in groups}
    return {
        "seeds": [run.config.loop.seed for run in max((group.runs for group in groups), key=len)],
        "table": [
            add_run_name(row)
            | estimate(np.array(areas[group.label])).to_fields("area")
            | estimate(read_last_returns(group)).to_fields("last_return")
            for group, row in zip(groups, table.rows, strict=True)
        ],
        "paired": list(iter_comparisons(groups, areas)),
        "trials": [
            {"label": group.label, **add_run_name(result.to_dict()), "area": float(area)}
            for group in groups
            for result, area in zip(group.results, areas[group.label], strict=True)
        ],
        "curves": cost_curves,
    }


def make_cost_curves(group: TrialGroup) -> list[CostCurve]:
    """Return the cost curve of each trial."""
    return [make_cost_curve(run, result) for run, result in zip(group.runs, group.results, strict=True)]


def compute_areas(group: TrialGroup, cost_curves: Sequence[CostCurve], budget: float) -> list[float]:
    """Return each trial's ratio of the best policy so far, averaged over the budget; 0 during the start."""
    areas = []
    for run, result, curve in zip(group.runs, group.results, cost_curves, strict=True):
        lowest = get_worst_return(run)
        expert = compute_target_return(run, result, 1.0)
        areas.append((mean_best_return(curve, budget, lowest) - lowest) / (expert - lowest))
    return areas


def read_last_returns(group: TrialGroup) -> Array:
    """Return the validation return of each trial's last policy, [trials]."""
    last_returns = [
        [result.initial_return, *(line.current_return for line in run.metrics())][-1]
        for run, result in zip(group.runs, group.results, strict=True)
    ]
    return np.array(last_returns)


def make_group_reach_row(group: TrialGroup, cost_curves: Sequence[CostCurve]) -> JsonDict:
    """Return the costs at which a method's trials reached the expert, and 1.05 times it, on validation."""
    trials = list(zip(group.runs, group.results, cost_curves, strict=True))
    costs_by_level = {
        name: [find_steps_to_reach(curve, compute_target_return(run, result, ratio)) for run, result, curve in trials]
        for name, ratio in LEVELS.items()
    }
    return make_reach_row(group.label, costs_by_level)


def load_peer_reach_rows(task: Task, folder: Path) -> list[JsonDict]:
    """Return the rows of other libraries; none for a task without equal budgets."""
    return [make_peer_reach_row(peer) for peer in load_peers(task.name, folder)] if task.protocol else []


def is_peer_row(row: JsonDict) -> bool:
    """Return whether a row is of another library; only such rows name the chosen setting."""
    return "chosen" in row


def make_peer_reach_row(peer: Peer) -> JsonDict:
    """Return the row of another library's algorithm, which counts environment steps."""
    steps_by_level = {
        level: [{"simulator_steps": steps} for steps in column]
        for level, column in (("expert", peer.to_expert), ("more", peer.to_beyond))
    }
    return make_reach_row(peer.label, steps_by_level) | {"chosen": peer.chosen, "budget": peer.budget}


def iter_comparisons(groups: Sequence[TrialGroup], areas: Mapping[str, Sequence[float]]) -> Iterator[JsonDict]:
    """Yield paired comparisons: the first method with each other one, and the second with the third."""
    pairs = [(groups[0], other) for other in groups[1:]] + ([(groups[1], groups[2])] if len(groups) > 2 else [])
    for first, second in pairs:
        n = min(len(first.runs), len(second.runs))
        ratios = first.get_column("ratio")[:n], second.get_column("ratio")[:n]
        pair_areas = [np.array(areas[group.label][:n]) for group in (first, second)]
        yield {
            "label": f"{first.label} against {second.label}",
            "first": first.label,
            "second": second.label,
            "seeds": n,
            **estimate_paired_difference(*ratios).to_fields("difference"),
            **estimate_probability_of_improvement(*ratios).to_fields("improvement"),
            **estimate_paired_difference(*pair_areas).to_fields("area_difference"),
        }


def plot_cost_curves(
    groups: Sequence[TrialGroup], cost_curves: Mapping[str, Sequence[CostCurve]], task: Task, path: Path, expert: float
) -> None:
    """Plot the learning curves over each kind of cost."""
    methods = [
        MethodCurves(group.label, cost_curves[group.label], dotted=not group.runs[0].config.method_spec.queries_expert)
        for group in groups
    ]
    steps = [group.mean("validation_steps") / 1000 for group in groups]
    validation = (
        f"validation, which chooses the best so far, took {min(steps):,.0f} k to {max(steps):,.0f} k steps more"
    )
    plot_budgets(methods, expert, task.title, path, validation, groups[0].runs[0].config.problem.metric_name)


def render_page(name: str, task: Task, results: JsonDict) -> list[str]:
    """Return the paragraphs of the results page, in Markdown."""
    first = results["settings"][results["table"][0]["label"]] | {
        "version": __version__
    }  # accepts results of older versions
    config = config_from_dict(first, f"{name}.json", task)
    return [
        f"# {task.title}: the paper's figure, reproduced{' in short' if '--quick' in results['command'] else ''}",
        f"![Learning curves]({name}.png)",
        describe_figure(config),
        format_markdown_table(HEADER, [format_row(row) for row in results["table"]]),
        describe_table(config),
        "## What it took",
        format_markdown_table(REACH_HEADER, [format_reach_row(row) for row in results["reach"]]),
        describe_reach(results),
        "## Who is better",
        format_markdown_table(PAIRED_HEADER, [format_comparison_row(row) for row in results["paired"]]),
        "Over the seeds that both have: the mean of the differences with its 95 % interval by Student's t, and the "
        "probability that a trial of the first is better than one of the second (ties count half) by bootstrap; the "
        "last difference is of the ratio of the best policy so far, averaged over the budget, and tells who is sooner.",
        describe_tuning(results["tuning"]),
    ]


def format_row(row: JsonDict) -> list[str]:
    """Return one line of the main table."""
    returns = [f"{row[name]:.1f}" for name in ("best_return", "last_return", "test_return")]
    ratios = [f"**{row['ratio']:.3f}**", format_interval(row["ratio_low"], row["ratio_high"], 3)]
    areas = [f"{row['area']:.3f}", format_interval(row["area_low"], row["area_high"], 3)]
    costs = [make_thousands_column(name)(row) for name in ("simulator_steps", "validation_steps", "oracle_queries")]
    return [row["label"], str(row["trials"]), *returns, *ratios, *areas, *costs, f"{row['cpu_seconds']:.0f}"]


def format_reach_row(row: JsonDict) -> list[str]:
    """Return one line of the table of costs to reach the expert."""
    fields = (f"expert_{name}" for name in ("episodes", "oracle_queries", "cpu_seconds"))
    others = [format_cost(row[name]) if name in row else "" for name in fields]
    expert, more = (
        [format_cost(row[name]), format_cost_interval(row, name), format_reached_count(row, name)] for name in LEVELS
    )
    return [row["label"], *expert, *others, *more]


def format_reached_count(row: JsonDict, level: str) -> str:
    return f"{row[f'{level}_reached']} of {row['trials']}"


def format_cost_interval(row: JsonDict, name: str) -> str:
    return f"{format_cost(row[f'{name}_low'])} to {format_cost(row[f'{name}_high'])}"


def format_cost(value: float | None) -> str:
    """Format a cost for people."""
    return "never" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def format_comparison_row(row: JsonDict) -> list[str]:
    """Return one line of the table of comparisons."""
    numbers = []
    for name in ("difference", "improvement", "area_difference"):
        sign = "" if name == "improvement" else "+"
        numbers += [f"{row[name]:{sign}.3f}", f"{row[f'{name}_low']:{sign}.3f} to {row[f'{name}_high']:{sign}.3f}"]
    return [row["first"], row["second"], *numbers, str(row["seeds"])]


def describe_figure(config: Config) -> str:
    """Return the paragraph below the figure."""
    problem = require_control_problem(config.problem, "this page")
    equal_budget = f"spend the same simulator steps, {config.loop.budget:,}, on start, roll-ins and oracle"
    limit = equal_budget if config.loop.budget else f"have the same {config.loop.iterations} iterations"
    return (
        f"The best policy so far on validation episodes, H = {problem.horizon}: interquartile mean of the trials and "
        "95 % bootstrap band; the expert is the dashed line, reinforcement learning dotted. Every method may "
        f"{limit}."
    )


def describe_table(config: Config) -> str:
    """Return the paragraph below the table."""
    problem = require_control_problem(config.problem, "this page")
    steps_saved = f"of steps saved, (R + H)/(R* + H) with H = {problem.horizon}, since returns are negative"
    return (
        "Numbers are interquartile means over the trials, each with its own 95 % bootstrap interval; what was spent is "
        "a mean. *Best so far* is the paper's metric, measured on validation episodes, and optimistic because it is a "
        "maximum; the *last policy* is the one that the run ended with, on the same episodes. "
        f"The *chosen policy* is the best one, on {problem.n_test_episodes} fresh episodes. "
        f"The *ratio* is {steps_saved if problem.worst_return(problem.horizon) else 'R/R*'}, of the chosen "
        "policy; over the "
        "budget it is that of the best so far, on average over all steps that may be spent (without a budget: over as "
        "many as every trial has), and 0 while a start goes on. *Simulator steps* are of "
        "start, roll-ins and oracle; *validation steps* come on top. CPU seconds are of a core that others shared."
    )


def describe_reach(results: JsonDict) -> str:
    """Return the paragraph below the table of costs to reach the expert."""
    expert_steps = results["expert"].get("steps")
    remarks = (
        f" Making the expert took {expert_steps:,} environment steps, which no row has in it." if expert_steps else ""
    )
    if peers := [f"{row['label']}, at most {row['budget']:,} steps" for row in results["reach"] if is_peer_row(row)]:
        remarks += (
            f" The last rows ({'; '.join(peers)}) are [measured apart](../../benchmarks/README.md"
            "#tuned-peers-to-our-experts-and-beyond): each is the best of three settings, and it is the most likely "
            "actions of its latest policy that are measured, where the rows above sample; a point that passes the "
            "budget still counts; they say nothing of episodes and questions."
        )
    return (
        "Medians over the trials of what had been spent when the best policy so far, on validation, first earned what "
        "the expert earns, and a ratio of 1.05; a trial that never did counts as later than all that did. A method "
        "that ends near its expert's level is there sooner or later by chance." + remarks
    )


def describe_tuning(tuned: Sequence[JsonDict]) -> str:
    """Return the paragraph on the settings that were tried."""
    if not tuned:
        return "This page tunes nothing itself."
    choices = [f"{row['label']}: {row['setting']} {row['chosen']:g} of {format_tried_values(row)}" for row in tuned]
    seeds = ", ".join(map(str, tuned[0]["tried"][0]["seeds"]))
    return (
        f"Tuned with a budget of {tuned[0]['budget']:,} on seeds {seeds}, by the best return so far averaged over it: "
        f"{'; '.join(choices)}. What is chosen at an end of its three values might do better beyond it, and what is "
        "better than its start only after that budget is chosen by chance. "
        "All that was tried is in the JSON. A method that is not named here has no setting that was tuned."
    )


def format_tried_values(tuned: JsonDict) -> str:
    return "/".join(f"{trial['value']:g}" for trial in tuned["tried"])
