"""The experiments of the theory as files: a figure, and the numbers behind it."""

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from aggrevated.errors import UsageError
from aggrevated.files import Facts, storage_errors, write_atomically, write_json
from aggrevated.runs.config import known, require
from aggrevated.theory.experiments import EXPERIMENTS, table
from aggrevated.theory.study import Study

LEAST = {"depth": 4, "states": 4, "actions": 2, "horizon": 1, "episodes": 64, "trials": 1, "seed": 0, "rollouts": 1}
MOST = {"depth": 16}


def asked_for(name: str, given: Mapping[str, int]) -> dict[str, int]:
    """The experiment's settings: its defaults, and what was given; a `UsageError` for what it does not have."""
    defaults = EXPERIMENTS[known(name, "experiment", EXPERIMENTS)].defaults
    for setting, value in given.items():
        if setting not in defaults:
            raise UsageError(f"--{setting} has no effect on the experiment {name}; leave it out")
        require(value >= LEAST[setting], setting, value, f"at least {LEAST[setting]}")
        require(value <= MOST.get(setting, value), setting, value, f"at most {MOST.get(setting)}")
    settings = {**defaults, **given}
    if name == "tree":
        leaves = 2 ** (settings["depth"] - 1)
        if "episodes" not in given:
            settings["episodes"] = max(16 * leaves, 64)
        require(settings["episodes"] >= leaves, "episodes", settings["episodes"], f"at least {leaves}, one per leaf")
    return settings


def run_experiment(name: str, settings: Mapping[str, Any], folder: Path) -> tuple[Study, Facts]:
    """Run it, and leave NAME.png, .svg and .json in the folder."""
    import torch

    from aggrevated.plots.regret_curves import regret_curves

    torch.set_num_threads(1)
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)  # what cannot be written is known before the work
    study = EXPERIMENTS[name].run(**settings)
    regret_curves(study, folder / name)
    options = " ".join(f"--{option} {value}" for option, value in settings.items())
    packages = ("aggrevated", "numpy", "torch")
    facts = study.facts() | {
        "command": f"aggrevated theory {name} {options}",
        "versions": {package: version(package) for package in packages},
    }
    write_json(folder / f"{name}.json", facts)
    return study, facts


def reproduce_theory(folder: Path, quick: bool, report: Callable[[str], None]) -> list[Facts]:
    """All four experiments with the settings of the docs (or the small ones), and theory.md, a page of them all."""
    results = []
    for name, experiment in EXPERIMENTS.items():
        settings = dict(experiment.defaults) | ({} if quick else dict(experiment.docs))
        report(f"theory {name}: " + ", ".join(f"{option} {value}" for option, value in settings.items()))
        results.append(run_experiment(name, settings, folder))
    write_atomically(folder / "theory.md", page(results).encode())
    return [facts for _, facts in results]


def page(results: Sequence[tuple[Study, Facts]]) -> str:
    """The results page, in Markdown: a figure, a table and the command of each experiment."""
    lines = ["# The theory, measured", "", "What it means: [docs/theory.md](../theory.md).", ""]
    for study, facts in results:
        lines += [f"## {study.title}", "", f"![{study.title}]({study.name}.png)", ""]
        lines += [
            "| algorithm | regret at N | least and most of the trials | exponent in N | in S |",
            "|---|---|---|---|---|",
        ]
        for row in table(study):
            exponents = " | ".join("" if x is None else f"{x:.2f}" for x in (row.exponent_n, row.exponent_s))
            spread = f"{row.least:,.1f} to {row.most:,.1f}"
            lines.append(f"| {row.algorithm} | {row.regret:,.1f} | {spread} | {exponents} |")
        lines += [
            "",
            f"{study.bound_label}: {facts['bound']:,.1f} at N. The largest ratio of regret to it in any trial and",
        ]
        lines[-1] += f" episode is {facts['largest_ratio_to_bound']:.3f}. "
        lines[-1] += (
            "; ".join(f"{name.replace('_', ' ')}: {in_words(value)}" for name, value in study.more.items()) + "."
        )
        versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
        lines += [
            "",
            f"Command: `{facts['command']}`; {versions}. All numbers: [{study.name}.json]({study.name}.json).",
            "",
        ]
    return "\n".join(lines)


def in_words(value: object) -> str:
    """A number, or several by name, with as many digits as one reads."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {in_words(number)}" for name, number in value.items())
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
