"""Methods side by side over something that is varied, at equal budgets: a figure, its numbers and its answer in words.

A trial that never reached the expert is a number, too: it is counted as later than all that were measured, and shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from aggrevated.arrays import Array
from aggrevated.config import Config
from aggrevated.config.resolving import resolve
from aggrevated.files import Facts
from aggrevated.plots.versus import EXPERT, Panel, Series, versus
from aggrevated.reports import Table, markdown, publish, text, versions
from aggrevated.reports.figures import Figure, Request, short_trial
from aggrevated.reports.groups import Group, beside_expert, between, measure
from aggrevated.reports.reaching import course, lowest_of, reached
from aggrevated.runs.records import Result
from aggrevated.runs.run import Run, as_file_name, made_or_opened
from aggrevated.statistics import NEVER, Estimate, estimate, median_time, paired_difference
from aggrevated.tasks import Row, Task

Measure = Literal["final", "steps"]
UNTIL = {name: f"{name}_to_expert" for name in ("steps", "episodes", "queries")}  # how soon the expert is reached
COUNTS = ("simulator_steps", "oracle_steps", "validation_steps", "oracle_queries", "iterations")


@dataclass(frozen=True)
class Case:
    """One place on the axis: what is set there for all methods."""

    x: float
    label: str  # "L = 5"; also the name of the folder of its runs, so that no two cases may share one
    settings: Mapping[str, Any] = field(default_factory=dict)
    tick: str = ""  # what the axis says there; if nothing, x
    apart: bool = False  # not one in the row of the others: no line leads there


@dataclass(frozen=True)
class Versus(Figure):
    """All methods in all cases, five trials each. Cases and methods are named, and the first method is compared to."""

    name: str
    title: str
    question: str  # one sentence, with a question mark
    task: Task
    varied: str  # of the axis
    cases: tuple[Case, ...]
    methods: Mapping[str, Row]  # by what the legend calls them
    settings: Mapping[str, Any] = field(default_factory=dict)  # common to all, such as the budget
    trials: int = 5
    measures: tuple[Measure, ...] = ("final", "steps")
    tells: tuple[Literal["reached", "difference"], ...] = ("reached",)  # what the answer is made of
    within: float = 0.0  # of the expert, in ratios or in gains: what counts as having reached it
    log_x: bool = False
    lines: Mapping[Measure, Mapping[str, Callable[[Case], float]]] = field(default_factory=dict)  # of theory
    notes: tuple[str, ...] = ()  # further paragraphs of its page

    def rows(self, request: Request) -> Sequence[Row]:
        """Those of all cases, one case after the other."""
        return [row for _ in self.cases for row in self.methods.values()]

    def config(self, case: Case, row: Row, quick: bool) -> Config:
        """The settings of a row in a case; `quick`: with a fifth of what it may spend."""
        given = {"update": row.update, "policy": row.policy, "start": row.start}
        given |= {**self.settings, **case.settings, **row.settings}
        config = resolve(self.task, row.method, **given)
        if not quick:
            return config
        least = {"iterations": config.loop.length} | config.loop.limits
        fewer = {name: max(1, most // 5) for name, most in least.items() if most}
        return resolve(self.task, row.method, **given | fewer)

    def first(self) -> Config:
        return self.config(self.cases[0], next(iter(self.methods.values())), quick=False)

    def runs(self, request: Request) -> list[list[Run]]:
        """Those of all methods in all cases, in folders by their labels."""
        groups, seeds = [], range(self.trials_of(request))
        for case in self.cases:
            for label, row in self.methods.items():
                folder = self.folder(request) / in_a_path(case.label) / in_a_path(label)
                config = self.config(case, row, request.quick)
                groups.append([made_or_opened(folder / f"trial-{i:02d}", config.replaced(seed=i)) for i in seeds])
        return groups

    def final(self, group: Group) -> Array:
        """[trials]: how good the chosen policies are beside their expert, on fresh episodes."""
        return beside_expert(group)

    def measured(self, group: Group) -> str:
        """What `final` is: a ratio, or a gain."""
        return measure(group)

    def remarks(self, facts: Facts) -> list[str]:
        """What its page says besides, below the answer."""
        return []

    def write(self, groups: Sequence[Group], request: Request, folder: Path) -> Table:
        """NAME.json, .png, .svg and .md."""
        facts = self.facts(groups, request)
        draw(self, facts, folder / self.name)
        publish(folder, self.name, facts, page(self, facts))
        return table(self, facts, folder)

    def facts(self, groups: Sequence[Group], request: Request) -> Facts:
        """All numbers, and the answer that follows from them."""
        many, found = len(self.methods), []
        for number, case in enumerate(self.cases):
            beside = groups[number * many : (number + 1) * many]
            first = self.final(beside[0])
            named = zip(self.methods.items(), beside, strict=True)
            methods = [of_method(self, label, row, group, first) for (label, row), group in named]
            plain = {name: list(value) if isinstance(value, tuple) else value for name, value in case.settings.items()}
            found.append({"x": case.x, "label": case.label, "settings": plain, "methods": methods})
        used = [(case.label, label) for case in self.cases for label in self.methods]
        settings: Facts = {case.label: {} for case in self.cases}
        for (case_label, label), group in zip(used, groups, strict=True):
            settings[case_label][label] = group.runs[0].config.facts()
        return {
            "command": request.command(self),
            "versions": versions(("aggrevated", "torch", "numpy", *self.task.packages)),
            "seeds": [run.config.loop.seed for run in groups[0].runs],
            "title": self.title,
            "question": self.question,
            "answer": answer(self, found),
            "measure": self.measured(groups[0]),
            "within": self.within,
            "varied": self.varied,
            "cases": found,
            "settings": settings,
            "short": short_trial(self),
        }


def in_a_path(label: str) -> str:
    """A label as the name of a folder."""
    return as_file_name(label).strip("-")


# ---- numbers


def of_method(figure: Versus, label: str, row: Row, group: Group, first: Array) -> Facts:
    """All that is known of one method in one case."""
    final, name = figure.final(group), figure.measured(group)
    pairs = zip(group.runs, group.results, final, strict=True)
    trials = [of_trial(run, result, figure.within) | {name: float(value)} for run, result, value in pairs]
    found = estimate(final)
    until = {one: until_expert(trials, one) for one in UNTIL.values()}
    return {
        "label": label,
        "method": row.method,
        "update": row.update,
        "imitates": group.runs[0].config.row.imitates,
        "iqm": found.value,
        "low": found.low,
        "high": found.high,
        "mean": float(final.mean()),
        "reached": sum(trial["steps_to_expert"] is not None for trial in trials),
        **until,
        "to_first": paired(final, first),
        "trials": trials,
    }


def of_trial(run: Run, result: Result, within: float) -> Facts:
    """One trial: what it earned, what it spent, and when it reached the expert; None if it never did."""
    facts = result.facts()
    spent = reached(course(run, result), enough(run, float(facts["expert_return"]), within))
    return {
        "seed": result.seed,
        **{name: facts[name] for name in ("test_return", "expert_return", "best_return", "initial_return")},
        **{name: facts[name] for name in COUNTS},
        "budget": result.budget,
        "episodes": result.iterations * run.config.loop.trajectories,
        "steps_to_expert": spent["simulator_steps"],
        "episodes_to_expert": spent["episodes"],
        "queries_to_expert": spent["oracle_queries"],
        "weights_sha256": result.weights_sha256,
    }


def enough(run: Run, expert: float, within: float) -> float:
    """The return that counts as the expert's."""
    return expert - within * (expert - lowest_of(run) if run.config.world.rated else 1.0)


def until_expert(trials: Sequence[Facts], one: str) -> Facts:
    """The median, with what was not reached above all that was, and its own interval; None: not reached."""
    found = median_time([trial[one] for trial in trials])
    return in_facts(found, "median")


def paired(values: Array, first: Array) -> Facts:
    """The mean difference to the first method over the same seeds, and its own interval."""
    return in_facts(paired_difference(values, first), "difference")


def in_facts(found: Estimate, name: str) -> Facts:
    """For JSON; None: never."""
    numbers = {name: found.value, "low": found.low, "high": found.high}
    return {key: None if np.isinf(value) else value for key, value in numbers.items()}


# ---- words


def answer(figure: Versus, cases: Sequence[Facts]) -> str:
    """What the numbers say to the question."""
    ways = {"reached": reaching, "difference": differing}
    return " ".join(ways[way](figure, cases) for way in figure.tells)


def reaching(figure: Versus, cases: Sequence[Facts]) -> str:
    """In which cases most trials of each method reach the expert; methods of which the same holds in one sentence."""
    by_cases: dict[str, list[str]] = {}
    apart = [case.label for case in figure.cases if case.apart]
    row = [case["label"] for case in cases if case["label"] not in apart]
    for number, label in enumerate(figure.methods):
        where = [case["label"] for case in cases if mostly(case["methods"][number])]
        by_cases.setdefault(where_in(row, apart, where), []).append(label)
    near = near_expert(figure, cases)
    verb = {False: "reaches", True: "reach"}
    told = [f"{listed(labels)} {verb[len(labels) > 1]} {near} {where}" for where, labels in by_cases.items()]
    return "In more than half of the trials, " + "; ".join(told) + "."


def near_expert(figure: Versus, cases: Sequence[Facts]) -> str:
    """What counts as having reached it, in words: a ratio, or a return."""
    if not figure.within:
        return "the expert's return"
    rated = "ratio" in cases[0]["methods"][0]["trials"][0]
    return f"a ratio of {1 - figure.within:g}" if rated else f"the expert's return less {figure.within:g}"


def mostly(method: Facts) -> bool:
    """Whether more than half of the trials reached the expert."""
    return bool(2 * method["reached"] > len(method["trials"]))


def where_in(row: Sequence[str], apart: Sequence[str], where: Sequence[str]) -> str:
    """Some of the cases, in words: those in a row, and those that stand apart."""
    inside = [case for case in where if case in row]
    if not where or len(where) == len(row) + len(apart):
        return in_which(where, [*row, *apart])
    if len(inside) == len(row):
        return f"everywhere but at {listed([case for case in apart if case not in where])}"
    if not inside:
        return f"only at {listed(where)}"
    return in_which(inside, row) + "".join(f" and at {case}" for case in apart if case in where)


def in_which(where: Sequence[str], among: Sequence[str]) -> str:
    """Some of the cases, in words."""
    if len(where) == len(among):
        return "in every case"
    if not where:
        return "in no case"
    if list(where) == list(among[: len(where)]) and len(where) > 1:
        return f"up to {where[-1]} and not above"
    if list(where) == list(among[-len(where) :]) and len(where) > 1:
        return f"from {where[0]} on"
    if len(where) == len(among) - 1 > 1:
        return f"everywhere but at {next(case for case in among if case not in where)}"
    return f"only at {listed(where)}"


def differing(figure: Versus, cases: Sequence[Facts]) -> str:
    """Where each method differs from the first by more than chance, by the interval of the paired difference."""
    first, *others = figure.methods
    told = []
    for number, label in enumerate(others, 1):
        signs: dict[str, list[str]] = {"less": [], "more": []}
        for case in cases:
            found = case["methods"][number]["to_first"]
            if found["high"] < 0 or found["low"] > 0:
                words = f"{case['label']} ({found['difference']:+.3g}, {found['low']:+.3g} to {found['high']:+.3g})"
                signs["less" if found["high"] < 0 else "more"].append(words)
        parts = [f"{sign} at {listed(where)}" for sign, where in signs.items() if where]
        told.append(f"{label} earns {' and '.join(parts)}" if parts else f"{label} is not told apart")
    return f"Beside {first}, paired by seeds with 95 % intervals: " + "; ".join(told) + "."


def listed(words: Sequence[str]) -> str:
    """a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


# ---- figure, page and table


def draw(figure: Versus, facts: Facts, path: Path) -> None:
    """A panel for each measure."""
    x = np.array([case.x for case in figure.cases], float)
    places = np.log2(x) if figure.log_x else x
    distinct = len(set(x)) == len(x)
    labels = [case.tick or (f"{case.x:g}" if distinct else case.label) for case in figure.cases]
    panels = [panel(figure, facts, name) for name in figure.measures]
    versus(panels, places, labels, figure.varied, figure.title, path)


def panel(figure: Versus, facts: Facts, name: Measure) -> Panel:
    """One measure of all methods over all cases."""
    cases, key = facts["cases"], UNTIL["steps"]
    apart = np.array([case.apart for case in figure.cases])
    found = []
    for number, label in enumerate(figure.methods):
        methods = [case["methods"][number] for case in cases]
        if name == "final":
            columns = [[method[end] for method in methods] for end in ("iqm", "low", "high")]
            trials = [[trial[facts["measure"]] for trial in method["trials"]] for method in methods]
        else:
            columns = [[or_never(method[key][end]) for method in methods] for end in ("median", "low", "high")]
            trials = [[or_never(trial[key]) for trial in method["trials"]] for method in methods]
        value, low, high = map(np.array, columns)
        found.append(Series(label, value, low, high, np.array(trials), dotted=not methods[0]["imitates"]))
    lines = {said: np.array([line(case) for case in figure.cases]) for said, line in figure.lines.get(name, {}).items()}
    if name == "final":
        level = 1.0 if facts["measure"] == "ratio" else 0.0
        expert = {EXPERT: np.full(len(cases), level)}
        said = "return / expert's" if level else "return above the expert's"
        return Panel(f"{said}, fresh episodes", found, lines=expert | lines, apart=apart)
    most = [max(map(limit, (trial for method in case["methods"] for trial in method["trials"]))) for case in cases]
    drawn = [
        replace(one, value=seen(one.value), low=seen(one.low), high=seen(one.high), trials=seen(one.trials))
        for one in found
    ]
    return Panel(
        "simulator steps until the expert is reached",
        drawn,
        log=True,
        limit=np.array(most, float),
        lines=lines,
        apart=apart,
    )


def limit(trial: Facts) -> float:
    """How many simulator steps a trial may take, or as many as it did."""
    return float(trial["budget"] or trial["simulator_steps"]) or 1.0


def or_never(value: float | None) -> float:
    return NEVER if value is None else value


def seen(values: Array) -> Array:
    """On a logarithmic axis, what took nothing is drawn as 1."""
    return np.maximum(values, 1.0)


def page(figure: Versus, facts: Facts) -> list[str]:
    """Question, figure, answer and table, in Markdown."""
    quick = " in short" if "--quick" in facts["command"] else ""
    return [
        f"# {figure.title}{quick}",
        f"*{figure.question}*",
        f"![{figure.title}]({figure.name}.png)",
        facts["answer"],
        *figure.remarks(facts),
        *figure.notes,
        how_to_read(figure, facts),
        markdown(" | ".join(HEADER), [cells(facts, case, method) for case, method in both(facts)]),
    ]


HEADER = (
    *("case", "method", "beside the expert: IQM", "95 % interval", "less the first method's, paired"),
    *("reached the expert", "steps until then, median", "95 % interval"),
)


def how_to_read(figure: Versus, facts: Facts) -> str:
    """The words above the table."""
    trials = len(facts["cases"][0]["methods"][0]["trials"])
    what = "return over the expert's" if facts["measure"] == "ratio" else "return less the expert's"
    shown = ", and is a triangle at the budget in the figure" if "steps" in figure.measures else ""
    return (
        f"Each number is over {trials} trials (the same seeds for all methods): the {what} of the policy chosen on "
        "validation, on fresh episodes, as interquartile mean with its own bootstrap interval; the mean difference to "
        "the first method over the same seeds with its own by Student's t; and the median of the simulator steps "
        "(start, roll-ins and oracle; validation is apart) after which a policy first had "
        f"{near_expert(figure, facts['cases'])} on validation. "
        f"A trial that never did counts as later than all that did{shown}."
    )


def both(facts: Facts) -> list[tuple[Facts, Facts]]:
    """Every method in every case."""
    return [(case, method) for case in facts["cases"] for method in case["methods"]]


def cells(facts: Facts, case: Facts, method: Facts) -> list[str]:
    """One line of the table."""
    to_first, steps = method["to_first"], method["steps_to_expert"]
    is_first = method["label"] == case["methods"][0]["label"]
    difference = f"{to_first['difference']:+.3f} ({between(to_first['low'], to_first['high'], 3)})"
    return [
        case["label"],
        method["label"],
        f"{method['iqm']:.3f}",
        between(method["low"], method["high"], 3),
        "" if is_first else difference,
        f"{method['reached']} of {len(method['trials'])}",
        in_steps(steps["median"]),
        f"{in_steps(steps['low'])} to {in_steps(steps['high'])}",
    ]


def in_steps(value: float | None) -> str:
    return "never" if value is None else f"{value:,.0f}"


def table(figure: Versus, facts: Facts, folder: Path) -> Table:
    """The same, to print."""
    names = ("case", "label", "iqm", "interval", "to first", "reached", "steps", "steps interval")
    lines = [dict(zip(names, cells(facts, case, method), strict=True)) for case, method in both(facts)]
    rows = [
        method | {"case": case["label"], "shown": line} for (case, method), line in zip(both(facts), lines, strict=True)
    ]
    columns = {name: shown(name) for name in names if name not in ("interval", "steps interval")}
    closing = f"{facts['answer']}\nfigure and page: {folder}/{figure.name}.png and .md"
    return Table(rows, columns, closing, figure.question)


def shown(name: str) -> Callable[[Facts], str]:
    """A column of what a line says."""
    return lambda row: text(name)(row["shown"])
