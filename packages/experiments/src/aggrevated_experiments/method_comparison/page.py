"""Figure, page and table of a study of methods side by side, from its numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.statistics import NEVER
from aggrevated.reports import Table, markdown_table, text_column
from aggrevated.reports.comparison import format_interval
from aggrevated.storage import JsonDict
from aggrevated_experiments.method_comparison.numbers import UNTIL
from aggrevated_experiments.method_comparison.spec import Measure, StudySpec
from aggrevated_experiments.method_comparison.summary_text import near_expert
from aggrevated_experiments.plots.method_comparison import EXPERT, Panel, Series, plot_method_comparison


def draw(figure: StudySpec, facts: JsonDict, path: Path) -> None:
    """A panel for each measure."""
    x = np.array([case.x for case in figure.cases], float)
    places = np.log2(x) if figure.log_x else x
    distinct = len(set(x)) == len(x)
    labels = [case.tick or (f"{case.x:g}" if distinct else case.label) for case in figure.cases]
    panels = [panel(figure, facts, name) for name in figure.measures]
    plot_method_comparison(panels, places, labels, figure.varied, figure.title, path)


def panel(figure: StudySpec, facts: JsonDict, name: Measure) -> Panel:
    """One measure of all methods over all cases."""
    cases = facts["cases"]
    key = UNTIL["steps"]
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


def limit(trial: JsonDict) -> float:
    """How many simulator steps a trial may take, or as many as it did."""
    return float(trial["budget"] or trial["simulator_steps"]) or 1.0


def or_never(value: float | None) -> float:
    return NEVER if value is None else value


def seen(values: Array) -> Array:
    """On a logarithmic axis, what took nothing is drawn as 1."""
    return np.maximum(values, 1.0)


def page(figure: StudySpec, facts: JsonDict) -> list[str]:
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
        markdown_table(" | ".join(HEADER), [cells(facts, case, method) for case, method in both(facts)]),
    ]


HEADER = (
    *("case", "method", "beside the expert: IQM", "95 % interval", "less the first method's, paired"),
    *("reached the expert", "steps until then, median", "95 % interval"),
)


def how_to_read(figure: StudySpec, facts: JsonDict) -> str:
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


def both(facts: JsonDict) -> list[tuple[JsonDict, JsonDict]]:
    """Every method in every case."""
    return [(case, method) for case in facts["cases"] for method in case["methods"]]


def cells(facts: JsonDict, case: JsonDict, method: JsonDict) -> list[str]:
    """One line of the table."""
    to_first = method["to_first"]
    steps = method["steps_to_expert"]
    is_first = method["label"] == case["methods"][0]["label"]
    difference = f"{to_first['difference']:+.3f} ({format_interval(to_first['low'], to_first['high'], 3)})"
    return [
        case["label"],
        method["label"],
        f"{method['iqm']:.3f}",
        format_interval(method["low"], method["high"], 3),
        "" if is_first else difference,
        f"{method['reached']} of {len(method['trials'])}",
        in_steps(steps["median"]),
        f"{in_steps(steps['low'])} to {in_steps(steps['high'])}",
    ]


def in_steps(value: float | None) -> str:
    return "never" if value is None else f"{value:,.0f}"


def table(figure: StudySpec, facts: JsonDict, folder: Path) -> Table:
    """The same, to print."""
    names = ("case", "label", "iqm", "interval", "to first", "reached", "steps", "steps interval")
    lines = [dict(zip(names, cells(facts, case, method), strict=True)) for case, method in both(facts)]
    rows = [
        method | {"case": case["label"], "shown": line} for (case, method), line in zip(both(facts), lines, strict=True)
    ]
    columns = {name: shown(name) for name in names if name not in ("interval", "steps interval")}
    closing = f"{facts['answer']}\nfigure and page: {folder}/{figure.name}.png and .md"
    return Table(rows, columns, closing, figure.question)


def shown(name: str) -> Callable[[JsonDict], str]:
    """A column of what a line says."""
    return lambda row: text_column(name)(row["shown"])
