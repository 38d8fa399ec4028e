"""Report of a sweep: the best trials in a table, a figure of all of them, and a page."""

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
IMPORTANCE_TRIALS = 20  # with fewer scored trials, Optuna's importance is mostly noise
IMPORTANCE_QUANTILE = 0.25  # share of trials that count as good; Optuna's 0.1 is too small for 64 trials
WHAT_IS_COMPARED = (
    "Trials are compared by *validation*: the return of the best policy of each run, mean over seeds. The best "
    "of many is optimistic. *test* is the return of the same policies on episodes or pages that were not used to "
    "choose a policy. *±* is the standard deviation of validation over seeds: smaller differences are noise."
)
WHAT_IS_IMPORTANT = (
    "Importance is Optuna's PED-ANOVA: how far the values in the best quarter of the trials differ from those in "
    "all trials, as a share of the sum over settings. It depends on which trials were made, and TPE makes more "
    "where the return is high. Trials that failed do not count."
)


def describe_sweep(sweep: Sweep, study: Study) -> JsonDict:
    """Return the results of a sweep for JSON: the best trials first, and those that failed last."""
    scored = sort_best_first(study.trials)
    trials = [
        {"trial": trial.number, "settings": trial.params, "validation": trial.value, **trial.user_attrs}
        for trial in [*scored, *(trial for trial in study.trials if trial.value is None)]
    ]
    best = trials[0] | {"command": sweep.request.format_command(trials[0]["settings"])} if scored else None
    request = {"sweep": str(sweep.folder), "version": __version__, "request": sweep.request.to_dict()}
    return request | {"best": best, "importance": compute_importance(sweep.request, study), "trials": trials}


def describe_trials(request: SweepRequest, trials: list[JsonDict]) -> str:
    """Return how many trials there are, and how many of them failed."""
    failed = sum("failed" in trial for trial in trials)
    counts = f"{len(trials)} trials of {request.seeds} {'seed' if request.seeds == 1 else 'seeds'}"
    return f"{request.task_spec.title}: {counts}{f', {failed} failed' if failed else ''}"


def compute_importance(request: SweepRequest, study: Study) -> dict[str, float]:
    """Return each setting's share of the importance by Optuna's PED-ANOVA; {} if there are too few trials."""
    if len(sort_best_first(study.trials)) < IMPORTANCE_TRIALS:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about parameters that few trials have
        evaluator = PedAnovaImportanceEvaluator(target_quantile=IMPORTANCE_QUANTILE)
        shares = get_param_importances(study, evaluator=evaluator)
    return {variation.label: shares.get(variation.label, 0.0) for variation in request.varied}


def write_report(sweep: Sweep, study: Study, results: JsonDict) -> Table:
    """Write sweep.md, sweep.png and sweep.svg, and return the table of the best trials."""
    request = sweep.request
    title = describe_trials(request, results["trials"])
    plot_trials(sweep, study, title, results["importance"])
    best = [trial for trial in results["trials"] if "failed" not in trial][:SHOWN]
    failed = [f"- trial {trial['trial']:03d}: {trial['failed']}" for trial in results["trials"] if "failed" in trial]
    command = results["best"]["command"]
    columns = make_columns(request)
    shares = [[f"`--{label}`", f"{100 * share:.0f} %"] for label, share in results["importance"].items()]
    paragraphs = [
        f"# {title}",
        "![The return of every trial over each of its settings](sweep.png)",
        f"Method {request.method}; varied: {format_part([f'`{variation}`' for variation in request.varied])}; "
        f"fixed: {format_part(dict(request.fixed))}; {request.search}, sampler seed {request.sampler_seed}.",
        format_markdown_table(" | ".join(columns), [[column(trial) for column in columns.values()] for trial in best]),
        WHAT_IS_COMPARED,
        f"This command repeats the best trial, with bit-identical weights:\n\n```\n{command}\n```",
        *([format_markdown_table("setting | importance", shares), WHAT_IS_IMPORTANT] if shares else []),
        *(["Trials that failed:\n\n" + "\n".join(failed)] if failed else []),
    ]
    write_atomically(sweep.folder / "sweep.md", ("\n\n".join(paragraphs) + "\n").encode())
    closing = f"figure and page: {sweep.folder}/sweep.png and .md\nthe best again:  {command}"
    return Table(best, columns, closing, title)


def make_columns(request: SweepRequest) -> dict[str, Column]:
    """Return the table's columns: trial, varied settings (a dash: without effect), and returns."""
    digits = request.task_spec.problem.digits
    columns: dict[str, Column] = {"trial": lambda row: f"{row['trial']:03d}"}
    columns |= {variation.label: make_setting_column(variation.label) for variation in request.varied}
    names = {"validation": "validation", "±": "spread", "test": "test"}
    return columns | {title: make_number_column(name, digits) for title, name in names.items()}


def make_setting_column(label: str) -> Column:
    """Return the column of a setting."""
    return lambda row: str(row["settings"].get(label, "–"))


def plot_trials(sweep: Sweep, study: Study, title: str, importance: dict[str, float]) -> None:
    """Draw Optuna's slice plot into sweep.png and sweep.svg: the return of all trials over each setting."""
    matplotlib.use("agg")
    measured = f"{sweep.request.task_spec.problem.metric_name} on validation"
    used_labels = {label for trial in sort_best_first(study.trials) for label in trial.params}
    varied = {variation.label: variation for variation in sweep.request.varied if variation.label in used_labels}
    with warnings.catch_warnings(), pyplot.style.context("default"):
        warnings.simplefilter("ignore")  # the plots are experimental, and few trials make narrow axes
        panels = np.ravel(np.asarray(plot_slice(study, list(varied), target_name=measured), object))
        for axes in panels:
            tidy_panel(axes, varied[axes.get_xlabel()], importance)
        figure = panels[0].figure
        figure.set_size_inches(max(10.0, 2.2 * len(panels) + 1.5), 4.2)
        figure.set_layout_engine("constrained" if len(panels) > 1 else "tight")  # needed by its color bar
        figure.suptitle(title)
        save_figure(figure, sweep.folder / "sweep")
        pyplot.close(figure)


def tidy_panel(axes: Any, variation: Variation, importance: dict[str, float]) -> None:
    """Make a panel of the slice plot readable: few ticks, no quotation marks, the importance above it."""
    axes.set_title(f"importance {100 * importance[variation.label]:.0f} %" if importance else "", fontsize=10)
    axes.tick_params(labelsize=9)
    if variation.choices:
        labels = [tick.get_text().strip("'") for tick in axes.get_xticklabels()]
        axes.set_xticks(range(len(labels)), labels, rotation=25, ha="right")
    elif variation.log:
        steps = (1, 2, 5) if variation.high < 100 * variation.low else (1,)
        axes.xaxis.set_major_locator(LogLocator(subs=steps, numticks=4))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
