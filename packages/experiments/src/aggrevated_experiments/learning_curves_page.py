"""A figure of the paper, reproduced: learning curves of all its methods, tables, and the page for docs/results."""

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
    """Write NAME.json, .png, .svg and .md into the folder, and give the table."""
    table = make_comparison_table(groups, f"figure and page: {folder}/{name}.png and .md")
    courses = {group.label: make_cost_curves(group) for group in groups}
    facts: JsonDict = {
        "command": command,
        "versions": get_package_versions(("aggrevated", "torch", "numpy", "gymnasium", *task.packages)),
        "settings": {group.label: group.runs[0].config.to_dict() for group in groups},
        "tuning": list(tuned),
        **summarize_groups(groups, table, courses),
        "expert": {"return": table.rows[0]["expert_return"], "steps": find_expert_training_steps(task.name)},
        "reach": [
            *(make_group_reach_row(group, courses[group.label]) for group in groups),
            *load_peer_reach_rows(task, folder),
        ],
        "short": short,
    }
    plot_cost_curves(groups, courses, task, folder / name, facts["expert"]["return"])
    write_page(folder, name, facts, [*render_page(name, task, facts), *notes])
    return table


def write_with_peers(name: str, folder: Path) -> None:
    """The page of a task again, with what is known of other libraries by now; all else stays as it is."""
    facts = read_json(folder / f"{name}.json")
    task = find_task(name)
    own = [row for row in facts["reach"] if not is_peer_row(row)]
    facts["reach"] = [*own, *load_peer_reach_rows(task, folder)]
    write_page(folder, name, facts, render_page(name, task, facts))


def summarize_groups(
    groups: Sequence[TrialGroup], table: Table, courses: Mapping[str, Sequence[CostCurve]]
) -> JsonDict:
    """What the trials came to, how they went, and how they compare."""
    budget = groups[0].results[0].budget or min(own["simulator_steps"][-1] for each in courses.values() for own in each)
    areas = {group.label: compute_areas(group, courses[group.label], budget) for group in groups}
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
            {"label": group.label, **add_run_name(result.to_dict()), "area": float(own)}
            for group in groups
            for result, own in zip(group.results, areas[group.label], strict=True)
        ],
        "curves": courses,
    }


def make_cost_curves(group: TrialGroup) -> list[CostCurve]:
    """How each trial went."""
    return [make_cost_curve(run, result) for run, result in zip(group.runs, group.results, strict=True)]


def compute_areas(group: TrialGroup, courses: Sequence[CostCurve], budget: float) -> list[float]:
    """The ratio of the best policy so far, averaged over the budget, of each trial; 0 while the start goes on."""
    found = []
    for run, result, own in zip(group.runs, group.results, courses, strict=True):
        lowest = get_worst_return(run)
        expert = compute_target_return(run, result, 1.0)
        found.append((mean_best_return(own, budget, lowest) - lowest) / (expert - lowest))
    return found


def read_last_returns(group: TrialGroup) -> Array:
    """What the last policy of each trial earned on validation, be it the best or not."""
    ended = [
        [result.initial_return, *(line.current_return for line in run.metrics())][-1]
        for run, result in zip(group.runs, group.results, strict=True)
    ]
    return np.array(ended)


def make_group_reach_row(group: TrialGroup, courses: Sequence[CostCurve]) -> JsonDict:
    """What it took until the expert, and 1.05 times it, was reached on validation."""
    trials = list(zip(group.runs, group.results, courses, strict=True))
    found = {
        name: [find_steps_to_reach(own, compute_target_return(run, result, ratio)) for run, result, own in trials]
        for name, ratio in LEVELS.items()
    }
    return make_reach_row(group.label, found)


def load_peer_reach_rows(task: Task, folder: Path) -> list[JsonDict]:
    """The rows of other libraries, for a task that is done at equal budgets."""
    return [make_peer_reach_row(peer) for peer in load_peers(task.name, folder)] if task.protocol else []


def is_peer_row(row: JsonDict) -> bool:
    """Whether a row of what it took is another library's: only theirs say what was chosen."""
    return "chosen" in row


def make_peer_reach_row(peer: Peer) -> JsonDict:
    """The same of another library's algorithm, which counts environment steps."""
    found = {
        level: [{"simulator_steps": steps} for steps in column]
        for level, column in (("expert", peer.to_expert), ("more", peer.to_beyond))
    }
    return make_reach_row(peer.label, found) | {"chosen": peer.chosen, "budget": peer.budget}


def iter_comparisons(groups: Sequence[TrialGroup], areas: Mapping[str, Sequence[float]]) -> Iterator[JsonDict]:
    """The first method against each other one, and the second against the third: on the seeds that both have."""
    chosen = [(groups[0], other) for other in groups[1:]] + ([(groups[1], groups[2])] if len(groups) > 2 else [])
    for first, second in chosen:
        n = min(len(first.runs), len(second.runs))
        ratios = first.get_column("ratio")[:n], second.get_column("ratio")[:n]
        over = [np.array(areas[group.label][:n]) for group in (first, second)]
        yield {
            "label": f"{first.label} against {second.label}",
            "first": first.label,
            "second": second.label,
            "seeds": n,
            **estimate_paired_difference(*ratios).to_fields("difference"),
            **estimate_probability_of_improvement(*ratios).to_fields("improvement"),
            **estimate_paired_difference(*over).to_fields("area_difference"),
        }


def plot_cost_curves(
    groups: Sequence[TrialGroup], courses: Mapping[str, Sequence[CostCurve]], task: Task, path: Path, expert: float
) -> None:
    """The learning curves over all that is spent."""
    methods = [
        MethodCurves(group.label, courses[group.label], dotted=not group.runs[0].config.method_spec.queries_expert)
        for group in groups
    ]
    steps = [group.mean("validation_steps") / 1000 for group in groups]
    validation = (
        f"validation, which chooses the best so far, took {min(steps):,.0f} k to {max(steps):,.0f} k steps more"
    )
    plot_budgets(methods, expert, task.title, path, validation, groups[0].runs[0].config.problem.metric_name)


def render_page(name: str, task: Task, facts: JsonDict) -> list[str]:
    """The results page, in Markdown."""
    first = facts["settings"][facts["table"][0]["label"]] | {"version": __version__}  # older numbers are shown, too
    config = config_from_dict(first, f"{name}.json", task)
    return [
        f"# {task.title}: the paper's figure, reproduced{' in short' if '--quick' in facts['command'] else ''}",
        f"![Learning curves]({name}.png)",
        describe_figure(config),
        format_markdown_table(HEADER, [format_row(row) for row in facts["table"]]),
        describe_table(config),
        "## What it took",
        format_markdown_table(REACH_HEADER, [format_reach_row(row) for row in facts["reach"]]),
        describe_reach(facts),
        "## Who is better",
        format_markdown_table(PAIRED_HEADER, [format_comparison_row(row) for row in facts["paired"]]),
        "Over the seeds that both have: the mean of the differences with its 95 % interval by Student's t, and the "
        "probability that a trial of the first is better than one of the second (ties count half) by bootstrap; the "
        "last difference is of the ratio of the best policy so far, averaged over the budget, and tells who is sooner.",
        describe_tuning(facts["tuning"]),
    ]


def format_row(row: JsonDict) -> list[str]:
    """One line of its table."""
    returns = [f"{row[name]:.1f}" for name in ("best_return", "last_return", "test_return")]
    ratios = [f"**{row['ratio']:.3f}**", format_interval(row["ratio_low"], row["ratio_high"], 3)]
    areas = [f"{row['area']:.3f}", format_interval(row["area_low"], row["area_high"], 3)]
    bill = [make_thousands_column(name)(row) for name in ("simulator_steps", "validation_steps", "oracle_queries")]
    return [row["label"], str(row["trials"]), *returns, *ratios, *areas, *bill, f"{row['cpu_seconds']:.0f}"]


def format_reach_row(row: JsonDict) -> list[str]:
    """One line of the table of what it took."""
    spent = (f"expert_{name}" for name in ("episodes", "oracle_queries", "cpu_seconds"))
    others = [format_cost(row[name]) if name in row else "" for name in spent]
    expert, more = (
        [format_cost(row[name]), format_cost_interval(row, name), format_reached_count(row, name)] for name in LEVELS
    )
    return [row["label"], *expert, *others, *more]


def format_reached_count(row: JsonDict, level: str) -> str:
    return f"{row[f'{level}_reached']} of {row['trials']}"


def format_cost_interval(row: JsonDict, name: str) -> str:
    return f"{format_cost(row[f'{name}_low'])} to {format_cost(row[f'{name}_high'])}"


def format_cost(value: float | None) -> str:
    """A cost, for people."""
    return "never" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def format_comparison_row(row: JsonDict) -> list[str]:
    """One line of the table of comparisons."""
    numbers = []
    for name in ("difference", "improvement", "area_difference"):
        sign = "" if name == "improvement" else "+"
        numbers += [f"{row[name]:{sign}.3f}", f"{row[f'{name}_low']:{sign}.3f} to {row[f'{name}_high']:{sign}.3f}"]
    return [row["first"], row["second"], *numbers, str(row["seeds"])]


def describe_figure(config: Config) -> str:
    """The words below the figure."""
    world = require_control_problem(config.problem, "this page")
    spend = f"spend the same simulator steps, {config.loop.budget:,}, on start, roll-ins and oracle"
    ends = spend if config.loop.budget else f"have the same {config.loop.iterations} iterations"
    return (
        f"The best policy so far on validation episodes, H = {world.horizon}: interquartile mean of the trials and "
        "95 % bootstrap band; the expert is the dashed line, reinforcement learning dotted. Every method may "
        f"{ends}."
    )


def describe_table(config: Config) -> str:
    """The words below the table."""
    world = require_control_problem(config.problem, "this page")
    steps_saved = f"of steps saved, (R + H)/(R* + H) with H = {world.horizon}, since returns are negative"
    return (
        "Numbers are interquartile means over the trials, each with its own 95 % bootstrap interval; what was spent is "
        "a mean. *Best so far* is the paper's metric, measured on validation episodes, and optimistic because it is a "
        "maximum; the *last policy* is the one that the run ended with, on the same episodes. "
        f"The *chosen policy* is the best one, on {world.n_test_episodes} fresh episodes. "
        f"The *ratio* is {steps_saved if world.worst_return(world.horizon) else 'R/R*'}, of the chosen "
        "policy; over the "
        "budget it is that of the best so far, on average over all steps that may be spent (without a budget: over as "
        "many as every trial has), and 0 while a start goes on. *Simulator steps* are of "
        "start, roll-ins and oracle; *validation steps* come on top. CPU seconds are of a core that others shared."
    )


def describe_reach(facts: JsonDict) -> str:
    """The words below the table of what it took."""
    made = facts["expert"].get("steps")
    bill = f" Making the expert took {made:,} environment steps, which no row has in it." if made else ""
    if peers := [f"{row['label']}, at most {row['budget']:,} steps" for row in facts["reach"] if is_peer_row(row)]:
        bill += (
            f" The last rows ({'; '.join(peers)}) are [measured apart](../../benchmarks/README.md"
            "#tuned-peers-to-our-experts-and-beyond): each is the best of three settings, and it is the most likely "
            "actions of its latest policy that are measured, where the rows above sample; a point that passes the "
            "budget still counts; they say nothing of episodes and questions."
        )
    return (
        "Medians over the trials of what had been spent when the best policy so far, on validation, first earned what "
        "the expert earns, and a ratio of 1.05; a trial that never did counts as later than all that did. A method "
        "that ends near its expert's level is there sooner or later by chance." + bill
    )


def describe_tuning(tuned: Sequence[JsonDict]) -> str:
    """Which settings were tried, in words."""
    if not tuned:
        return "This page tunes nothing itself."
    found = [f"{one['label']}: {one['setting']} {one['chosen']:g} of {format_tried_values(one)}" for one in tuned]
    seeds = ", ".join(map(str, tuned[0]["tried"][0]["seeds"]))
    return (
        f"Tuned with a budget of {tuned[0]['budget']:,} on seeds {seeds}, by the best return so far averaged over it: "
        f"{'; '.join(found)}. What is chosen at an end of its three values might do better beyond it, and what is "
        "better than its start only after that budget is chosen by chance. "
        "All that was tried is in the JSON. A method that is not named here has no setting that was tuned."
    )


def format_tried_values(tuned: JsonDict) -> str:
    return "/".join(f"{one['value']:g}" for one in tuned["tried"])
