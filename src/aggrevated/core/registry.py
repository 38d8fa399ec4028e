"""Components by name: builtin components, and those of other installed packages.

A module in the component's folder adds components by defining them. Other packages add components by entry
points of the registry's group, for example in pyproject.toml:

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
    """Settings classes of all components of one kind, by name."""

    kind: str  # in messages, such as "update"
    package: str  # package whose modules define the builtin components
    base: type[Kind]
    entry_point_group: str  # of components of other packages

    @cached_property
    def builtin(self) -> dict[str, type[Kind]]:
        """Return the builtin components by name, in the order of their modules."""
        modules = [import_module(name) for name in list_modules(self.package)]
        components = [
            component
            for module in modules
            for component in iter_components_in(vars(module).values(), self.base, module.__name__)
        ]
        return {component.name: component for component in components}

    def names(self, task_components: Iterable[type[Settings]] = ()) -> list[str]:
        """Return the names of all components, with those of a task first."""
        task_names = [component.name for component in task_components if issubclass(component, self.base)]
        return [*dict.fromkeys([*task_names, *self.builtin, *find_entry_points(self.entry_point_group)])]

    def get(self, name: str, task_components: Iterable[type[Settings]] = ()) -> type[Kind]:
        """Return the component of that name, or raise a `UsageError` that lists all names."""
        for component in task_components:
            if issubclass(component, self.base) and component.name == name:
                return component
        if name in self.builtin:
            return self.builtin[name]
        check_known(name, self.kind, self.names(task_components))
        loaded = load_entry_point(find_entry_points(self.entry_point_group)[name])
        if fault := self.find_fault(loaded, name):
            raise UsageError(f"the {self.kind} {name} of an installed package {fault}; fix or uninstall it")
        component_class: type[Kind] = loaded
        return component_class

    def find_fault(self, component: Any, name: str) -> str:
        """Return what is wrong with another package's component of that name, or an empty text."""
        if not (isinstance(component, type) and issubclass(component, self.base)):
            return f"is not a subclass of {self.base.__name__}"
        if component.name != name:
            return f"has the name {component.name!r}"
        if "__dataclass_fields__" not in vars(component) or isabstract(component):
            return "is not a frozen dataclass that defines all abstract methods"
        types = get_type_hints(component)
        unsupported = [field for field in get_declared_settings(component) if not is_supported_type(types[field])]
        return f"has a setting {unsupported[0]!r} of an unsupported type" if unsupported else ""


def list_modules(folder: str) -> list[str]:
    """Return the names of the modules of a package without importing them."""
    spec = find_spec(folder)
    locations = spec.submodule_search_locations if spec else None
    return [f"{folder}.{module.name}" for module in pkgutil.iter_modules(locations or [])]


TASKS = "aggrevated.tasks"  # package of the builtin tasks, and entry point group of others


def list_builtin_tasks() -> dict[str, str]:
    """Return the modules of the builtin tasks by task name, without importing them."""
    return {module.rpartition(".")[2].replace("_", "-"): module for module in list_modules(TASKS)}


def list_task_names() -> list[str]:
    """Return the names of all tasks."""
    return [*list_builtin_tasks(), *find_entry_points(TASKS)]


SIBLING_PACKAGES = {  # packages in folders of this repository, with their commands and tasks
    "packages/reader": ("parse", "draw", "reader"),
    "packages/experiments": ("reproduce", "theory", "cliff", "keys", "lock", "packing"),
}


def check_package_installed(name: str | None, kind: str) -> None:
    """Raise a `UsageError` with the command to install if a command or task belongs to a sibling package."""
    for folder, names in SIBLING_PACKAGES.items():
        if name in names:
            package = folder.replace("packages/", "aggrevated-")
            raise UsageError(
                f"the {kind} {name} is part of {package}, which is not installed: "
                f"run 'pip install ./{folder}' in a clone of this repository"
            )


def iter_components_in(values: Iterable[Any], base: type[Kind], module: str) -> Iterator[type[Kind]]:
    """Yield the named components of that kind that a module defines."""
    for value in values:
        if isinstance(value, type) and issubclass(value, base) and value.name and value.__module__ == module:
            yield value


def find_entry_points(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, without importing them."""
    return {point.name: point for point in read_entry_points(group, tuple(sys.path))}


@lru_cache(maxsize=64)
def read_entry_points(group: str, path: tuple[str, ...]) -> EntryPoints:
    """Return the entry points of a group for a value of sys.path; cached, since reading them is slow."""
    return entry_points(group=group)


def load_entry_point(point: EntryPoint) -> Any:
    """Import the object of an entry point, or raise a `UsageError` that names its package."""
    try:
        return point.load()
    except Exception as error:  # code of another package may raise anything
        package = point.dist.name if point.dist else "unknown"
        raise UsageError(
            f"{point.value} of the package {package} cannot be imported ({error}); fix or uninstall it"
        ) from error
