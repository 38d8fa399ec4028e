"""Files of the theory's experiments: figures, numbers and a page."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aggrevated.core.errors import UsageError
from aggrevated.core.hardware import single_thread
from aggrevated.core.settings import check_known, check_setting, to_flag
from aggrevated.reports import (
    Table,
    add_digest,
    format_markdown_table,
    format_versions,
    get_package_versions,
    make_number_column,
    make_text_column,
)
from aggrevated.reports.comparison import TrialGroup
from aggrevated.storage import JsonDict, reraise_storage_errors, write_atomically, write_json
from aggrevated_experiments.figures import Figure, Request
from aggrevated_experiments.theory.experiments import EXPERIMENTS, RegretRow, make_regret_rows
from aggrevated_experiments.theory.study import Study
from aggrevated_experiments.theory.tuning import SETTINGS_PER_ALGORITHM

MIN_VALUES = {
    "depth": 4,
    "states": 4,
    "actions": 2,
    "horizon": 1,
    "episodes": 64,
    "trials": 1,
    "seed": 0,
    "rollouts": 1,
}
MAX_VALUES = {
    "depth": 16,
    "states": 10_000,
    "actions": 1_000,
    "horizon": 1_000,
    "episodes": 10_000_000,
    "trials": 10_000,
}
MAX_VALUES |= {"seed": 2**63 - 1, "rollouts": 1_000_000}
MAX_NUMBERS = 100_000_000  # largest size of an array
HEADER = "algorithm | regret at N | interval of the mean | least and most of the trials | exponent in N | in S"


def resolve_settings(name: str, explicit: Mapping[str, int]) -> dict[str, int]:
    """Return the experiment's settings: its defaults, replaced by the given ones.

    Raises:
        UsageError: the experiment or a setting is unknown, or a value is out of range.
    """
    defaults = EXPERIMENTS[check_known(name, "experiment", EXPERIMENTS)].defaults
    for setting, value in explicit.items():
        if setting not in defaults:
            raise UsageError(f"{to_flag(setting)} has no effect on the experiment {name}; leave it out")
        check_setting(value >= MIN_VALUES[setting], setting, value, f"at least {MIN_VALUES[setting]}")
        check_setting(value <= MAX_VALUES[setting], setting, value, f"at most {MAX_VALUES[setting]}")
    settings = {**defaults, **explicit}
    numbers = count_numbers(settings)
    largest = f"fewer, or make the instances smaller: they are {numbers:,} numbers, and {MAX_NUMBERS:,} are the most"
    check_setting(numbers <= MAX_NUMBERS, "trials", settings["trials"], largest)
    if name == "tree":
        leaves = 2 ** (settings["depth"] - 1)
        if "episodes" not in explicit:
            settings["episodes"] = max(16 * leaves, 64)
        check_setting(
            settings["episodes"] >= leaves, "episodes", settings["episodes"], f"at least {leaves}, one per leaf"
        )
    return settings


def count_numbers(settings: Mapping[str, int]) -> int:
    """Return the size of all trials' instances: nodes of a tree, or transitions and horizon of an MDP."""
    if "depth" in settings:
        return int(settings["trials"] * 2 ** settings["depth"])
    successors = settings["states"] * settings["horizon"] if "horizon" in settings else 1
    return settings["trials"] * settings["states"] * settings["actions"] * successors


def run_experiment(name: str, settings: Mapping[str, Any], folder: Path) -> tuple[Study, JsonDict]:
    """Run the experiment, and write NAME.png, .svg and .json into the folder."""
    from aggrevated_experiments.theory.regret_curves import plot_regret_curves

    with reraise_storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)  # fails before the work, not after it
    with single_thread():
        study = EXPERIMENTS[name].run(**settings)
    plot_regret_curves(study, folder / name)
    options = " ".join(f"{to_flag(option)} {value}" for option, value in settings.items())
    command = {
        "command": f"aggrevated theory {name} {options}",
        "versions": get_package_versions(("aggrevated", "numpy", "torch")),
    }
    content = add_digest(study.to_dict() | command)
    write_json(folder / f"{name}.json", content)
    return study, content


@dataclass(frozen=True)
class TheoryPage(Figure):
    """All four experiments on one page, with the settings of the docs or the small ones of --quick."""

    name: str = "theory"

    def choose_folder(self, request: Request) -> Path:
        if request.out and request.report:
            raise UsageError("theory has no runs, only its report; give --report or --out, not both")
        return super().choose_folder(request)

    def write(self, groups: Sequence[TrialGroup], request: Request, folder: Path) -> Table:
        results = []
        for name, experiment in EXPERIMENTS.items():
            settings = dict(experiment.defaults) | dict(experiment.quick if request.quick else experiment.docs)
            request.note(f"theory {name}: " + ", ".join(f"{option} {value}" for option, value in settings.items()))
            results.append(run_experiment(name, settings, folder))
        write_atomically(folder / "theory.md", render_page(results).encode())
        return Table([content for _, content in results], closing=f"figures and page: {folder}/theory.md")


FIGURES = (TheoryPage(),)


def make_regret_table(study: Study, content: JsonDict, closing: str) -> Table:
    """Return the table of a study for the console."""
    interval = {"from": ("low", 1), "to": ("high", 1)}
    numbers = {"regret at N": ("regret", 1), **interval, "least": ("least", 1), "most": ("most", 1)}
    exponents = {"exponent in N": ("exponent_n", 2), "in S": ("exponent_s", 2)}
    columns = {name: make_number_column(*column) for name, column in (numbers | exponents).items()}
    largest = f"the largest ratio of regret to it, in any trial: {content['largest_ratio_to_bound']:.3f}"
    bound = f"{study.bound_label}: {content['bound']:,.1f} at N; {largest}\n{closing}"
    return Table(
        list(map(asdict, make_regret_rows(study))),
        {"algorithm": make_text_column("algorithm"), **columns},
        bound,
        study.title,
    )


def render_page(results: Sequence[tuple[Study, JsonDict]]) -> str:
    """Return the results page in Markdown: a figure, a table and the command of each experiment."""
    parts = ["# The theory, measured", "What it means: [docs/theory.md](../theory.md)."]
    for study, content in results:
        parts += [
            f"## {study.title}",
            f"![{study.title}]({study.name}.png)",
            format_markdown_table(HEADER, list(map(format_row, make_regret_rows(study)))),
            *describe_comparisons(study),
            describe_bound(study, content),
            f"Command: `{content['command']}`; {format_versions(content['versions'])}. "
            f"All numbers: [{study.name}.json]({study.name}.json).",
        ]
    return "\n\n".join(parts) + "\n"


def format_row(row: RegretRow) -> list[str]:
    """Return one line of an experiment's table."""
    exponents = ("" if x is None else f"{x:.2f}" for x in (row.exponent_n, row.exponent_s))
    ranges = f"{row.low:,.1f} to {row.high:,.1f}", f"{row.least:,.1f} to {row.most:,.1f}"
    return [row.algorithm, f"{row.regret:,.1f}", *ranges, *exponents]


def describe_comparisons(study: Study) -> list[str]:
    """Return paragraphs on which algorithm is ahead and how all were tuned; [] without tuning."""
    if not study.tuning:
        return []
    return [" ".join(describe_comparison(study, *pair) for pair in study.compared_labels), describe_tuning(study)]


def describe_comparison(study: Study, first: str, second: str) -> str:
    """Return one sentence that compares two algorithms."""
    means = {regret.label: regret.mean() for regret in study.regrets}
    comparison = study.compare(first, second)
    regret_of_first, regret_of_second = (format_with_interval(*means[label]) for label in (first, second))
    difference = format_with_interval(
        comparison["difference"], comparison["difference_low"], comparison["difference_high"]
    )
    verdict = f"**{comparison['ahead']}** is ahead" if comparison["ahead"] else "neither is ahead for sure"
    regrets = f"{first} loses {regret_of_first}, {second} {regret_of_second}"
    return f"{regrets}: a difference of {difference} on the same instances, {verdict}."


def format_with_interval(value: float, low: float, high: float) -> str:
    """Return a number with its interval."""
    return f"{value:,.1f} [{low:,.1f}, {high:,.1f}]"


def describe_tuning(study: Study) -> str:
    """Return a paragraph on the tried settings with their regrets; the chosen ones are bold."""
    texts: dict[str, list[str]] = {}
    for trial in study.tuning:
        text = f"{trial.setting}: {trial.regret:,.1f}"
        texts.setdefault(trial.algorithm, []).append(f"**{text}**" if trial.chosen else text)
    tries = "; ".join(f"{algorithm}, {', '.join(settings)}" for algorithm, settings in texts.items())
    first = study.tuning[0]
    where = f"on {len(first.trials)} other instances (seed {first.seed})"
    return (
        f"All were tuned alike: the best of {SETTINGS_PER_ALGORITHM} settings, {where}. Regret there: {tries}. "
        "A row that names no setting is as its theorem has it."
    )


def describe_bound(study: Study, content: JsonDict) -> str:
    """Return the paragraph below the table."""
    more = "; ".join(f"{name.replace('_', ' ')}: {format_fact(value)}" for name, value in study.more.items())
    return (
        f"{study.bound_label}: {content['bound']:,.1f} at N. The largest ratio of regret to it in any trial and"
        f" episode is {content['largest_ratio_to_bound']:.3f}. {more}."
    )


def format_fact(value: object) -> str:
    """Format a number, or several by name, with four significant digits."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {format_fact(number)}" for name, number in value.items())
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
