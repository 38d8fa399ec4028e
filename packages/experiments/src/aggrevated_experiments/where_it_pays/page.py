"""One page on all studies of when the cost of a mistake matters."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aggrevated.core.errors import DataError
from aggrevated.reports import Table, digest_numbers, format_versions, make_text_column
from aggrevated.reports.comparison import TrialGroup
from aggrevated.storage import JsonDict, read_json, write_atomically
from aggrevated_experiments.figures import Figure, Request

STUDIES = ("pays-tree", "pays-lock", "pays-cliff", "pays-keys", "pays-packing", "expert-strength")
INTRODUCTION = (
    "*When does knowing the cost of a mistake matter?* Each study below was made to tell methods apart: one thing is "
    "varied, the expert is free or cheap to ask, and five seeds, or trees, and the budget are the same for all who "
    "learn. Its question and its answer stand here, the answer written by the program from the numbers; tables, all "
    "trials, every setting and what speaks against the study are behind the link. Each command takes minutes of "
    "two cores. [In short](../where-it-pays.md)."
)


@dataclass(frozen=True)
class WhereItPays(Figure):
    """A page made from the pages of the studies, which must exist."""

    name: str = "where-it-pays"

    def choose_folder(self, request: Request) -> Path:
        return request.report or request.out or Path("docs/results")

    def write(self, groups: Sequence[TrialGroup], request: Request, folder: Path) -> Table:
        studies = {name: load_study(folder / f"{name}.json") for name in STUDIES if (folder / f"{name}.json").is_file()}
        if not studies:
            first = STUDIES[0]
            raise DataError(f"{folder} has none of the studies; make them first: 'aggrevated reproduce {first}', ...")
        parts = ["# Where it pays", INTRODUCTION]
        for name, study in studies.items():
            parts += render_section(name, study)
        if missing := [f"`aggrevated reproduce {name}`" for name in STUDIES if name not in studies]:
            parts.append(f"Not made yet: {', '.join(missing)}.")
        parts.append(f"Made by `aggrevated reproduce {self.name}` of the pages that it links to.")
        write_atomically(folder / f"{self.name}.md", ("\n\n".join(parts) + "\n").encode())
        rows = [
            {"study": name, "question": study["question"], "answer": study["answer"]} for name, study in studies.items()
        ]
        columns = {"study": make_text_column("study"), "answer": make_text_column("answer")}
        return Table(rows, columns, f"page: {folder}/{self.name}.md")


FIGURES = (WhereItPays(),)


def load_study(path: Path) -> JsonDict:
    """Return the numbers of a study.

    Raises:
        DataError: the file is not as it was written.
    """
    study = read_json(path)
    if study.get("bits") != digest_numbers(study):
        raise DataError(f"{path} is not as it was written; make it again with 'aggrevated reproduce {path.stem}'")
    return study


def render_section(name: str, study: JsonDict) -> list[str]:
    """Return the section of one study."""
    title = study.get("title", name)
    return [
        f"## {title}",
        f"*{study['question']}*",
        f"![{title}]({name}.png)",
        study["answer"],
        f"[Tables, trials, settings]({name}.md). Command: `{study['command']}`; {format_versions(study['versions'])}.",
    ]
