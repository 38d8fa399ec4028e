"""The parsers of the paper's Table 1 side by side, and their curves: figures, tables and pages for docs/results."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from aggrevated.experiments import Row
from aggrevated.files import Facts, write_atomically, write_json
from aggrevated.parsing.parser import Corpus, Parser
from aggrevated.parsing.scoring import at_random, next_head
from aggrevated.parsing.splits import pages_of
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated.plots.learning_curves import Curve
from aggrevated.plots.parsing import curves_on_both, dots
from aggrevated.runs.config import Config
from aggrevated.runs.report import Group, by_name

PACKAGES = ("aggrevated", "torch", "numpy", "scikit-learn", "scipy")
NOT_THE_SAME = (
    "The paper's data (400 pages by one writer, Duyck & Gordon 2015) are not public: its numbers are of other pages "
    "than ours, and the two columns are not comparable. *Pages seen* and *seconds* are of the iterations, without a "
    "supervised start; runs stood side by side, one for each core."
)

ON_REAL_INK = (
    "CROHME's core expressions: one line of 3 to 30 symbols with an operator. Learned from `train/` without a tenth of "
    "its writers, who are for validation; tested on `dev/`. No string of validation or test is learned from. The "
    "row that does not say so never saw real ink. CROHME's files are under a licence of their own and are no part of "
    "this repository."
)


def table(groups: Sequence[Group], rows: Sequence[Row], measured: Sequence[Sequence[Facts]]) -> list[Facts]:
    """One row per method: test UAS, mean over the trials with its spread, and what the paper reports."""
    out = []
    for group, row, results in zip(groups, rows, measured, strict=True):
        scores = np.array([result["uas_micro"] for result in results])
        config = group.runs[0].config
        out.append(
            {
                "label": group.label,
                "method": config.method,
                "update": config.update,
                "policy": config.policy,
                "trials": len(scores),
                "uas_micro": float(scores.mean()),
                "uas_micro_least": float(scores.min()),
                "uas_micro_most": float(scores.max()),
                "uas_macro": float(np.mean([result["uas_macro"] for result in results])),
                "exact_match": float(np.mean([result["exact_match"] for result in results])),
                "paper": row.paper,
                "iterations": config.iterations,
                "pages": config.iterations * config.trajectories,
                "seconds": float(group.column("seconds").mean()),
            }
        )
    return out


def baselines(config: Config) -> list[Facts]:
    """What takes no learning, on the test pages: every head the next symbol, and transitions at random."""
    pages = pages_of(config.crohme, config.sets, config.data_seed, config.single_writer).test
    parser = Parser(Corpus.of(pages), np.arange(len(pages)), in_order=True, system=SYSTEMS[config.system])
    return [
        {"label": "always the next head", "uas_micro": next_head(parser), "paper": None},
        {"label": "random transitions", "uas_micro": at_random(parser), "paper": None if config.crohme else 0.15},
    ]


def write_table(
    groups: Sequence[Group],
    rows: Sequence[Row],
    measured: Sequence[Sequence[Facts]],
    command: str,
    path: Path,
    title: str,
    notes: Sequence[str],
) -> list[Facts]:
    """Write PATH.json, .png, .svg and .md, and give the table."""
    facts: Facts = {
        "command": command,
        "versions": {name: version(name) for name in PACKAGES},
        "seeds": [run.config.seed for run in groups[0].runs],
        "table": [*table(groups, rows, measured), *baselines(groups[0].runs[0].config)],
        "settings": {group.label: public(group.runs[0].config) for group in groups},
        "trials": [
            {"label": group.label, **by_name(result)}
            for group, results in zip(groups, measured, strict=True)
            for result in results
        ],
    }
    each = [[result["uas_micro"] for result in results] for results in measured]
    dots(facts["table"], each, title, path)
    write_json(path.with_name(f"{path.name}.json"), facts)
    write_atomically(path.with_name(f"{path.name}.md"), page(facts, title, path.name, notes).encode())
    return list(facts["table"])


def public(config: Config) -> Facts:
    """The settings, without the place of data on this machine."""
    return config.facts() | {"crohme": Path(config.crohme).name}


def page(facts: Facts, title: str, name: str, notes: Sequence[str]) -> str:
    """The results page, in Markdown."""
    lines = [f"# {title}", "", f"![UAS of each method]({name}.png)", ""]
    lines += [
        "| method | UAS, micro | least to most | macro | whole pages | iterations | pages seen | seconds | paper |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in facts["table"]:
        of_paper = "" if row["paper"] is None else f"{row['paper']:.3f}"
        if "trials" not in row:
            lines.append(f"| {row['label']} | {row['uas_micro']:.3f} | | | | | | | {of_paper} |")
            continue
        spread = f"{row['uas_micro_least']:.3f} to {row['uas_micro_most']:.3f}"
        cost = f"{row['iterations']} | {row['pages']:,} | {row['seconds']:.0f}"
        lines.append(
            f"| {row['label']} | **{row['uas_micro']:.3f}** | {spread} | {row['uas_macro']:.3f} "
            f"| {row['exact_match']:.2f} | {cost} | {of_paper} |"
        )
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    closing = (
        f"Command: `{facts['command']}`; seeds {facts['seeds'][0]} to {facts['seeds'][-1]}; {versions}. "
        f"All numbers, and every setting of every method: [{name}.json]({name}.json)."
    )
    return "\n".join([*lines, "", *(line for note in notes for line in (note, "")), closing, ""])


def write_curves(groups: Sequence[Group], command: str, path: Path) -> list[Facts]:
    """UAS of the current policy over iterations, on validation and on test pages."""
    panels = []
    for part in ("current_return", "test_uas"):
        curves = []
        for group in groups:
            lines = [[line for line in run.metrics() if "test_uas" in line] for run in group.runs]
            n = np.array([line["iteration"] for line in lines[0]])
            curves.append(Curve(group.label, n, np.array([[line[part] for line in trial] for trial in lines])))
        panels.append(curves)
    curves_on_both(panels, path)
    facts = [
        {
            "label": validation.label,
            "iterations": validation.episodes.tolist(),
            "validation_uas": validation.returns.tolist(),
            "test_uas": test.returns.tolist(),
        }
        for validation, test in zip(*panels, strict=True)
    ]
    write_json(path.with_name(f"{path.name}.json"), {"command": command, "curves": facts})
    return facts
