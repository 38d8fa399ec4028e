"""Names of the form `module:attribute`, imported only if you typed them or declared them to be trusted."""

import re
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from aggrevated.core.errors import DataError, UsageError

REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
OF_RUNS = ("config.json", "trials.json", "sweep.json")  # files that mark folders of runs


def is_reference(name: object) -> bool:
    """Return whether `name` has the form `module:attribute` and is not an existing file."""
    return isinstance(name, str) and bool(REFERENCE.fullmatch(name)) and not Path(name).exists()


def import_reference(reference: str, trusted: bool) -> Any:
    """Import an object from an installed module or a module in the current folder, never from a run's folder.

    Args:
        reference: the name, `module:attribute`.
        trusted: whether its code may run.

    Raises:
        DataError: the reference is not trusted.
        UsageError: it cannot be imported.
    """
    if not trusted:
        raise DataError(
            f"{reference} is Python code, which is not run because a file names it; read the code, and if you trust "
            "it pass --trust-code (in Python: trust_code=True)"
        )
    module, _, attribute = reference.partition(":")
    try:
        value: Any = import_module_by_name(module)
        for part in attribute.split("."):
            value = getattr(value, part)
    except AttributeError as error:
        raise UsageError(f"{module} has no {attribute}; check the name") from error
    except UsageError:
        raise
    except Exception as error:  # user code may raise anything
        message = " ".join(str(error).split())[:200]
        raise UsageError(
            f"{module} cannot be imported ({type(error).__name__}: {message}); install it, or change to its folder"
        ) from error
    return value


def import_module_by_name(name: str) -> Any:
    """Import a module that is installed or in the current folder, but never from a run's folder."""
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    if name not in sys.modules:
        spec = find_spec(name.partition(".")[0])  # does not import it
        for location in () if spec is None else (spec.origin, *(spec.submodule_search_locations or ())):
            if location is not None and is_inside_run_folder(Path(location)):
                raise UsageError(f"{name} lies in a run's folder, from which nothing is imported; move it")
    return import_module(name)


def is_inside_run_folder(path: Path) -> bool:
    """Return whether a path lies in the folder of a run, of trials or of a sweep."""
    return any((parent / name).exists() for parent in path.resolve().parents for name in OF_RUNS)


def make_reference(value: Any) -> str | None:
    """Return the `module:attribute` by which exactly this object can be imported, or None."""
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None)
    if not module or not name or module == "__main__" or not REFERENCE.fullmatch(f"{module}:{name}"):
        return None
    imported: Any = sys.modules.get(module)
    for part in name.split("."):
        imported = getattr(imported, part, None)
    return f"{module}:{name}" if imported is value else None
