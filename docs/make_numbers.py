"""Write the measured numbers of README.md and docs from the JSON in docs/results: `python docs/make_numbers.py`.

A number is followed by an invisible comment with its source:

    1.070<!--hopper:table[AggreVaTeD, natural].ratio-->

- FILE:PATH is a file below docs/results, without .json, and keys joined by dots.
- A key in brackets may have any letters. In a list it selects the item with this value (`[symbols & core]`: both;
  `[workers=2]`: that key has it), or the item at an index from 0 on; in a text the number at an index. `[*]` is all
  items.
- `len`, `sum`, `mean`, `median`, `min` and `max` end the path of a list; `half` is half of the 95 % interval of the
  mean, by Student's t.
- ` * 100`, ` / 1000`, ` - FILE:PATH` and the like may follow, and are computed from left to right.
- ` ~2` at the end rounds to two digits. Decimals, sign and leading zero are those of the existing number.

A number with an interval in the JSON (`ratio_low`, `ratio_high`) must have the interval in the next marks. A null value
was never reached, and is written as a word.

`--check` changes no file, prints what would change, and exits with 1. `<!--given-->` after numbers marks the paper's
numbers and settings, which are not measured here. tests/test_numbers.py finds measured-looking numbers without a mark.
"""

import argparse
import json
import operator
import re
import statistics
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from scipy.stats import t as student

ROOT = Path(__file__).resolve().parent.parent
BY_HAND = {"README.md", "reader.md"}  # of docs/results; commands write the other pages there from the JSON

MARK = re.compile(
    r"(?P<number>(?:(?<![\w.,)\]])[-−+])?(?<![\d.,])(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?)"
    r"<!--(?P<source>[^\s<>](?:[^<>]*[^\s<>])?)-->"
)
TERM = re.compile(r"(?P<file>[\w/-]+):(?P<path>(?:\[[^\]]*\]|[^\s\[\]])+)|(?P<factor>\d+(?:\.\d+)?)")
KEY = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
SIGNS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
PLAIN = ("low", "high")
INTERVALS = {"median": (("lower", "upper"), PLAIN), "iqm": (PLAIN,), "difference": (PLAIN,)}  # or NAME_low, NAME_high
OF_LISTS: dict[str, Callable[[list[Any]], float]] = {
    "len": len, "sum": sum, "mean": statistics.fmean, "median": statistics.median, "min": min, "max": max,
}  # fmt: skip


def half(values: list[float]) -> float:
    """Return half of the 95 % interval of the mean, by Student's t."""
    return float(student.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / len(values) ** 0.5


OF_LISTS["half"] = half


class NoNumberError(Exception):
    """A mark whose source is not a number."""


def pages() -> list[Path]:
    """Return the hand-written pages."""
    docs = ROOT / "docs"
    results = ROOT / "docs/results"
    made = {docs / "settings.md", *results.glob("**/*.md")} - {results / name for name in BY_HAND}
    return [page for page in (ROOT / "README.md", *sorted(docs.glob("**/*.md"))) if page not in made]


@cache
def facts(file: str) -> Any:
    """Return the content of docs/results/FILE.json."""
    try:
        return json.loads((ROOT / "docs/results" / f"{file}.json").read_text())
    except FileNotFoundError as error:
        raise NoNumberError(f"there is no docs/results/{file}.json") from error


def looked_up(source: str) -> float:
    """Return the number that a mark refers to."""
    total = None
    rest = source
    sign = ""
    while rest:
        term = TERM.match(rest)
        if term is None:
            raise NoNumberError(f"'{rest}' is neither FILE:PATH nor a number")
        value = float(term["factor"]) if term["factor"] else float(number(found(facts(term["file"]), term["path"])))
        total = value if total is None else SIGNS[sign](total, value)
        rest = rest[term.end() :]
        if rest:
            following = re.match(r" ([-+*/]) ", rest)
            if following is None:
                raise NoNumberError(f"' + ', ' - ', ' * ' or ' / ' expected at '{rest}'")
            sign = following[1]
            rest = rest[following.end() :]
    if total is None:
        raise NoNumberError("it is empty")
    return total


def number(value: object) -> float:
    """Return the value if it is a number, else raise."""
    if not isinstance(value, (int, float)):
        raise NoNumberError(f"it leads to {str(value)[:60]}, which is not a number")
    return value


def found(value: Any, path: str) -> Any:
    """Return the value at a path."""
    keys = [(bracketed if plain == "" else plain, plain == "") for bracketed, plain in KEY.findall(path)]
    for place, (key, bracketed) in enumerate(keys):
        if isinstance(value, dict):
            if key not in value:
                raise NoNumberError(f"there is no '{key}' among {', '.join(map(str, value))[:200]}")
            value = value[key]
        elif isinstance(value, list) and not bracketed and key in OF_LISTS:
            value = OF_LISTS[key](value)
        elif isinstance(value, list) and key == "*":
            rest = "".join(f"[{name}]" if in_brackets else f".{name}" for name, in_brackets in keys[place + 1 :])
            path_of_items, dot, ending = rest.rpartition(".")
            if not dot or ending not in OF_LISTS:
                raise NoNumberError(f"all items need one of {', '.join(OF_LISTS)} at the end")
            return OF_LISTS[ending]([found(item, path_of_items) for item in value])
        elif isinstance(value, list):
            value = item_of(value, key)
        elif isinstance(value, str) and bracketed and key.isdigit():
            value = float(re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", value)[int(key)].replace(",", ""))
        else:
            raise NoNumberError(f"there is nothing below {str(value)[:60]}: '{key}'")
    return value


def item_of(items: list[Any], words: str) -> Any:
    """Return the item with all of these values, or the one at this index."""
    if words.isdigit() and not any(isinstance(item, dict) for item in items):
        return items[int(words)]
    fitting = [item for item in items if all(has(item, word) for word in words.split(" & "))]
    if len(fitting) != 1:
        raise NoNumberError(f"{len(fitting)} items are [{words}]")
    return fitting[0]


def has(item: dict[str, Any], word: str) -> bool:
    """Return whether one of its values, or that of a key, is this."""
    key, equals, value = word.partition("=")
    if equals and key in item:
        return str(item[key]) == value
    return word in [str(value) for value in item.values() if isinstance(value, str)]


def written(value: float, old: str, digits: int = 0) -> str:
    """Return the number in the format of the old one."""
    if digits and value:
        value = float(f"{value:.{digits - 1}e}")
    decimals = len(old.partition(".")[2])
    text = f"{abs(value):,.{decimals}f}"
    if old.lstrip("-−+").startswith("."):
        text = text.removeprefix("0")
    if value < 0 and text.strip("0.,"):
        return ("-" if old.startswith("-") else "−") + text
    return ("+" if old.startswith("+") else "") + text


def filled_in(text: str) -> tuple[str, list[str]]:
    """Return the text with its numbers from the JSON, and the errors of marks."""
    wrong = []

    def replaced(mark: re.Match[str]) -> str:
        if mark["source"] == "given":
            return mark[0]
        source, _, digits = mark["source"].partition(" ~")
        try:
            if not mark["number"].strip("-−+"):
                raise NoNumberError("no number stands before it")
            return f"{written(looked_up(source), mark['number'], int(digits or 0))}<!--{mark['source']}-->"
        except (NoNumberError, ValueError, IndexError, ZeroDivisionError) as error:
            wrong.append(f"<!--{mark['source']}-->: {error}")
            return mark[0]

    return MARK.sub(replaced, text), wrong


def as_printed(text: str) -> str:
    """Return the text of a guide with the JSON line that its script prints, from guides.json."""

    def replaced(match: re.Match[str]) -> str:
        name = match["script"]
        seed = int(match["seed"])
        row = next((row for row in facts("guides").get(name, []) if row["seed"] == seed), None)
        line = row and json.dumps({key: value for key, value in row.items() if key != "command"})
        return f"{match['head']}{line or match['line']}\n```"

    head = r"(?P<head>`python (?P<script>\w+)\.py [^`]*--seed (?P<seed>\d)` ends with\n\n```json\n)"
    return re.sub(head + r"(?P<line>\{.*\})\n```", replaced, text)


def without_interval(text: str) -> Iterator[str]:
    """Yield marks of numbers with an interval that is not in the next marks."""
    sources = [mark["source"] for mark in MARK.finditer(text)]
    for place, source in enumerate(sources):
        term = TERM.match(source)
        if term is None or not term["file"] or not (name := re.search(r"(.*\.)(\w+)$", term["path"])):
            continue
        try:
            values = found(facts(term["file"]), name[1].rstrip("."))
        except NoNumberError:
            continue
        default_pair = (f"{name[2]}_low", f"{name[2]}_high")
        known = (default_pair, *INTERVALS.get(name[2], ()))
        ends = next((pair for pair in known if isinstance(values, dict) and set(pair) <= set(values)), None)
        ends = [end for end in ends or () if values[end] is not None]  # null ends have no number
        wanted = [source.replace(term[0], f"{term['file']}:{name[1]}{end}", 1) for end in ends]
        if sources[place + 1 : place + 1 + len(wanted)] != wanted:
            yield f"<!--{source}--> has an interval: {' and '.join(ends)} must be the next marks"


def differences(old: str, new: str) -> Iterator[str]:
    """Yield the changes."""
    for before, after in zip(MARK.finditer(old), MARK.finditer(new), strict=True):
        if before[0] != after[0]:
            yield f"{before['number']} is {after['number']} by {after['source']}"


def main() -> int:
    """Write or check the pages; return 1 if something is wrong."""
    parser = argparse.ArgumentParser(description="Write the marked numbers of README.md and docs from docs/results.")
    parser.add_argument("--check", action="store_true", help="print what would change, without writing")
    given = parser.parse_args()
    faults = 0
    for page in pages():
        old = page.read_text()
        new, wrong = filled_in(old)
        new = as_printed(new)
        wrong += without_interval(old)
        changed = [*differences(old, new)]
        changed += ["what the script prints is another line"] if as_printed(old) != old else []
        for line in [*wrong, *changed]:
            print(f"{page.relative_to(ROOT)}: {line}")
        faults += len(wrong) + (len(changed) if given.check else 0)
        if new != old and not given.check:
            page.write_text(new)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
