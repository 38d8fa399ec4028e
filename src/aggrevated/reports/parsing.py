"""The parsers of the paper's Table 1 side by side, on generated pages and on real ink, and their curves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from aggrevated.config import Config
from aggrevated.errors import UsageError
from aggrevated.files import Facts, write_json
from aggrevated.parsing.parser import Corpus, Parser
from aggrevated.parsing.scoring import at_random, next_head
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated.parsing.world import Algebra, OnPages
from aggrevated.plots.learning_curves import Curve
from aggrevated.plots.parsing import curves_on_both, dots
from aggrevated.reports import Table, by_name, markdown, number, publish, text, versions
from aggrevated.reports.figures import Figure, Request
from aggrevated.reports.groups import Group
from aggrevated.runs.evaluating import evaluate
from aggrevated.runs.records import Metrics, Result
from aggrevated.tasks import Row, Task
from aggrevated.tasks.algebra import CURVES, REAL_INK, TABLE1, TASK

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
HEADER = "method | UAS, micro | least to most | macro | whole pages | iterations | pages seen | seconds | paper"
COLUMNS = {"method": text("label"), "UAS": number("uas_micro"), "paper, on other data": number("paper")}


@dataclass(frozen=True)
class Table1(Figure):
    """UAS of every row, mean over the trials."""

    name: str = "table1"
    task: Task = TASK
    trials: int = TASK.trials
    title: str = "Table 1 of the paper, on generated pages"
    notes: str = NOT_THE_SAME

    def rows(self, request: Request) -> Sequence[Row]:
        return TABLE1

    def measured(self, group: Group, request: Request) -> list[Result]:
        """The results of its trials."""
        return group.results

    def write(self, groups: Sequence[Group], request: Request, folder: Path) -> Table:
        """Write NAME.json, .png, .svg and .md, and give the table."""
        measured = [self.measured(group, request) for group in groups]
        rows = zip(groups, self.rows(request), measured, strict=True)
        trials = zip(groups, measured, strict=True)
        facts: Facts = {
            "command": request.command(self),
            "versions": versions(("aggrevated", "torch", "numpy", *self.task.packages)),
            "seeds": [run.config.loop.seed for run in groups[0].runs],
            "table": [*(line(*row) for row in rows), *baselines(groups[0].runs[0].config)],
            "settings": {group.label: public(group.runs[0].config) for group in groups},
            "trials": [{"label": group.label, **by_name(one.facts())} for group, results in trials for one in results],
        }
        path = folder / self.name
        dots(facts["table"], [[one.more["uas_micro"] for one in results] for results in measured], self.title, path)
        numbers = markdown(HEADER, [cells(row) for row in facts["table"]])
        parts = [f"# {self.title}", f"![UAS of each method]({self.name}.png)", numbers, self.notes]
        publish(folder, self.name, facts, parts)
        return Table(facts["table"], COLUMNS, f"figure: {path}.png and .svg")


@dataclass(frozen=True)
class RealInk(Table1):
    """The same for parsers that learned from real ink, on the ink of other writers."""

    name: str = "real-ink"
    title: str = "Real ink: CROHME's core expressions by other writers"
    notes: str = ON_REAL_INK
    needs: ClassVar[tuple[str, ...]] = ("crohme",)

    def rows(self, request: Request) -> Sequence[Row]:
        """The rows from real ink, and the first from generated ink only."""
        folder = request.crohme
        if folder is None or not all((folder / part).is_dir() for part in ("train", "dev")):
            raise UsageError(f"{folder} has no train/ and dev/; give the folder that has both")
        real = {"crohme": str(folder.resolve())}
        return [*(replace(row, settings={**row.settings, **real}) for row in REAL_INK), REAL_INK[0]]

    def measured(self, group: Group, request: Request) -> list[Result]:
        scores = [evaluate(run, OnPages(str(request.crohme))).more for run in group.runs]
        return [replace(result, more=score) for result, score in zip(group.results, scores, strict=True)]


@dataclass(frozen=True)
class ParsingCurves(Figure):
    """UAS of the current policy over iterations, on validation and on test pages."""

    name: str = "parsing-curves"
    task: Task = TASK
    trials: int = TASK.trials
    runs_of: str = "table1"

    def rows(self, request: Request) -> Sequence[Row]:
        return CURVES

    def write(self, groups: Sequence[Group], request: Request, folder: Path) -> Table:
        validation = [curve(group, lambda line: line.current_return) for group in groups]
        test = [curve(group, lambda line: line.more["test_uas"]) for group in groups]
        path = folder / self.name
        curves_on_both([validation, test], path)
        facts = [
            {
                "label": chosen_on.label,
                "iterations": chosen_on.episodes.tolist(),
                "validation_uas": chosen_on.returns.tolist(),
                "test_uas": reported.returns.tolist(),
            }
            for chosen_on, reported in zip(validation, test, strict=True)
        ]
        write_json(folder / f"{self.name}.json", {"command": request.command(self), "curves": facts})
        return Table(facts, closing=f"figure: {path}.png and .svg")


FIGURES = (Table1(), ParsingCurves(), RealInk())


def line(group: Group, row: Row, results: Sequence[Result]) -> Facts:
    """Of a method: test UAS, mean over the trials with its spread, and what the paper reports."""
    config, scores = group.runs[0].config, [result.more for result in results]
    micro = [score["uas_micro"] for score in scores]
    return {
        "label": group.label,
        "method": config.method,
        "update": config.update.name,
        "policy": config.policy.name,
        "trials": len(scores),
        "uas_micro": float(np.mean(micro)),
        "uas_micro_least": min(micro),
        "uas_micro_most": max(micro),
        "uas_macro": float(np.mean([score["uas_macro"] for score in scores])),
        "exact_match": float(np.mean([score["exact_match"] for score in scores])),
        "paper": row.paper,
        "iterations": results[0].iterations,
        "pages": results[0].iterations * config.loop.trajectories,
        "seconds": group.mean("seconds"),
    }


def curve(group: Group, value: Callable[[Metrics], float]) -> Curve:
    """A value of the policies that were validated, over the iterations."""
    trials = [[metrics for metrics in run.metrics() if metrics.more] for run in group.runs]
    n = np.array([metrics.iteration for metrics in trials[0]])
    return Curve(group.label, n, np.array([[value(metrics) for metrics in trial] for trial in trials]))


def baselines(config: Config) -> list[Facts]:
    """What takes no learning, on the test pages: every head the next symbol, and transitions at random."""
    world = config.world
    assert isinstance(world, Algebra)
    pages = world.split().test
    parser = Parser(Corpus.of(pages), np.arange(len(pages)), in_order=True, system=SYSTEMS[world.system])
    return [
        {"label": "always the next head", "uas_micro": next_head(parser), "paper": None},
        {"label": "random transitions", "uas_micro": at_random(parser), "paper": None if world.crohme else 0.15},
    ]


def public(config: Config) -> Facts:
    """The settings, without the place of data on this machine."""
    assert isinstance(config.world, Algebra)
    return config.replaced(crohme=Path(config.world.crohme).name).facts()


def cells(row: Facts) -> list[str]:
    """One line of the page's table; what takes no learning has only its UAS."""
    of_paper = "" if row["paper"] is None else f"{row['paper']:.3f}"
    if "trials" not in row:
        return [row["label"], f"{row['uas_micro']:.3f}", *[""] * 6, of_paper]
    spread = f"{row['uas_micro_least']:.3f} to {row['uas_micro_most']:.3f}"
    cost = [str(row["iterations"]), f"{row['pages']:,}", f"{row['seconds']:.0f}"]
    scores = [f"**{row['uas_micro']:.3f}**", spread, f"{row['uas_macro']:.3f}", f"{row['exact_match']:.2f}"]
    return [row["label"], *scores, *cost, of_paper]
