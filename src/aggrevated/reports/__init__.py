"""Reports of runs: tables, figures and pages, to print and to publish."""

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
    """Rows of results, with the columns that a printed table shows.

    Attributes:
        rows: the numbers of each row.
        columns: by title, the function from a row to the text of its cell.
        closing: a line below the table.
        title: a line above the table.
    """

    rows: Sequence[JsonDict]
    columns: Mapping[str, Column] = field(default_factory=dict)
    closing: str = ""
    title: str = ""


def make_number_column(name: str, digits: int = 3) -> Column:
    """Return a column of numbers, empty where a row has none."""
    return lambda row: "" if row.get(name) is None else f"{row[name]:,.{digits}f}"


def make_thousands_column(name: str) -> Column:
    """Return a column of large numbers, in thousands."""
    return lambda row: f"{row[name] / 1000:,.0f} k"


def make_text_column(name: str) -> Column:
    """Return a column of words."""
    return lambda row: str(row.get(name, ""))


def get_package_versions(packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of the packages that a result depends on."""
    return {name: version(name) for name in packages}


def write_page(folder: Path, name: str, results: JsonDict, parts: Sequence[str]) -> None:
    """Write NAME.json from `results`, and NAME.md from these paragraphs and one on their origin."""
    seeds = results["seeds"]
    content = add_digest(results)
    source = (
        f"Command: `{results['command']}`; seeds {seeds[0]} to {seeds[-1]}; {format_versions(results['versions'])}. "
        f"All numbers, and every setting of every method: [{name}.json]({name}.json), the same when made again but for "
        f"what was taken by the clock, with the bits `{content['bits'][:12]}` where "
        "[arithmetic is the same](../guide.md#the-same-bits)."
    )
    write_json(folder / f"{name}.json", content)
    write_atomically(folder / f"{name}.md", ("\n\n".join([*parts, source]) + "\n").encode())


def add_digest(results: JsonDict) -> JsonDict:
    """Return the facts with a digest of their reproducible numbers and the machine that computed them.

    The machine is this one unless `results` name another.
    """
    machine = results.get("machine") or describe_machine() | {"numerics": compute_numerics_fingerprint()}
    return results | {"machine": machine, "bits": digest_numbers(results)}


def digest_numbers(results: JsonDict) -> str:
    """Return the SHA-256 of all numbers but durations and the description of the machine."""
    return sha256(json.dumps(drop_timings(results), sort_keys=True).encode()).hexdigest()


def drop_timings(value: Any) -> Any:
    """Return the value without machine, digest and keys that contain "seconds"."""
    if isinstance(value, Mapping):
        untimed = {str(key): entry for key, entry in value.items() if "seconds" not in str(key)}
        return {key: drop_timings(entry) for key, entry in untimed.items() if key not in ("machine", "bits")}
    return [drop_timings(entry) for entry in value] if isinstance(value, list | tuple) else value


def format_versions(numbers: Mapping[str, str]) -> str:
    """Return versions as one line."""
    return ", ".join(f"{name} {number}" for name, number in numbers.items())


def format_markdown_table(header: str, rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; the header separates its columns by bars."""
    lines = [f"| {header} |", f"|{'---|' * (header.count('|') + 1)}"]
    lines += [f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |") for cells in rows]
    return "\n".join(lines)


def add_run_name(row: JsonDict) -> JsonDict:
    """Return the facts with the name of the run's folder instead of its path."""
    key = "run_folder" if "run_folder" in row else "run"  # in a result; in a row of a comparison
    return row | {key: Path(row[key]).name}
