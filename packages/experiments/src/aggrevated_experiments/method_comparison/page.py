"""Figure, page and table of a method comparison, from its numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.statistics import NEVER
from aggrevated.reports import Table, format_markdown_table, make_text_column
from aggrevated.reports.comparison import format_interval
from aggrevated.storage import JsonDict
from aggrevated_experiments.method_comparison.numbers import TIME_TO_EXPERT_KEYS
from aggrevated_experiments.method_comparison.spec import Measure, StudySpec
from aggrevated_experiments.method_comparison.summary_text import describe_expert_threshold
from aggrevated_experiments.plots.method_comparison import EXPERT_LABEL, Panel, Series, plot_method_comparison


def plot_study(figure: StudySpec, results: JsonDict, path: Path) -> None:
    """Plot one panel for each measure."""
    x = np.array([case.x for case in figure.cases], float)
    positions = np.log2(x) if figure.log_x else x
    is_distinct = len(set(x)) == len(x)
    labels = [case.tick or (f"{case.x:g}" if is_distinct else case.label) for case in figure.cases]
    panels = [make_measure_panel(figure, results, name) for name in figure.measures]
    plot_method_comparison(panels, positions, labels, figure.varied, figure.title, path)


def make_measure_panel(figure: StudySpec, results: JsonDict, name: Measure) -> Panel:
    """Return the panel of one measure of all methods over all cases."""
    cases = results["cases"]
    key = TIME_TO_EXPERT_KEYS["steps"]
    apart = np.array([case.apart for case in figure.cases])
    series = []
    for number, label in enumerate(figure.methods):
        methods = [case["methods"][number] for case in cases]
        if name == "final":
            columns = [[method[end] for method in methods] for end in ("iqm", "low", "high")]
            trials = [[trial[results["measure"]] for trial in method["trials"]] for method in methods]
        else:
            columns = [[fill_never(method[key][end]) for method in methods] for end in ("median", "low", "high")]
            trials = [[fill_never(trial[key]) for trial in method["trials"]] for method in methods]
        value, low, high = map(np.array, columns)
        series.append(Series(label, value, low, high, np.array(trials), dotted=not methods[0]["imitates"]))
    lines = {
        title: np.array([line(case) for case in figure.cases]) for title, line in figure.lines.get(name, {}).items()
    }
    if name == "final":
        level = 1.0 if results["measure"] == "ratio" else 0.0
        expert = {EXPERT_LABEL: np.full(len(cases), level)}
        quantity = "return / expert's" if level else "return above the expert's"
        return Panel(f"{quantity}, fresh episodes", series, lines=expert | lines, apart=apart)
    limits = [
        max(map(get_step_limit, (trial for method in case["methods"] for trial in method["trials"]))) for case in cases
    ]
    drawn = [
        replace(
            entry,
            value=clamp_to_one(entry.value),
            low=clamp_to_one(entry.low),
            high=clamp_to_one(entry.high),
            trials=clamp_to_one(entry.trials),
        )
        for entry in series
    ]
    return Panel(
        "simulator steps until the expert is reached",
        drawn,
        log=True,
        limit=np.array(limits, float),
        lines=lines,
        apart=apart,
    )


def get_step_limit(trial: JsonDict) -> float:
    """Return a trial's budget of simulator steps, or without one the steps that it took."""
    return float(trial["budget"] or trial["simulator_steps"]) or 1.0


def fill_never(value: float | None) -> float:
    """Return the value, with `NEVER` instead of None."""
    return NEVER if value is None else value


def clamp_to_one(values: Array) -> Array:
    """Return the values, at least 1 each, for a logarithmic axis."""
    return np.maximum(values, 1.0)


def render_page(figure: StudySpec, results: JsonDict) -> list[str]:
    """Return question, figure, answer and table, in Markdown."""
    quick = " in short" if "--quick" in results["command"] else ""
    return [
        f"# {figure.title}{quick}",
        f"*{figure.question}*",
        f"![{figure.title}]({figure.name}.png)",
        results["answer"],
        *figure.render_remarks(results),
        *figure.notes,
        describe_table(figure, results),
        format_markdown_table(
            " | ".join(HEADER), [format_row(results, case, method) for case, method in list_case_methods(results)]
        ),
    ]


HEADER = (
    *("case", "method", "beside the expert: IQM", "95 % interval", "less the first method's, paired"),
    *("reached the expert", "steps until then, median", "95 % interval"),
)


def describe_table(figure: StudySpec, results: JsonDict) -> str:
    """Return the paragraph above the table."""
    trials = len(results["cases"][0]["methods"][0]["trials"])
    quantity = "return over the expert's" if results["measure"] == "ratio" else "return less the expert's"
    marker = ", and is a triangle at the budget in the figure" if "steps" in figure.measures else ""
    return (
        f"Each number is over {trials} trials (the same seeds for all methods): the {quantity} of the policy chosen on "
        "validation, on fresh episodes, as interquartile mean with its own bootstrap interval; the mean difference to "
        "the first method over the same seeds with its own by Student's t; and the median of the simulator steps "
        "(start, roll-ins and oracle; validation is apart) after which a policy first had "
        f"{describe_expert_threshold(figure, results['cases'])} on validation. "
        f"A trial that never did counts as later than all that did{marker}."
    )


def list_case_methods(results: JsonDict) -> list[tuple[JsonDict, JsonDict]]:
    """Return each method in each case."""
    return [(case, method) for case in results["cases"] for method in case["methods"]]


def format_row(results: JsonDict, case: JsonDict, method: JsonDict) -> list[str]:
    """Return one line of the table."""
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
        format_steps(steps["median"]),
        f"{format_steps(steps['low'])} to {format_steps(steps['high'])}",
    ]


def format_steps(value: float | None) -> str:
    """Format a number of steps, or None as "never"."""
    return "never" if value is None else f"{value:,.0f}"


def make_table(figure: StudySpec, results: JsonDict, folder: Path) -> Table:
    """Return the table for the console."""
    names = ("case", "label", "iqm", "interval", "to first", "reached", "steps", "steps interval")
    lines = [
        dict(zip(names, format_row(results, case, method), strict=True)) for case, method in list_case_methods(results)
    ]
    rows = [
        method | {"case": case["label"], "shown": line}
        for (case, method), line in zip(list_case_methods(results), lines, strict=True)
    ]
    columns = {name: make_shown_column(name) for name in names if name not in ("interval", "steps interval")}
    closing = f"{results['answer']}\nfigure and page: {folder}/{figure.name}.png and .md"
    return Table(rows, columns, closing, figure.question)


def make_shown_column(name: str) -> Callable[[JsonDict], str]:
    """Return a column of the formatted cells."""
    return lambda row: make_text_column(name)(row["shown"])
