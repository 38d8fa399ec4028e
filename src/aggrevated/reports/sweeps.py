"""What came of a sweep: the best trials in a table, a figure of all of them, and a page."""

from collections.abc import Sequence
from typing import Any

from aggrevated.core.settings import flag
from aggrevated.plots.parallel_coordinates import Setting, parallel_coordinates
from aggrevated.reports import Column, Table, markdown, number
from aggrevated.storage import Facts, write_atomically
from aggrevated.sweeps.search_space import Choices, Varied, dashed, spoken
from aggrevated.sweeps.sweep import Sweep
from aggrevated.sweeps.trials import Trial, best_first

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
    best = best_first(sweep.trials)
    draw(sweep, best[0])
    text = "\n\n".join(page(sweep, best)) + "\n"
    write_atomically(sweep.folder / "sweep.md", text.encode())
    command = sweep.asked.command(best[0].settings)
    closing = f"figure and page: {sweep.folder}/sweep.png and .md\nthe best again:  {command}"
    return Table([row(trial) for trial in best[:SHOWN]], columns_of(sweep), closing, headline(sweep))


def headline(sweep: Sweep) -> str:
    """How many trials there are, and how many of them failed."""
    failed = sum(bool(trial.failed) for trial in sweep.trials)
    made = f"{len(sweep.trials)} trials of {sweep.asked.seeds} {'seed' if sweep.asked.seeds == 1 else 'seeds'}"
    return f"{sweep.asked.found.title}: {made}{f', {failed} failed' if failed else ''}"


def row(trial: Trial) -> Facts:
    """One line of the table."""
    return trial.facts() | {"name": f"{trial.number:03d}"}


def columns_of(sweep: Sweep) -> dict[str, Column]:
    """The trial, what varies, and how good it was."""
    digits = sweep.asked.found.world.digits
    varied = {dashed(one.name): setting(one.name) for one in sweep.asked.varied}
    returns = {
        "validation": number("validation", digits),
        "±": number("spread", digits),
        "test": number("test", digits),
    }
    return {"trial": lambda row: str(row["name"]), **varied, **returns}


def setting(name: str) -> Column:
    """A column of a setting; a dash where it has no effect."""
    return lambda row: in_words(row["settings"].get(name))


def in_words(value: Any) -> str:
    """A setting's value, for people."""
    return "–" if value is None else spoken(value)


def page(sweep: Sweep, best: Sequence[Trial]) -> list[str]:
    """The page, in Markdown."""
    asked, columns = sweep.asked, columns_of(sweep)
    cells = [[column(row(trial)) for column in columns.values()] for trial in best[:SHOWN]]
    shares = [[f"`{flag(name)}`", in_share(share)] for name, share in sweep.importances.items()]
    failed = [f"- trial {trial.number:03d}: {trial.failed}" for trial in sweep.trials if trial.failed]
    return [
        f"# {headline(sweep)}",
        "![Every trial as a line through its settings to its return](sweep.png)",
        what_was_asked(sweep),
        markdown(" | ".join(columns), cells),
        WHAT_IS_COMPARED,
        f"The best trial again, with the same weights to the bit:\n\n```\n{asked.command(best[0].settings)}\n```",
        markdown("setting | explains alone", shares),
        WHAT_IS_EXPLAINED,
        *(["Trials that failed:\n\n" + "\n".join(failed)] if failed else []),
    ]


def what_was_asked(sweep: Sweep) -> str:
    """What varied, what was fixed, and how trials were searched for."""
    asked = sweep.asked
    varied = ", ".join(f"`{one}`" for one in asked.varied)
    fixed = ", ".join(f"`{flag(name)} {spoken(value)}`" for name, value in asked.fixed.items())
    search = "a grid" if asked.search == "grid" else f"TPE (sampler seed {asked.sampler_seed})"
    return f"Method {asked.method}; varied: {varied}; fixed: {fixed or 'nothing'}; trials by {search}."


def in_share(share: float | None) -> str:
    """A share, for people."""
    return "too few trials" if share is None else f"{100 * share:.0f} %"


def draw(sweep: Sweep, best: Trial) -> None:
    """The figure of all trials that have ended."""
    trials, importances = [trial for trial in sweep.trials if trial.ended], sweep.importances
    settings = [axis(one, trials, best, importances[one.name]) for one in sweep.asked.varied]
    measured = f"{sweep.asked.found.world.measured} on validation"
    scores = [trial.score for trial in trials]
    parallel_coordinates(settings, scores, headline(sweep), measured, sweep.folder / "sweep")


def axis(one: Varied, trials: Sequence[Trial], best: Trial, share: float | None) -> Setting:
    """One setting, as the figure takes it."""
    values, label, chosen = [trial.settings.get(one.name) for trial in trials], dashed(one.name), best.settings
    words = in_words(chosen.get(one.name))
    if isinstance(one, Choices):
        names = tuple(map(spoken, one.values))
        spelled = [None if value is None else spoken(value) for value in values]
        return Setting(label, spelled, choices=names, importance=share, best=words)
    return Setting(label, values, one.low, one.high, one.log, importance=share, best=words)
