"""Names of the form `module:attribute`: imported only when somebody typed them, or said that they are to be trusted."""

import re
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from aggrevated.core.errors import DataError, UsageError

REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
OF_RUNS = ("config.json", "trials.json", "sweep.json")  # what lies in the folders of runs


def is_reference(name: object) -> bool:
    """Whether it is the name of something in a Python module, and of no file."""
    return isinstance(name, str) and bool(REFERENCE.fullmatch(name)) and not Path(name).exists()


def import_reference(reference: str, trusted: bool) -> Any:
    """What it names. Modules are found as Python finds them, and beside where one stands; never in a run's folder."""
    if not trusted:
        raise DataError(
            f"{reference} is Python code, which is not run because a file names it; look at it, and if you trust it "
            "say --trust-code (in Python: trust=True)"
        )
    module, _, attribute = reference.partition(":")
    try:
        found: Any = import_module_by_name(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        raise UsageError(f"{module} has no {attribute}; check the name") from error
    except UsageError:
        raise
    except Exception as error:  # it is anybody's code
        said = " ".join(str(error).split())[:200]
        raise UsageError(
            f"{module} cannot be imported ({type(error).__name__}: {said}); install it, or stand beside it"
        ) from error
    return found


def import_module_by_name(name: str) -> Any:
    """The module, also if it lies where one stands."""
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    if name not in sys.modules:
        found = find_spec(name.partition(".")[0])  # which imports nothing yet
        for place in () if found is None else (found.origin, *(found.submodule_search_locations or ())):
            if place is not None and is_inside_run_folder(Path(place)):
                raise UsageError(f"{name} lies in a run's folder, from which nothing is imported; move it")
    return import_module(name)


def is_inside_run_folder(path: Path) -> bool:
    """Whether it lies in the folder of a run, or of several."""
    return any((above / one).exists() for above in path.resolve().parents for one in OF_RUNS)


def make_reference(thing: Any) -> str | None:
    """The name by which others can import just this thing; None if there is none."""
    module = getattr(thing, "__module__", None)
    name = getattr(thing, "__qualname__", None)
    if not module or not name or module == "__main__" or not REFERENCE.fullmatch(f"{module}:{name}"):
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}:{name}" if found is thing else None
