"""What is made of runs: tables, figures and pages, to print and to publish."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from aggrevated.core.hardware import about_this_machine
from aggrevated.kernels.numerics import fingerprint
from aggrevated.storage import Facts, write_atomically, write_json

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
    seeds, whole = facts["seeds"], sealed(facts)
    source = (
        f"Command: `{facts['command']}`; seeds {seeds[0]} to {seeds[-1]}; {in_words(facts['versions'])}. "
        f"All numbers, and every setting of every method: [{name}.json]({name}.json), the same when made again but for "
        f"what was taken by the clock, with the bits `{whole['bits'][:12]}` where "
        "[arithmetic is the same](../guide.md#the-same-bits)."
    )
    write_json(folder / f"{name}.json", whole)
    write_atomically(folder / f"{name}.md", ("\n\n".join([*parts, source]) + "\n").encode())


def sealed(facts: Facts) -> Facts:
    """With the machine that made them, this one unless they name another, and a digest of all that one with the same
    arithmetic must find likewise."""
    machine = facts.get("machine") or about_this_machine() | {"arithmetic": fingerprint()}
    return facts | {"machine": machine, "bits": bits_of(facts)}


def bits_of(facts: Facts) -> str:
    """SHA-256 of the numbers without those of a clock, and without the machine that it hung on."""
    return sha256(json.dumps(timeless(facts), sort_keys=True).encode()).hexdigest()


def timeless(value: Any) -> Any:
    """Without what is called seconds, whatever comes before it or after."""
    if isinstance(value, Mapping):
        kept = {str(key): one for key, one in value.items() if "seconds" not in str(key)}
        return {key: timeless(one) for key, one in kept.items() if key not in ("machine", "bits")}
    return [timeless(one) for one in value] if isinstance(value, list | tuple) else value


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
