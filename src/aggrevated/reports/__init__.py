"""What is made of runs: tables, figures and pages, to print and to publish."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from aggrevated.core.hardware import describe_machine
from aggrevated.kernels.numerics import compute_numerics_fingerprint
from aggrevated.storage import JsonDict, write_atomically, write_json

Column = Callable[[JsonDict], str]


@dataclass(frozen=True)
class Table:
    """Rows for machines, and for people those of their numbers that a column shows."""

    rows: Sequence[JsonDict]
    columns: Mapping[str, Column] = field(default_factory=dict)
    closing: str = ""  # a line below
    title: str = ""


def make_number_column(name: str, digits: int = 3) -> Column:
    """A column of numbers; nothing where there is none."""
    return lambda row: "" if row.get(name) is None else f"{row[name]:,.{digits}f}"


def make_thousands_column(name: str) -> Column:
    """A column of large numbers."""
    return lambda row: f"{row[name] / 1000:,.0f} k"


def make_text_column(name: str) -> Column:
    """A column of words."""
    return lambda row: str(row.get(name, ""))


def get_package_versions(packages: Sequence[str]) -> dict[str, str]:
    """Of the packages that a result depends on."""
    return {name: version(name) for name in packages}


def write_page(folder: Path, name: str, facts: JsonDict, parts: Sequence[str]) -> None:
    """Write NAME.json and, of these paragraphs and one on where they come from, NAME.md."""
    seeds = facts["seeds"]
    whole = add_digest(facts)
    source = (
        f"Command: `{facts['command']}`; seeds {seeds[0]} to {seeds[-1]}; {format_versions(facts['versions'])}. "
        f"All numbers, and every setting of every method: [{name}.json]({name}.json), the same when made again but for "
        f"what was taken by the clock, with the bits `{whole['bits'][:12]}` where "
        "[arithmetic is the same](../guide.md#the-same-bits)."
    )
    write_json(folder / f"{name}.json", whole)
    write_atomically(folder / f"{name}.md", ("\n\n".join([*parts, source]) + "\n").encode())


def add_digest(facts: JsonDict) -> JsonDict:
    """With the machine that made them, this one unless they name another, and a digest of all that one with the same
    arithmetic must find likewise."""
    machine = facts.get("machine") or describe_machine() | {"arithmetic": compute_numerics_fingerprint()}
    return facts | {"machine": machine, "bits": digest_numbers(facts)}


def digest_numbers(facts: JsonDict) -> str:
    """SHA-256 of the numbers without those of a clock, and without the machine that it hung on."""
    return sha256(json.dumps(drop_timings(facts), sort_keys=True).encode()).hexdigest()


def drop_timings(value: Any) -> Any:
    """Without what is called seconds, whatever comes before it or after."""
    if isinstance(value, Mapping):
        kept = {str(key): one for key, one in value.items() if "seconds" not in str(key)}
        return {key: drop_timings(one) for key, one in kept.items() if key not in ("machine", "bits")}
    return [drop_timings(one) for one in value] if isinstance(value, list | tuple) else value


def format_versions(numbers: Mapping[str, str]) -> str:
    """Versions as one line."""
    return ", ".join(f"{name} {number}" for name, number in numbers.items())


def format_markdown_table(header: str, rows: Sequence[Sequence[str]]) -> str:
    """A table; its header has a bar between any two columns."""
    lines = [f"| {header} |", f"|{'---|' * (header.count('|') + 1)}"]
    lines += [f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |") for cells in rows]
    return "\n".join(lines)


def add_run_name(facts: JsonDict) -> JsonDict:
    """The same, with the name of the run's folder instead of its place on this machine."""
    key = "run_folder" if "run_folder" in facts else "run"  # of a result, of a row of a comparison
    return facts | {key: Path(facts[key]).name}
