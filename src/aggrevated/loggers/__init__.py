"""Writers that pass the metrics of a run to other programs; metrics.jsonl has them all in any case.

A module in this folder defines a writer as a class with the attribute `log`, its name. Other packages add
writers by entry points of the group `aggrevated.loggers`. A callback needs no writer: it is the body of the
`for` loop over iterations.
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

ENTRY_POINT_GROUP = "aggrevated.loggers"  # also the package of the builtin writers


class Writer(Protocol):
    """Receiver of the metrics of one run; a resumed run has a new one, which receives all iterations again."""

    def write(self, metrics: JsonDict) -> None:
        """Write the metrics of one iteration, the dict of its `Metrics`."""
        ...

    def close(self, result: JsonDict | None) -> None:
        """Finish with the dict of the run's `Result`, or None if the run was stopped."""
        ...


WriterFactory = Callable[[Path, JsonDict], Writer]  # from (folder of the run, its config)


def parse_names(names: str | Sequence[str]) -> list[str]:
    """Return the names in comma-separated text, or in a sequence of such texts."""
    texts = [names] if isinstance(names, str) and names else names
    return [*dict.fromkeys(name.strip() for text in texts for name in text.split(","))]


def find_writer_factories(names: str | Sequence[str]) -> dict[str, WriterFactory]:
    """Return the writers by name; raise a `UsageError` for an unknown one or one whose package is missing."""
    parsed = parse_names(names)
    if not parsed:
        return {}
    modules = [import_module(name) for name in list_modules(ENTRY_POINT_GROUP)]
    values: list[Any] = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    builtin = {value.log: value for value in values if hasattr(value, "log")}
    factories: dict[str, WriterFactory] = {}
    for name in parsed:
        points = find_entry_points(ENTRY_POINT_GROUP)
        check_known(name, "log", [*builtin, *points])
        factories[name] = builtin[name] if name in builtin else load_entry_point(points[name])
        package = getattr(factories[name], "package", "")
        if package and find_spec(package) is None:
            raise UsageError(
                f"--log {name} needs the package {package}: pip install 'aggrevated[logs]', or leave it out"
            )
    return factories


def make_writers(names: str | Sequence[str], folder: Path, config: JsonDict) -> list[Writer]:
    """Return new writers for a run."""
    return [factory(folder, config) for factory in find_writer_factories(names).values()]


@dataclass
class WriterCollection:
    """All writers of a run. A writer that fails is reported and dropped; the run continues."""

    writers: list[Writer]
    warn: Callable[[str], None]

    def write(self, metrics: JsonDict) -> None:
        """Write the metrics of one iteration."""
        self._call_each(lambda writer: writer.write(metrics))

    def close(self, result: JsonDict | None) -> None:
        """Close all writers; later calls have no effect."""
        self._call_each(lambda writer: writer.close(result))
        self.writers = []

    def _call_each(self, call: Callable[[Writer], None]) -> None:
        for writer in [*self.writers]:
            try:
                call(writer)
            except Exception as error:  # user code, or a full disk
                self.writers.remove(writer)
                self.warn(f"the log {type(writer).__name__} failed and is dropped ({truncate_message(error)})")


@contextmanager
def open_writers(
    names: str | Sequence[str], folder: Path, config: JsonDict, warn: Callable[[str], None]
) -> Iterator[WriterCollection]:
    """Open the writers of a run for a block, and close them after it."""
    writers = WriterCollection(make_writers(names, folder, config), warn)
    try:
        yield writers
    finally:
        writers.close(None)


def select_numeric_fields(values: JsonDict) -> dict[str, float]:
    """Return the numeric fields except `iteration`."""
    return {name: value for name, value in values.items() if type(value) in (int, float) and name != "iteration"}
