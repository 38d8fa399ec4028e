"""When does knowing the cost of a mistake matter? The studies that were made to tell, on one page."""

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
    """Made of the pages of the studies, which have to be there."""

    name: str = "where-it-pays"

    def choose_folder(self, request: Request) -> Path:
        return request.report or request.out or Path("docs/results")

    def write(self, groups: Sequence[TrialGroup], request: Request, folder: Path) -> Table:
        found = {name: load_study(folder / f"{name}.json") for name in STUDIES if (folder / f"{name}.json").is_file()}
        if not found:
            first = STUDIES[0]
            raise DataError(f"{folder} has none of the studies; make them first: 'aggrevated reproduce {first}', ...")
        parts = ["# Where it pays", INTRODUCTION]
        for name, facts in found.items():
            parts += render_section(name, facts)
        if missing := [f"`aggrevated reproduce {name}`" for name in STUDIES if name not in found]:
            parts.append(f"Not made yet: {', '.join(missing)}.")
        parts.append(f"Made by `aggrevated reproduce {self.name}` of the pages that it links to.")
        write_atomically(folder / f"{self.name}.md", ("\n\n".join(parts) + "\n").encode())
        rows = [
            {"study": name, "question": facts["question"], "answer": facts["answer"]} for name, facts in found.items()
        ]
        columns = {"study": make_text_column("study"), "answer": make_text_column("answer")}
        return Table(rows, columns, f"page: {folder}/{self.name}.md")


FIGURES = (WhereItPays(),)


def load_study(path: Path) -> JsonDict:
    """What a study found, as it was written."""
    facts = read_json(path)
    if facts.get("bits") != digest_numbers(facts):
        raise DataError(f"{path} is not as it was written; make it again with 'aggrevated reproduce {path.stem}'")
    return facts


def render_section(name: str, facts: JsonDict) -> list[str]:
    """One study on the page."""
    title = facts.get("title", name)
    return [
        f"## {title}",
        f"*{facts['question']}*",
        f"![{title}]({name}.png)",
        facts["answer"],
        f"[Tables, trials, settings]({name}.md). Command: `{facts['command']}`; {format_versions(facts['versions'])}.",
    ]
