"""Pieces found by name: those in a folder of this package, and those that installed packages offer.

A file in the folder announces its pieces by defining them; nothing else lists them. Another package offers its own by
an entry point of the shelf's group, for example in its pyproject.toml:

    [project.entry-points."aggrevated.updates"]
    mine = "my_package.updates:MySettings"
"""

import pkgutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from importlib.util import find_spec
from inspect import isabstract
from typing import Any, Generic, TypeVar, get_type_hints

from aggrevated.core.errors import UsageError
from aggrevated.core.settings import Settings, check_known, get_declared_settings, is_supported_type

Kind = TypeVar("Kind", bound=Settings)


@dataclass(frozen=True)
class Registry(Generic[Kind]):
    """All pieces of one kind."""

    kind: str  # what it is called: "update"
    package: str  # the package whose modules define the shipped ones
    base: type[Kind]
    entry_point_group: str  # of the entry points by which other packages offer theirs

    @cached_property
    def builtin(self) -> dict[str, type[Kind]]:
        """Those of the folder, in the order of its files."""
        modules = [import_module(name) for name in list_modules(self.package)]
        found = [
            piece
            for module in modules
            for piece in iter_components_in(vars(module).values(), self.base, module.__name__)
        ]
        return {piece.name: piece for piece in found}

    def names(self, brought: Iterable[type[Settings]] = ()) -> list[str]:
        """The names of all there are, with those that a task brings."""
        own = [piece.name for piece in brought if issubclass(piece, self.base)]
        return [*dict.fromkeys([*own, *self.builtin, *find_entry_points(self.entry_point_group)])]

    def get(self, name: str, brought: Iterable[type[Settings]] = ()) -> type[Kind]:
        """The piece of that name, or a `UsageError` that lists them all."""
        for piece in brought:
            if issubclass(piece, self.base) and piece.name == name:
                return piece
        if name in self.builtin:
            return self.builtin[name]
        check_known(name, self.kind, self.names(brought))
        piece = load_entry_point(find_entry_points(self.entry_point_group)[name])
        if fault := self.find_fault(piece, name):
            raise UsageError(f"the {self.kind} {name} of an installed package {fault}; mend or remove it")
        found: type[Kind] = piece
        return found

    def find_fault(self, piece: Any, name: str) -> str:
        """What is wrong with a piece that another package offers by that name; nothing if it is sound."""
        if not (isinstance(piece, type) and issubclass(piece, self.base)):
            return f"is no {self.base.__name__}"
        if piece.name != name:
            return f"calls itself {piece.name!r}"
        if "__dataclass_fields__" not in vars(piece) or isabstract(piece):
            return "is no frozen dataclass with all the methods of its kind"
        wrong = [field for field in get_declared_settings(piece) if not is_supported_type(get_type_hints(piece)[field])]
        return f"has a setting {wrong[0]!r} of a type that has no option" if wrong else ""


def list_modules(folder: str) -> list[str]:
    """The names of the modules of a package; neither they nor it are imported."""
    spec = find_spec(folder)
    places = spec.submodule_search_locations if spec else None
    return [f"{folder}.{module.name}" for module in pkgutil.iter_modules(places or [])]


TASKS = "aggrevated.tasks"  # the folder of the shipped tasks, and the group of those that other packages offer


def list_builtin_tasks() -> dict[str, str]:
    """The modules of the shipped tasks, by the tasks' names; none of them is imported."""
    return {module.rpartition(".")[2].replace("_", "-"): module for module in list_modules(TASKS)}


def list_task_names() -> list[str]:
    """The names of all tasks there are."""
    return [*list_builtin_tasks(), *find_entry_points(TASKS)]


SIBLING_PACKAGES = {  # folders of this repository, and the commands and tasks of the packages in them
    "packages/reader": ("parse", "draw", "reader"),
    "packages/experiments": ("reproduce", "theory", "cliff", "keys", "lock", "packing"),
}


def check_package_installed(name: str | None, kind: str) -> None:
    """Raise a `UsageError` that says what to install if the command or task is one of a sibling package."""
    for folder, names in SIBLING_PACKAGES.items():
        if name in names:
            package = folder.replace("packages/", "aggrevated-")
            raise UsageError(
                f"the {kind} {name} is part of {package}, which is not installed: run 'pip install ./{folder}' in a clone "
                "of this repository"
            )


def iter_components_in(values: Iterable[Any], base: type[Kind], module: str) -> Iterator[type[Kind]]:
    """Those of the values that are pieces of that kind with a name of their own, defined in that module."""
    for value in values:
        if isinstance(value, type) and issubclass(value, base) and value.name and value.__module__ == module:
            yield value


def find_entry_points(group: str) -> dict[str, EntryPoint]:
    """What installed packages offer, by name; nothing of it is imported."""
    return {point.name: point for point in read_entry_points(group, tuple(sys.path))}


@lru_cache(maxsize=64)
def read_entry_points(group: str, path: tuple[str, ...]) -> EntryPoints:
    """The entry points of a group of all packages on that path; reading them takes as long as a short import."""
    return entry_points(group=group)


def load_entry_point(point: EntryPoint) -> Any:
    """What an entry point is, or a `UsageError` that names the package to mend."""
    try:
        return point.load()
    except Exception as error:  # it is anybody's code
        package = point.dist.name if point.dist else "unknown"
        raise UsageError(
            f"{point.value} of the package {package} cannot be imported ({error}); mend or remove it"
        ) from error
