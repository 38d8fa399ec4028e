"""What came of a sweep: the best trials in a table, a figure of all of them, and a page."""

import warnings
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from optuna import Study
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.visualization.matplotlib import plot_slice

from aggrevated import __version__
from aggrevated.plots.learning_curves import save_figure
from aggrevated.reports import Column, Table, format_markdown_table, make_number_column
from aggrevated.storage import JsonDict, write_atomically
from aggrevated.sweeps.request import SweepRequest
from aggrevated.sweeps.search_space import Variation
from aggrevated.sweeps.sweep import Sweep, format_part, sort_best_first

SHOWN = 10  # trials in the table
IMPORTANCE_TRIALS = 20  # as many must have a score: of fewer, what Optuna says is chance
IMPORTANCE_QUANTILE = 0.25  # of the trials are good ones: Optuna's tenth is too few of 64
WHAT_IS_COMPARED = (
    "Trials are compared by *validation*: the return of the best policy of each run, mean over seeds. The best "
    "of many is optimistic. *test* is the return of the same policies on episodes or pages that no policy was "
    "chosen by. *±* is the standard deviation of validation over seeds: closer trials cannot be told apart."
)
WHAT_IS_IMPORTANT = (
    "Importance is Optuna's PED-ANOVA: how far the values in the best quarter of the trials differ from those in "
    "all trials, as a share of the sum over settings. It is of the trials that were made, and TPE makes more "
    "where the return is high. Trials that failed do not count."
)


def describe_sweep(sweep: Sweep, study: Study) -> JsonDict:
    """Return for JSON what came of it: the trials, the best first, and those that failed last."""
    scored = sort_best_first(study.trials)
    trials = [
        {"trial": trial.number, "settings": trial.params, "validation": trial.value, **trial.user_attrs}
        for trial in [*scored, *(trial for trial in study.trials if trial.value is None)]
    ]
    best = trials[0] | {"command": sweep.asked.format_command(trials[0]["settings"])} if scored else None
    own = {"sweep": str(sweep.folder), "version": __version__, "asked": sweep.asked.to_dict()}
    return own | {"best": best, "importance": compute_importance(sweep.asked, study), "trials": trials}


def describe_trials(asked: SweepRequest, trials: list[JsonDict]) -> str:
    """Say how many trials there are, and how many of them failed."""
    failed = sum("failed" in trial for trial in trials)
    made = f"{len(trials)} trials of {asked.seeds} {'seed' if asked.seeds == 1 else 'seeds'}"
    return f"{asked.task_spec.title}: {made}{f', {failed} failed' if failed else ''}"


def compute_importance(asked: SweepRequest, study: Study) -> dict[str, float]:
    """Return each setting's share by Optuna's PED-ANOVA; nothing where there are too few trials."""
    if len(sort_best_first(study.trials)) < IMPORTANCE_TRIALS:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of parameters that few trials have
        evaluator = PedAnovaImportanceEvaluator(target_quantile=IMPORTANCE_QUANTILE)
        shares = get_param_importances(study, evaluator=evaluator)
    return {one.label: shares.get(one.label, 0.0) for one in asked.varied}


def write_report(sweep: Sweep, study: Study, facts: JsonDict) -> Table:
    """Write sweep.md, sweep.png and sweep.svg, and return the table of the best trials."""
    asked = sweep.asked
    title = describe_trials(asked, facts["trials"])
    plot_trials(sweep, study, title, facts["importance"])
    best = [trial for trial in facts["trials"] if "failed" not in trial][:SHOWN]
    failed = [f"- trial {one['trial']:03d}: {one['failed']}" for one in facts["trials"] if "failed" in one]
    command = facts["best"]["command"]
    columns = make_columns(asked)
    shares = [[f"`--{label}`", f"{100 * share:.0f} %"] for label, share in facts["importance"].items()]
    parts = [
        f"# {title}",
        "![The return of every trial over each of its settings](sweep.png)",
        f"Method {asked.method}; varied: {format_part([f'`{one}`' for one in asked.varied])}; "
        f"fixed: {format_part(dict(asked.fixed))}; {asked.search}, sampler seed {asked.sampler_seed}.",
        format_markdown_table(" | ".join(columns), [[column(one) for column in columns.values()] for one in best]),
        WHAT_IS_COMPARED,
        f"The best trial again, with the same weights to the bit:\n\n```\n{command}\n```",
        *([format_markdown_table("setting | importance", shares), WHAT_IS_IMPORTANT] if shares else []),
        *(["Trials that failed:\n\n" + "\n".join(failed)] if failed else []),
    ]
    write_atomically(sweep.folder / "sweep.md", ("\n\n".join(parts) + "\n").encode())
    closing = f"figure and page: {sweep.folder}/sweep.png and .md\nthe best again:  {command}"
    return Table(best, columns, closing, title)


def make_columns(asked: SweepRequest) -> dict[str, Column]:
    """Return the table's columns: the trial, what varies (a dash: it has no effect), and the returns."""
    digits = asked.task_spec.problem.digits
    columns: dict[str, Column] = {"trial": lambda row: f"{row['trial']:03d}"}
    columns |= {one.label: make_setting_column(one.label) for one in asked.varied}
    names = {"validation": "validation", "±": "spread", "test": "test"}
    return columns | {title: make_number_column(name, digits) for title, name in names.items()}


def make_setting_column(label: str) -> Column:
    """Return a column of a setting."""
    return lambda row: str(row["settings"].get(label, "–"))


def plot_trials(sweep: Sweep, study: Study, title: str, importance: dict[str, float]) -> None:
    """Draw Optuna's slice plot into sweep.png and sweep.svg: the return of all trials over each setting."""
    matplotlib.use("agg")
    measured = f"{sweep.asked.task_spec.problem.metric_name} on validation"
    used = {label for trial in sort_best_first(study.trials) for label in trial.params}
    varied = {one.label: one for one in sweep.asked.varied if one.label in used}
    with warnings.catch_warnings(), pyplot.style.context("default"):
        warnings.simplefilter("ignore")  # the plots are experimental, and few trials make narrow axes
        panels = np.ravel(np.asarray(plot_slice(study, list(varied), target_name=measured), object))
        for axes in panels:
            tidy_panel(axes, varied[axes.get_xlabel()], importance)
        figure = panels[0].figure
        figure.set_size_inches(max(10.0, 2.2 * len(panels) + 1.5), 4.2)
        figure.set_layout_engine("constrained" if len(panels) > 1 else "tight")  # as its colour bar is made
        figure.suptitle(title)
        save_figure(figure, sweep.folder / "sweep")
        pyplot.close(figure)


def tidy_panel(axes: Any, one: Variation, importance: dict[str, float]) -> None:
    """Make a panel of the slice plot readable: few ticks, no quotation marks, the importance above it."""
    axes.set_title(f"importance {100 * importance[one.label]:.0f} %" if importance else "", fontsize=10)
    axes.tick_params(labelsize=9)
    if one.choices:
        words = [tick.get_text().strip("'") for tick in axes.get_xticklabels()]
        axes.set_xticks(range(len(words)), words, rotation=25, ha="right")
    elif one.log:
        steps = (1, 2, 5) if one.high < 100 * one.low else (1,)
        axes.xaxis.set_major_locator(LogLocator(subs=steps, numticks=4))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
