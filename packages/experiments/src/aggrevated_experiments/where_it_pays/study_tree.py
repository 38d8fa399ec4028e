"""Where it pays: the paper's tree at depths from 4 to 20, with and without an expert."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aggrevated.core.errors import UsageError
from aggrevated.core.hardware import single_thread
from aggrevated.core.statistics import estimate_median_time
from aggrevated.reports import Table, format_markdown_table, get_package_versions, make_text_column, write_page
from aggrevated.reports.comparison import TrialGroup
from aggrevated.storage import JsonDict
from aggrevated_experiments.figures import Figure, Request
from aggrevated_experiments.method_comparison.numbers import estimate_to_dict
from aggrevated_experiments.method_comparison.page import fill_never, format_steps
from aggrevated_experiments.method_comparison.summary_text import join_with_and
from aggrevated_experiments.plots.method_comparison import Panel, Series, plot_method_comparison
from aggrevated_experiments.theory.study import fit_slope
from aggrevated_experiments.theory.time_to_zero_regret import (
    CONTENDERS,
    GAP,
    ZERO_REGRET_SHARE,
    Contender,
    compute_random_policy_regret,
    compute_rl_lower_bound,
    count_episodes_to_zero_regret,
    count_expert_episodes,
)
from aggrevated_experiments.theory.tree import make_hard_trees

DEPTHS = tuple(range(4, 21, 2))
QUICK_DEPTHS = (4, 6, 8)
TREES = 5
QUICK_TREES = 2
RL_LOWER_BOUND_LABEL = "no RL below, in the mean: Theorem special_lower"


@dataclass(frozen=True)
class TreeStudy(Figure):
    """Episodes until play is free of regret, over the depth."""

    name: str = "pays-tree"
    title: str = "The tree: episodes until play is free of regret"
    question: str = "How do the episodes grow with the depth of a tree, with and without an expert that knows Q*?"

    def choose_folder(self, request: Request) -> Path:
        if request.out and request.report:
            raise UsageError(f"{self.name} has no runs, only its report; give --report or --out, not both")
        return super().choose_folder(request)

    def write(self, groups: Sequence[TrialGroup], request: Request, folder: Path) -> Table:
        depths, trees = (QUICK_DEPTHS, QUICK_TREES) if request.quick else (DEPTHS, TREES)
        cases = []
        for depth in depths:
            request.note(f"{self.name}: depth {depth}, {2 ** (depth - 1):,} leaves")
            cases.append(measure_depth(depth, trees))
        results = {
            "command": request.format_command(self),
            "versions": get_package_versions(("aggrevated", "numpy")),
            "seeds": [0],
            "title": self.title,
            "question": self.question,
            "answer": describe_answer(cases),
            "trees": trees,
            "gap": GAP,
            "share_of_random_play": ZERO_REGRET_SHARE,
            "cases": cases,
        }
        plot_growth(self, cases, folder / self.name)
        write_page(folder, self.name, results, render_page(self, results))
        return make_table(self, results, folder)


def measure_depth(depth: int, trees: int) -> JsonDict:
    """Return the results of all learners at this depth."""
    learners = []
    with single_thread():
        tree_instances = make_hard_trees(trees, depth, GAP, seed=0)
        for contender in CONTENDERS:
            if depth <= contender.deepest:
                regrets = contender.play(tree_instances, contender.episodes(depth), 0)
                learners.append(
                    summarize_contender(
                        contender,
                        depth,
                        count_episodes_to_zero_regret(regrets, compute_random_policy_regret(depth)).tolist(),
                    )
                )
    lower = compute_rl_lower_bound(depth)
    return {"depth": depth, "leaves": 2 ** (depth - 1), "least_of_rl": lower, "contenders": learners}


def summarize_contender(contender: Contender, depth: int, times: Sequence[float]) -> JsonDict:
    """Return the episodes that one learner needed on each tree; None: more than its limit."""
    episodes = [None if np.isinf(time) else int(time) for time in times]
    return {
        "label": contender.label,
        "learns_from_expert": contender.learns_from_expert,
        "episodes": contender.episodes(depth),
        "until_free": episodes,
        **estimate_to_dict(estimate_median_time(episodes), "median"),
    }


def select_contender(cases: Sequence[JsonDict], label: str) -> list[JsonDict | None]:
    """Return one learner's results at all depths; None where it was not run."""
    return [
        next((contender for contender in case["contenders"] if contender["label"] == label), None) for case in cases
    ]


def describe_answer(cases: Sequence[JsonDict]) -> str:
    """Describe how the episodes grow: with the depth, or with the leaves."""
    clauses = []
    depths = [case["depth"] for case in cases]
    for contender in CONTENDERS:
        medians = [
            (k, result["median"])
            for k, result in zip(depths, select_contender(cases, contender.label), strict=True)
            if result
        ]
        reached = [(k, median) for k, median in medians if median is not None]
        if not reached:
            clauses.append(f"{contender.label}: at no depth")
            continue
        (first, first_median) = reached[0]
        (last, last_median) = reached[-1]
        x, y = (np.array(column, float) for column in zip(*reached, strict=True))
        if contender.learns_from_expert:
            growth = f"{fit_slope(x, y):.1f} more for each level"
        else:
            growth = f"{2 ** fit_slope(x, np.log2(y)):.2f} × as many for each level"
        clauses.append(
            f"{contender.label}: {first_median:,.0f} at depth {first} and {last_median:,.0f} at {last}, {growth}"
        )
    beyond = [case["depth"] for case in cases if len(case["contenders"]) < len(CONTENDERS)]
    bandits = (
        f" Bandits were not run at depths {join_with_and([str(depth) for depth in beyond])}: at the last of these "
        f"no RL needs fewer than {cases[-1]['least_of_rl']:,.0f} episodes in the mean."
        if beyond
        else ""
    )
    return "Episodes until play is free of regret, in the median: " + "; ".join(clauses) + "." + bandits


def plot_growth(figure: TreeStudy, cases: Sequence[JsonDict], path: Path) -> None:
    """Plot both kinds of growth in one panel on a logarithmic axis."""
    depths = np.array([case["depth"] for case in cases], float)
    series = []
    trees = len(cases[0]["contenders"][0]["until_free"])
    limit = np.array([max(contender["episodes"] for contender in case["contenders"]) for case in cases], float)
    for contender in CONTENDERS:
        by_depth = select_contender(cases, contender.label)
        value, low, high = (
            np.array([np.nan if result is None else fill_never(result[end]) for result in by_depth])
            for end in ("median", "low", "high")
        )
        trials = np.array(
            [[np.nan] * trees if result is None else [*map(fill_never, result["until_free"])] for result in by_depth]
        )
        series.append(Series(contender.label, value, low, high, trials, dotted=not contender.learns_from_expert))
    lines = {RL_LOWER_BOUND_LABEL: np.array([case["least_of_rl"] for case in cases])}
    panel = Panel("episodes until play is free of regret", series, log=True, limit=limit, lines=lines)
    labels = [f"{depth:.0f}" for depth in depths]
    plot_method_comparison([panel], depths, labels, "depth K", figure.title, path)


def render_page(figure: TreeStudy, results: JsonDict) -> list[str]:
    """Return question, figure, answer and table, in Markdown."""
    header = "depth | leaves | learner | episodes until free of regret, median | 95 % interval | each tree"
    rows = [
        [
            str(case["depth"]),
            f"{case['leaves']:,}",
            learner["label"],
            format_steps(learner["median"]),
            f"{format_steps(learner['low'])} to {format_steps(learner['high'])}",
            ", ".join(map(format_steps, learner["until_free"])),
        ]
        for case in results["cases"]
        for learner in case["contenders"]
    ]
    quick = " in short" if "--quick" in results["command"] else ""
    return [
        f"# {figure.title}{quick}",
        f"*{figure.question}*",
        f"![{figure.title}]({figure.name}.png)",
        results["answer"],
        describe_table(results),
        format_markdown_table(header, rows),
    ]


def describe_table(results: JsonDict) -> str:
    """Return the paragraph above the table."""
    depth = results["cases"][0]["depth"]
    return (
        f"{results['trees']} trees of each depth K, with 2^(K−1) leaves that cost 0 or 1, all with a mean of ½, but "
        f"for a random one that is better by {GAP:g}. Play is free of regret from the episode on after which the newer "
        f"half of all episodes so far always has at most {ZERO_REGRET_SHARE:.0%} of the regret of random play; what "
        f"was not so within the episodes that were played ({count_expert_episodes(depth) // depth} K with an expert, "
        "256 for each leaf without) counts as later than all that was. The expert knows Q* of both actions (exact), or "
        "rolls out once for each (noisy); that is not counted in episodes. Steps of EG and bonuses of the bandits are "
        "the best of a few, on trees of another seed. The line is what the proof of Theorem special_lower leaves to "
        "any RL; it is drawn, too, where there are too many leaves for the bandits to be run."
    )


def make_table(figure: TreeStudy, results: JsonDict, folder: Path) -> Table:
    """Return the table for the console."""
    rows = [
        {"depth": case["depth"], **learner, "shown": format_steps(learner["median"])}
        for case in results["cases"]
        for learner in case["contenders"]
    ]
    columns = {
        "depth": make_text_column("depth"),
        "learner": make_text_column("label"),
        "episodes": make_text_column("shown"),
    }
    closing = f"{results['answer']}\nfigure and page: {folder}/{figure.name}.png and .md"
    return Table(rows, columns, closing, figure.question)


FIGURES = (TreeStudy(),)
