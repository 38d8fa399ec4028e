"""What is made of runs: tables, figures and pages, to print and to publish."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from aggrevated.files import Facts, write_atomically, write_json

Column = Callable[[Facts], str]


@dataclass(frozen=True)
class Table:
    """Rows for machines, and for people those of their numbers that a column shows."""

    rows: Sequence[Facts]
    columns: Mapping[str, Column] = field(default_factory=dict)
    closing: str = ""  # a line below
    title: str = ""


def number(name: str, digits: int = 3) -> Column:
    """A column of numbers; nothing where there is none."""
    return lambda row: "" if row.get(name) is None else f"{row[name]:,.{digits}f}"


def thousands(name: str) -> Column:
    """A column of large numbers."""
    return lambda row: f"{row[name] / 1000:,.0f} k"


def text(name: str) -> Column:
    """A column of words."""
    return lambda row: str(row.get(name, ""))


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Of the packages that a result depends on."""
    return {name: version(name) for name in packages}


def publish(folder: Path, name: str, facts: Facts, parts: Sequence[str]) -> None:
    """Write NAME.json and, of these paragraphs and one on where they come from, NAME.md."""
    seeds = facts["seeds"]
    source = (
        f"Command: `{facts['command']}`; seeds {seeds[0]} to {seeds[-1]}; {in_words(facts['versions'])}. "
        f"All numbers, and every setting of every method: [{name}.json]({name}.json)."
    )
    write_json(folder / f"{name}.json", facts)
    write_atomically(folder / f"{name}.md", ("\n\n".join([*parts, source]) + "\n").encode())


def in_words(numbers: Mapping[str, str]) -> str:
    """Versions as one line."""
    return ", ".join(f"{name} {number}" for name, number in numbers.items())


def markdown(header: str, rows: Sequence[Sequence[str]]) -> str:
    """A table; its header has a bar between any two columns."""
    lines = [f"| {header} |", f"|{'---|' * (header.count('|') + 1)}"]
    lines += [f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |") for cells in rows]
    return "\n".join(lines)


def by_name(facts: Facts) -> Facts:
    """The same, with the name of the run's folder instead of its place on this machine."""
    return facts | {"run": Path(facts["run"]).name}
