"""The parsers of the paper's Table 1, on generated pages and on real ink, with their curves and tuning."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from aggrevated.config import Config
from aggrevated.core.errors import UsageError
from aggrevated.parsing.problem import AlgebraProblemSettings, PageEvaluationSettings
from aggrevated.reports import (
    Table,
    add_digest,
    add_run_name,
    format_markdown_table,
    get_package_versions,
    make_number_column,
    make_text_column,
    write_page,
)
from aggrevated.reports.comparison import TrialGroup
from aggrevated.storage import JsonDict, write_json
from aggrevated.tasks import FigureRow, Task
from aggrevated.tasks.algebra import CHOSEN_EVERY, CURVES, PAGES, REAL_INK, STARTED, TABLE1, TASK, TUNING
from aggrevated.training.evaluation import evaluate_run
from aggrevated.training.records import Result
from aggrevated.training.run_folder import Run, create_or_open, to_file_name
from aggrevated_experiments.figures import Figure, Request, fingerprint_short_run, make_row_config, make_row_folder_name
from aggrevated_experiments.parsing.table1_rows import (
    compare_groups,
    compute_baselines,
    describe_comparisons,
    format_row,
    get_test_uas,
    get_validation_uas,
    make_uas_curve,
    render_comparisons,
    summarize_curves,
    summarize_row,
    to_public_dict,
)
from aggrevated_experiments.parsing.tuning import RowTuning
from aggrevated_experiments.plots.parsing import plot_scores, plot_validation_and_test_curves

OTHER_DATA_NOTE = (
    "The paper's data (400 pages by one writer, Duyck & Gordon 2015) are not public: its numbers are of other pages "
    "than ours, and the two columns are not comparable."
)
EQUAL_PAGES_NOTE = (
    f"**Equal pages.** Every network learns from {PAGES:,} pages. The first {STARTED:,} of these are the same "
    f"supervised start for all rows of a policy; what is *from scratch* has its {PAGES:,} without one. The best "
    f"policy is chosen on the validation pages after every {CHOSEN_EVERY}. A step is of 16 pages, of the natural "
    "update 64. The exponentiated update makes three steps of Adam on each 16 pages, and one in the row that says "
    "so, which was added after the others had been seen; all others make one. What follows a gradient of costs has "
    "an entropy bonus of 0.4, which falls to a tenth; reinforcement learning has a critic. "
    "The kernel machine is fitted anew to all that it has seen, in time that grows as the square of it: it has 512 "
    "pages, and no start. CPU seconds are those of start and iterations; runs stood side by side, one for each "
    "core."
)
OTHER_PAGES_NOTE = "Trial i has seed i and pages of its own, made with `--data-seed` i: the intervals are over both."
TUNING_NOTE = (
    "Seven rows of the LSTM were tuned before, half as long, with seeds and pages that no trial has; what did best on "
    "validation pages was taken. Every setting that was tried is in the JSON under `tuning`. The rates of the others "
    "were tuned in earlier rounds, with other starts and numbers of pages."
)
REAL_INK_NOTE = (
    "CROHME's core expressions: one line of 3 to 30 symbols with an operator. Learned from `train/` without a tenth of "
    "its writers, who are for validation; tested on `dev/`. No string of validation or test is learned from. The "
    "row that does not say so never saw real ink. CROHME's files are under a licence of their own and are no part of "
    "this repository."
)
HEADER = (
    "method | UAS, micro | 95 % interval | macro | whole pages | iterations | pages seen | the start was chosen | "
    "CPU seconds | paper"
)
COLUMNS = {
    "method": make_text_column("label"),
    "UAS": make_number_column("uas_micro"),
    "paper, on other data": make_number_column("paper"),
}


@dataclass(frozen=True)
class ScoreFigure(Figure):
    """UAS of every row over the trials."""

    name: str
    title: str
    notes: tuple[str, ...]
    task: Task = TASK
    trials: int = TASK.trials

    def evaluate_group(self, group: TrialGroup, request: Request) -> list[Result]:
        """Return the results of the group's trials."""
        return group.results

    def make_extra_facts(self, groups: Sequence[TrialGroup], request: Request) -> JsonDict:
        """Return further entries of the JSON."""
        return {}

    def render_sections(self, results: JsonDict) -> list[str]:
        """Return further paragraphs of the page."""
        return list(self.notes)

    def write(self, groups: Sequence[TrialGroup], request: Request, folder: Path) -> Table:
        """Write NAME.json, .png, .svg and .md, and return the table."""
        rows = self.list_rows(request)
        groups = [replace(group, results=self.evaluate_group(group, request)) for group in assign_labels(groups, rows)]
        results: JsonDict = {
            "command": request.format_command(self),
            "versions": get_package_versions(("aggrevated", "torch", "numpy", *self.task.packages)),
            "seeds": [run.config.loop.seed for run in groups[0].runs],
            "table": [*map(summarize_row, groups, rows), *compute_baselines([run.config for run in groups[0].runs])],
            "settings": {group.label: to_public_dict(group.runs[0].config) for group in groups},
            "trials": [
                {"label": group.label, **add_run_name(result.to_dict())} for group in groups for result in group.results
            ],
        } | self.make_extra_facts(groups, request)
        path = folder / self.name
        plot_scores(
            results["table"], [[run.more["uas_micro"] for run in group.results] for group in groups], self.title, path
        )
        numbers = format_markdown_table(HEADER, [format_row(row) for row in results["table"]])
        parts = [f"# {self.title}", f"![UAS of each method]({self.name}.png)", numbers, *self.render_sections(results)]
        write_page(folder, self.name, results, parts)
        return Table(results["table"], COLUMNS, f"figure: {path}.png and .svg")


@dataclass(frozen=True)
class Table1(ScoreFigure):
    """The paper's rows and others with the same pages, start and settings; each trial has its own pages."""

    name: str = "table1"
    title: str = "Table 1 of the paper, on generated pages"
    notes: tuple[str, ...] = (OTHER_DATA_NOTE, EQUAL_PAGES_NOTE, OTHER_PAGES_NOTE)
    trials: int = 5

    def list_rows(self, request: Request) -> Sequence[FigureRow]:
        return TABLE1

    def iter_stages(self, request: Request) -> Iterator[list[Run]]:
        if tries := [run for tuning in create_tunings(self, request) for runs in tuning.runs for run in runs]:
            yield tries
        yield from super().iter_stages(request)

    def create_runs(self, request: Request) -> list[list[Run]]:
        return create_runs_on_own_pages(self, request)

    def make_extra_facts(self, groups: Sequence[TrialGroup], request: Request) -> JsonDict:
        """Return comparisons, curves, tried settings and a reproducible short run."""
        return {
            "comparisons": compare_groups(groups),
            "curves": [summarize_curves(group) for group in groups],
            "tuning": [
                row.to_dict(format_config_label(row.runs[0][0].config)) for row in create_tunings(self, request)
            ],
            "short": fingerprint_short_run(self),
        }

    def render_sections(self, results: JsonDict) -> list[str]:
        comparisons = results["comparisons"]
        return [
            *self.notes,
            *([TUNING_NOTE] if results["tuning"] else []),
            "## What the cost is worth",
            describe_comparisons(comparisons),
            *render_comparisons(comparisons),
        ]


def create_tunings(figure: Figure, request: Request) -> list[RowTuning]:
    """Return the tuning of each tuned row; none for quick figures."""
    folder = figure.choose_folder(request) / "tuning"
    return [] if request.quick else [RowTuning.create(figure.task, row, changes, folder) for row, changes in TUNING]


def create_runs_on_own_pages(figure: Figure, request: Request) -> list[list[Run]]:
    """Return the runs of the tuned rows: trial i has seed i, and pages drawn from that seed."""
    tuned = create_tunings(figure, request)
    groups = []
    for row in figure.list_rows(request):
        chosen = next((tuning.choose_row() for tuning in tuned if tuning.row == row), row)
        plain = make_row_folder_name(replace(row, settings={}))
        folder = figure.choose_folder(request) / (
            f"{plain}-{to_file_name(row.label_suffix)}" if row.label_suffix else plain
        )
        config = make_row_config(figure.task, chosen, request.quick)
        trials = range(figure.count_trials(request))
        groups.append(
            [create_or_open(folder / f"trial-{i:02d}", config.with_settings(seed=i, data_seed=i)) for i in trials]
        )
    return groups


def assign_labels(groups: Sequence[TrialGroup], rows: Sequence[FigureRow]) -> list[TrialGroup]:
    """Return the groups with labels that say in what they differ."""
    suffixes = [f", {row.label_suffix}" if row.label_suffix else "" for row in rows]
    return [
        replace(group, label=format_config_label(group.runs[0].config) + suffix)
        for group, suffix in zip(groups, suffixes, strict=True)
    ]


def format_config_label(config: Config) -> str:
    """Return method, update and policy, with "from scratch" and "real ink" where they apply."""
    scratch = ", from scratch" if config.start.name == "random" and config.policy.name != "kernel-svm" else ""
    ink = ", real ink" if isinstance(config.problem, AlgebraProblemSettings) and config.problem.crohme else ""
    return f"{config.method_spec.title}, {config.update.name}, {config.policy.name}{scratch}{ink}"


@dataclass(frozen=True)
class RealInk(ScoreFigure):
    """Parsers that learned from real ink, tested on the ink of other writers."""

    name: str = "real-ink"
    title: str = "Real ink: CROHME's core expressions by other writers"
    notes: tuple[str, ...] = (REAL_INK_NOTE,)
    trials: int = 5
    needs: ClassVar[tuple[str, ...]] = ("crohme",)

    def list_rows(self, request: Request) -> Sequence[FigureRow]:
        """Return the rows with real ink, and the first row again with generated ink only.

        Raises:
            UsageError: the folder lacks train/ or dev/.
        """
        folder = request.crohme
        if folder is None or not all((folder / part).is_dir() for part in ("train", "dev")):
            raise UsageError(f"{folder} needs the folders train/ and dev/: pass the folder of CROHME that has both")
        real = {"crohme": str(folder.resolve())}
        return [*(replace(row, settings={**row.settings, **real}) for row in REAL_INK), REAL_INK[0]]

    def make_first_config(self) -> Config:
        """Return the config of the row with generated ink only, which needs no data."""
        return make_row_config(self.task, REAL_INK[0], quick=False)

    def evaluate_group(self, group: TrialGroup, request: Request) -> list[Result]:
        scores = [evaluate_run(run, PageEvaluationSettings(str(request.crohme))).more for run in group.runs]
        return [replace(result, more=score) for result, score in zip(group.results, scores, strict=True)]

    def make_extra_facts(self, groups: Sequence[TrialGroup], request: Request) -> JsonDict:
        return {"comparisons": compare_groups(groups), "short": fingerprint_short_run(self)}

    def render_sections(self, results: JsonDict) -> list[str]:
        return [*self.notes, *render_comparisons(results["comparisons"])]


@dataclass(frozen=True)
class ParsingCurves(Figure):
    """UAS of the current policy over the pages seen, on validation and on test pages."""

    name: str = "parsing-curves"
    task: Task = TASK
    trials: int = 5
    runs_of: str = "table1"

    def list_rows(self, request: Request) -> Sequence[FigureRow]:
        return CURVES

    def create_runs(self, request: Request) -> list[list[Run]]:
        return create_runs_on_own_pages(self, request)

    def write(self, groups: Sequence[TrialGroup], request: Request, folder: Path) -> Table:
        path = folder / self.name
        groups = assign_labels(groups, self.list_rows(request))
        plot_validation_and_test_curves(
            [[make_uas_curve(group, of) for group in groups] for of in (get_validation_uas, get_test_uas)], path
        )
        results = [summarize_curves(group) for group in groups]
        write_json(
            folder / f"{self.name}.json", add_digest({"command": request.format_command(self), "curves": results})
        )
        return Table(results, closing=f"figure: {path}.png and .svg")


FIGURES = (Table1(), ParsingCurves(), RealInk())
