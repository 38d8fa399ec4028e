"""Layers, distributions and style: allowed imports, modules that a run loads, and one assignment per line."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import aggrevated

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src/aggrevated"
PACKAGES = {name: ROOT / f"packages/{name}/src/aggrevated_{name}" for name in ("reader", "experiments")}
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
LAYERS = next(contract["layers"] for contract in CONTRACTS if contract["name"] == "Rooms of the library")


def module_name(path: Path) -> str:
    parts = path.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in SRC.rglob("*.py")}


def iter_imported_modules(path: Path) -> Iterator[str]:
    """Yield the modules of the library that a file imports, also in functions and for type checkers."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else node.module for name in names)


def first_level(module: str) -> str:
    return ".".join(module.split(".")[:2])


def folder(module: str) -> str:
    return str(MODULES[module].parent)


@pytest.mark.parametrize("unit", [first_level, folder])
def test_library_has_no_cycle_between_rooms(unit) -> None:
    graph: dict[str, set[str]] = {unit(module): set() for module in MODULES}
    for module, path in MODULES.items():
        graph[unit(module)] |= {unit(other) for other in iter_imported_modules(path)} - {unit(module)}
    assert sum(map(len, graph.values())) > 100  # imports were found
    if unit is folder:  # a package may import its subpackages, and these its __init__
        for package in graph:
            graph[package] = {other for other in graph[package] if not other.startswith(f"{package}/")}
    list(TopologicalSorter(graph).static_order())  # a cycle raises


def test_import_linter_keeps_every_contract() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert f"{len(CONTRACTS)} kept, 0 broken" in done.stdout


def test_architecture_page_lists_every_room_with_its_layer() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    page_rooms = {room: int(layer) for room, layer in re.findall(r"^\| `(\w+)` \| (\d) \|", text, re.MULTILINE)}
    rooms = {room: n for n, layer in enumerate(LAYERS, start=1) for room in layer.split(" : ")}
    del rooms["__main__"]
    assert page_rooms == rooms


def list_imported_names(package: Path) -> set[tuple[str, str]]:
    """Return (module, name) of all imports from the library in a package; the name is '' for a module."""
    found = set()
    for node in (node for path in package.rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))):
        if isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = [(f"{node.module}.{alias.name}", node.module, alias.name) for alias in node.names]
            found |= {(full, "") if full in MODULES else (module, name) for full, module, name in names}
    return {(module, name) for module, name in found if module.split(".")[0] == "aggrevated"}


def test_library_imports_nothing_of_the_other_distributions() -> None:
    for path in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.startswith(("aggrevated_reader", "aggrevated_experiments"))], (
                path
            )


COMMANDS = "a command of a package has the options, notes and tables of the library's own"
PARSER = "the package extends the parser of Section 6.2 or measures it"
SETTINGS = "settings of a component are checked as the library's own are"
FILES = "files are read with the library's limits and written atomically"
PAGES = "pages of results share tables, curves and intervals with `compare`"
NUMBERS = "the theorems run on the library's own finite MDPs and random streams"
RUNS = "a study makes, resumes and evaluates many runs"
NOT_PUBLIC = {  # modules without public names, and the reason why a package imports them
    "aggrevated.actors.feed_forward": PARSER,
    "aggrevated.cli.console": COMMANDS,
    "aggrevated.cli.options": COMMANDS,
    "aggrevated.cli.run_jobs": COMMANDS,
    "aggrevated.config.resolver": RUNS,
    "aggrevated.core.registry": COMMANDS,
    "aggrevated.core.settings": SETTINGS,
    "aggrevated.core.statistics": PAGES,
    "aggrevated.experts.loading": RUNS,
    "aggrevated.kernels.linear_algebra": NUMBERS,
    "aggrevated.kernels.numpy_rng": NUMBERS,
    "aggrevated.plots.learning_curves": PAGES,
    "aggrevated.policies": PARSER,
    "aggrevated.policies.recurrent_cells": PARSER,
    "aggrevated.problems.control": RUNS,
    "aggrevated.reports": PAGES,
    "aggrevated.reports.comparison": PAGES,
    "aggrevated.simulators.tabular": NUMBERS,
    "aggrevated.storage": FILES,
    "aggrevated.tasks": RUNS,
    "aggrevated.tasks.acrobot_partial": RUNS,
    "aggrevated.tasks.hopper": RUNS,
    "aggrevated.training.run_folder": RUNS,
    "aggrevated.updates.tabular_exponentiated": NUMBERS,
}


def test_packages_import_public_names_or_listed_modules() -> None:
    """Packages may import all of the parser: `aggrevated.parsing`, its plot and its task."""
    open_modules = ("aggrevated.parsing", "aggrevated.plots.parse_tree", "aggrevated.tasks.algebra")
    public = {(module, name) for name, module in aggrevated.HOMES.items()} | {("aggrevated", "__version__")}
    public |= {("aggrevated", name) for name in aggrevated.HOMES}
    used = {pair for package in PACKAGES.values() for pair in list_imported_names(package)} - public
    used = {(f"{module}.{name}", "") if f"{module}.{name}" in MODULES else (module, name) for module, name in used}
    modules = {module for module, _ in used if not module.startswith(open_modules)}
    assert modules == set(NOT_PUBLIC)


def test_sources_assign_one_thing_a_line() -> None:
    """A tuple is a target only where one call returns several values."""
    for path in (path for folder in (SRC, *PACKAGES.values()) for path in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
                assert not isinstance(node.targets[0], ast.Tuple), f"{path}:{node.lineno}"


LOADED = """
import sys
from aggrevated.cli import main
main("train cartpole --iterations 1 --trajectories 2 --horizon 20 --validation-episodes 2 --test-episodes 2".split())
print(*sorted(name for name in sys.modules if name.startswith("aggrevated")))
"""


def test_training_on_cartpole_loads_no_parser_and_no_other_task(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert "aggrevated.algorithm" in loaded and "aggrevated.tasks.cartpole" in loaded
    others = ("parsing", "reports", "tasks.algebra", "tasks.acrobot", "tasks.hopper", "simulators.mujoco")
    assert not [
        name for name in loaded if name.startswith((*(f"aggrevated.{other}" for other in others), "aggrevated_"))
    ]
