"""Where it pays: the paper's tree, at depths from 4 to 20, with an expert and without one."""

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
        facts = {
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
        write_page(folder, self.name, facts, render_page(self, facts))
        return make_table(self, facts, folder)


def measure_depth(depth: int, trees: int) -> JsonDict:
    """All that play at this depth."""
    found = []
    with single_thread():
        drawn = make_hard_trees(trees, depth, GAP, seed=0)
        for one in CONTENDERS:
            if depth <= one.deepest:
                regrets = one.play(drawn, one.episodes(depth), 0)
                found.append(
                    summarize_contender(
                        one, depth, count_episodes_to_zero_regret(regrets, compute_random_policy_regret(depth)).tolist()
                    )
                )
    lower = compute_rl_lower_bound(depth)
    return {"depth": depth, "leaves": 2 ** (depth - 1), "least_of_rl": lower, "contenders": found}


def summarize_contender(one: Contender, depth: int, times: Sequence[float]) -> JsonDict:
    """What one of them needed, on every tree; None: not within its episodes."""
    episodes = [None if np.isinf(time) else int(time) for time in times]
    return {
        "label": one.label,
        "learns_from_expert": one.learns_from_expert,
        "episodes": one.episodes(depth),
        "until_free": episodes,
        **estimate_to_dict(estimate_median_time(episodes), "median"),
    }


def select_contender(cases: Sequence[JsonDict], label: str) -> list[JsonDict | None]:
    """One contender at all depths; None where it was not tried."""
    return [next((one for one in case["contenders"] if one["label"] == label), None) for case in cases]


def describe_answer(cases: Sequence[JsonDict]) -> str:
    """How the episodes grow: with the depth, or with the leaves."""
    told = []
    depths = [case["depth"] for case in cases]
    for one in CONTENDERS:
        known = [
            (k, found["median"]) for k, found in zip(depths, select_contender(cases, one.label), strict=True) if found
        ]
        reached = [(k, median) for k, median in known if median is not None]
        if not reached:
            told.append(f"{one.label}: at no depth")
            continue
        (first, least) = reached[0]
        (last, most) = reached[-1]
        x, y = (np.array(column, float) for column in zip(*reached, strict=True))
        if one.learns_from_expert:
            grows = f"{fit_slope(x, y):.1f} more for each level"
        else:
            grows = f"{2 ** fit_slope(x, np.log2(y)):.2f} × as many for each level"
        told.append(f"{one.label}: {least:,.0f} at depth {first} and {most:,.0f} at {last}, {grows}")
    beyond = [case["depth"] for case in cases if len(case["contenders"]) < len(CONTENDERS)]
    more = (
        f" Bandits were not run at depths {join_with_and([str(depth) for depth in beyond])}: at the last of these "
        f"no RL needs fewer than {cases[-1]['least_of_rl']:,.0f} episodes in the mean."
        if beyond
        else ""
    )
    return "Episodes until play is free of regret, in the median: " + "; ".join(told) + "." + more


def plot_growth(figure: TreeStudy, cases: Sequence[JsonDict], path: Path) -> None:
    """One panel: both kinds of growth on one logarithmic axis."""
    depths = np.array([case["depth"] for case in cases], float)
    series = []
    trees = len(cases[0]["contenders"][0]["until_free"])
    limit = np.array([max(one["episodes"] for one in case["contenders"]) for case in cases], float)
    for one in CONTENDERS:
        found = select_contender(cases, one.label)
        value, low, high = (
            np.array([np.nan if f is None else fill_never(f[end]) for f in found]) for end in ("median", "low", "high")
        )
        trials = np.array([[np.nan] * trees if f is None else [*map(fill_never, f["until_free"])] for f in found])
        series.append(Series(one.label, value, low, high, trials, dotted=not one.learns_from_expert))
    lines = {RL_LOWER_BOUND_LABEL: np.array([case["least_of_rl"] for case in cases])}
    panel = Panel("episodes until play is free of regret", series, log=True, limit=limit, lines=lines)
    labels = [f"{depth:.0f}" for depth in depths]
    plot_method_comparison([panel], depths, labels, "depth K", figure.title, path)


def render_page(figure: TreeStudy, facts: JsonDict) -> list[str]:
    """Question, figure, answer and table, in Markdown."""
    header = "depth | leaves | learner | episodes until free of regret, median | 95 % interval | each tree"
    rows = [
        [
            str(case["depth"]),
            f"{case['leaves']:,}",
            one["label"],
            format_steps(one["median"]),
            f"{format_steps(one['low'])} to {format_steps(one['high'])}",
            ", ".join(map(format_steps, one["until_free"])),
        ]
        for case in facts["cases"]
        for one in case["contenders"]
    ]
    quick = " in short" if "--quick" in facts["command"] else ""
    return [
        f"# {figure.title}{quick}",
        f"*{figure.question}*",
        f"![{figure.title}]({figure.name}.png)",
        facts["answer"],
        describe_table(facts),
        format_markdown_table(header, rows),
    ]


def describe_table(facts: JsonDict) -> str:
    """The words above the table."""
    depth = facts["cases"][0]["depth"]
    return (
        f"{facts['trees']} trees of each depth K, with 2^(K−1) leaves that cost 0 or 1, all with a mean of ½, but for "
        f"a random one that is better by {GAP:g}. Play is free of regret from the episode on after which the newer "
        f"half of all episodes so far always has at most {ZERO_REGRET_SHARE:.0%} of the regret of random play; what "
        f"was not so within the episodes that were played ({count_expert_episodes(depth) // depth} K with an expert, "
        "256 for each leaf without) counts as later than all that was. The expert knows Q* of both actions (exact), or "
        "rolls out once for each (noisy); that is not counted in episodes. Steps of EG and bonuses of the bandits are "
        "the best of a few, on trees of another seed. The line is what the proof of Theorem special_lower leaves to "
        "any RL; it is drawn, too, where there are too many leaves for the bandits to be run."
    )


def make_table(figure: TreeStudy, facts: JsonDict, folder: Path) -> Table:
    """To print."""
    rows = [
        {"depth": case["depth"], **one, "shown": format_steps(one["median"])}
        for case in facts["cases"]
        for one in case["contenders"]
    ]
    columns = {
        "depth": make_text_column("depth"),
        "learner": make_text_column("label"),
        "episodes": make_text_column("shown"),
    }
    closing = f"{facts['answer']}\nfigure and page: {folder}/{figure.name}.png and .md"
    return Table(rows, columns, closing, figure.question)


FIGURES = (TreeStudy(),)
