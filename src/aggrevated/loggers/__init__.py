"""Metrics for other programs to show, beside metrics.jsonl, which has them all.

A file in this folder announces a log by a class with a `log`, its name; another package offers its own by an entry
point of the group `aggrevated.loggers`. A callback of one's own needs none of this: it is the body of the loop's `for`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from aggrevated.core.errors import UsageError
from aggrevated.core.registry import find_entry_points, list_modules, load_entry_point
from aggrevated.core.settings import check_known
from aggrevated.storage import JsonDict, truncate_message

ENTRY_POINT_GROUP = (
    "aggrevated.loggers"  # the folder of the shipped ones, and the entry points of those that other packages offer
)


class Writer(Protocol):
    """One log of one run. Where a run goes on, a new one is told of it from its first iteration on."""

    def write(self, metrics: JsonDict) -> None:
        """One more iteration: the facts of its `Metrics`."""
        ...

    def close(self, result: JsonDict | None) -> None:
        """The run has ended with this `Result`, or was stopped."""
        ...


WriterFactory = Callable[[Path, JsonDict], Writer]  # from a run's folder and its config


def parse_names(names: str | Sequence[str]) -> list[str]:
    """Names with commas between, or several of such; none where nothing is said."""
    words = [names] if isinstance(names, str) and names else names
    return [*dict.fromkeys(name.strip() for word in words for name in word.split(","))]


def find_writer_factories(names: str | Sequence[str]) -> dict[str, WriterFactory]:
    """By name; a `UsageError` for one that does not exist, or whose package is not installed."""
    asked = parse_names(names)
    if not asked:
        return {}
    modules = [import_module(name) for name in list_modules(ENTRY_POINT_GROUP)]
    values: list[Any] = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    shipped = {value.log: value for value in values if hasattr(value, "log")}
    found: dict[str, WriterFactory] = {}
    for name in asked:
        check_known(name, "log", [*shipped, *find_entry_points(ENTRY_POINT_GROUP)])
        found[name] = shipped[name] if name in shipped else load_entry_point(find_entry_points(ENTRY_POINT_GROUP)[name])
        package = getattr(found[name], "package", "")
        if package and find_spec(package) is None:
            raise UsageError(
                f"--log {name} needs the package {package}: pip install 'aggrevated[logs]', or leave it out"
            )
    return found


def make_writers(names: str | Sequence[str], folder: Path, config: JsonDict) -> list[Writer]:
    """The logs of a run, to be told of all its iterations."""
    return [make(folder, config) for make in find_writer_factories(names).values()]


@dataclass
class WriterCollection:
    """All logs of a run. One that fails is told of, and left out from then on: it is no reason to stop a run."""

    each: list[Writer]
    warn: Callable[[str], None]

    def write(self, metrics: JsonDict) -> None:
        """One more iteration."""
        self._tell(lambda writer: writer.write(metrics))

    def close(self, result: JsonDict | None) -> None:
        """The run has ended, or was stopped; what comes after is not heard."""
        self._tell(lambda writer: writer.close(result))
        self.each = []

    def _tell(self, what: Callable[[Writer], None]) -> None:
        for writer in [*self.each]:
            try:
                what(writer)
            except Exception as error:  # it is anybody's code, and writes to anybody's disk
                self.each.remove(writer)
                self.warn(
                    f"the log {type(writer).__name__} failed and is left out from here on ({truncate_message(error)})"
                )


@contextmanager
def open_writers(
    names: str | Sequence[str], folder: Path, config: JsonDict, warn: Callable[[str], None]
) -> Iterator[WriterCollection]:
    """The logs of a run while it is run; closed however it ends."""
    told = WriterCollection(make_writers(names, folder, config), warn)
    try:
        yield told
    finally:
        told.close(None)


def select_numeric_fields(facts: JsonDict) -> dict[str, float]:
    """Those of the facts that can be drawn."""
    return {name: value for name, value in facts.items() if type(value) in (int, float) and name != "iteration"}
