"""What came of a sweep: the best trials in a table, a figure of all of them, and a page."""

from collections.abc import Sequence
from typing import Any

from aggrevated.core.settings import to_flag
from aggrevated.plots.parallel_coordinates import Setting, plot_parallel_coordinates
from aggrevated.reports import Column, Table, markdown_table, number_column
from aggrevated.storage import JsonDict, write_atomically
from aggrevated.sweeps.search_space import Choices, Variation, format_value, to_flag_name
from aggrevated.sweeps.sweep import Sweep
from aggrevated.sweeps.trials import Trial, sort_best_first

SHOWN = 10  # trials in the table
WHAT_IS_COMPARED = (
    "Trials are compared by their *validation* return: that of the best policy of each run, mean over seeds. It is a "
    "maximum over iterations, and the best trial's is one over trials, too; so it is optimistic. The *test* return is "
    "that of the same policies on episodes or pages that nothing was chosen by. *±* is the standard deviation of the "
    "validation return over seeds: trials that are closer than that cannot be told apart."
)
WHAT_IS_EXPLAINED = (
    "The share of the variance of the trials' ranks that lies between the choices of a setting, or between fifths of "
    "its range, less what chance would explain (ε²). It counts the trials in which the setting has an effect, failed "
    "ones as the worst; what matters only together with something else does not show. TPE looks more closely where it "
    "is good, so this is of the trials that were made, not of the whole range."
)


def write_report(sweep: Sweep) -> Table:
    """Write sweep.md, sweep.png and sweep.svg, and give the table of the best trials."""
    best = sort_best_first(sweep.trials)
    plot_sweep(sweep, best[0])
    text = "\n\n".join(page_lines(sweep, best)) + "\n"
    write_atomically(sweep.folder / "sweep.md", text.encode())
    command = sweep.asked.command(best[0].settings)
    closing = f"figure and page: {sweep.folder}/sweep.png and .md\nthe best again:  {command}"
    return Table([trial_row(trial) for trial in best[:SHOWN]], make_columns(sweep), closing, describe_trials(sweep))


def describe_trials(sweep: Sweep) -> str:
    """How many trials there are, and how many of them failed."""
    failed = sum(bool(trial.failed) for trial in sweep.trials)
    made = f"{len(sweep.trials)} trials of {sweep.asked.seeds} {'seed' if sweep.asked.seeds == 1 else 'seeds'}"
    return f"{sweep.asked.found.title}: {made}{f', {failed} failed' if failed else ''}"


def trial_row(trial: Trial) -> JsonDict:
    """One line of the table."""
    return trial.to_dict() | {"name": f"{trial.number:03d}"}


def make_columns(sweep: Sweep) -> dict[str, Column]:
    """The trial, what varies, and how good it was."""
    digits = sweep.asked.found.problem.digits
    varied = {to_flag_name(one.name): setting_column(one.name) for one in sweep.asked.varied}
    returns = {
        "validation": number_column("validation", digits),
        "±": number_column("spread", digits),
        "test": number_column("test", digits),
    }
    return {"trial": lambda row: str(row["name"]), **varied, **returns}


def setting_column(name: str) -> Column:
    """A column of a setting; a dash where it has no effect."""
    return lambda row: format_setting_value(row["settings"].get(name))


def format_setting_value(value: Any) -> str:
    """A setting's value, for people."""
    return "–" if value is None else format_value(value)


def page_lines(sweep: Sweep, best: Sequence[Trial]) -> list[str]:
    """The page, in Markdown."""
    asked = sweep.asked
    columns = make_columns(sweep)
    cells = [[column(trial_row(trial)) for column in columns.values()] for trial in best[:SHOWN]]
    shares = [[f"`{to_flag(name)}`", format_share(share)] for name, share in sweep.importances.items()]
    failed = [f"- trial {trial.number:03d}: {trial.failed}" for trial in sweep.trials if trial.failed]
    return [
        f"# {describe_trials(sweep)}",
        "![Every trial as a line through its settings to its return](sweep.png)",
        describe_request(sweep),
        markdown_table(" | ".join(columns), cells),
        WHAT_IS_COMPARED,
        f"The best trial again, with the same weights to the bit:\n\n```\n{asked.command(best[0].settings)}\n```",
        markdown_table("setting | explains alone", shares),
        WHAT_IS_EXPLAINED,
        *(["Trials that failed:\n\n" + "\n".join(failed)] if failed else []),
    ]


def describe_request(sweep: Sweep) -> str:
    """What varied, what was fixed, and how trials were searched for."""
    asked = sweep.asked
    varied = ", ".join(f"`{one}`" for one in asked.varied)
    fixed = ", ".join(f"`{to_flag(name)} {format_value(value)}`" for name, value in asked.fixed.items())
    search = "a grid" if asked.search == "grid" else f"TPE (sampler seed {asked.sampler_seed})"
    return f"Method {asked.method}; varied: {varied}; fixed: {fixed or 'nothing'}; trials by {search}."


def format_share(share: float | None) -> str:
    """A share, for people."""
    return "too few trials" if share is None else f"{100 * share:.0f} %"


def plot_sweep(sweep: Sweep, best: Trial) -> None:
    """The figure of all trials that have ended."""
    trials = [trial for trial in sweep.trials if trial.ended]
    importances = sweep.importances
    settings = [make_axis(one, trials, best, importances[one.name]) for one in sweep.asked.varied]
    measured = f"{sweep.asked.found.problem.metric_name} on validation"
    scores = [trial.score for trial in trials]
    plot_parallel_coordinates(settings, scores, describe_trials(sweep), measured, sweep.folder / "sweep")


def make_axis(one: Variation, trials: Sequence[Trial], best: Trial, share: float | None) -> Setting:
    """One setting, as the figure takes it."""
    values = [trial.settings.get(one.name) for trial in trials]
    label = to_flag_name(one.name)
    chosen = best.settings
    words = format_setting_value(chosen.get(one.name))
    if isinstance(one, Choices):
        names = tuple(map(format_value, one.values))
        spelled = [None if value is None else format_value(value) for value in values]
        return Setting(label, spelled, choices=names, importance=share, best=words)
    return Setting(label, values, one.low, one.high, one.log, importance=share, best=words)
