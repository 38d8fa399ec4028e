"""Low knows nothing of high: no cycle between packages, however an import is written, and a run loads what it needs."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src/aggrevated"
LAYERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]


def module_of(path: Path) -> str:
    parts = path.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in SRC.rglob("*.py")}


def imported(path: Path) -> Iterator[str]:
    """Our modules that a file imports: at its top, inside of functions, or for type checkers only."""
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
def test_there_is_no_cycle_between_packages(unit) -> None:
    graph: dict[str, set[str]] = {unit(module): set() for module in MODULES}
    for module, path in MODULES.items():
        graph[unit(module)] |= {unit(other) for other in imported(path)} - {unit(module)}
    assert sum(map(len, graph.values())) > 100  # it does see imports
    if unit is folder:  # a package may import what lies in its own folders, and these its __init__
        for package in graph:
            graph[package] = {other for other in graph[package] if not other.startswith(f"{package}/")}
    list(TopologicalSorter(graph).static_order())  # a cycle raises


def test_the_layers_are_kept() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert "2 kept, 0 broken" in done.stdout


def test_the_docs_tell_of_every_layer_in_order() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    table = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", text, re.MULTILINE)
    told = [name for row in table for name in re.findall(r"`(\w+)`", row)]
    assert told == [name for layer in LAYERS for name in layer.split(" | ") if name != "__main__"]


LOADED = """
import sys
from aggrevated.cli import main
main("train cartpole --iterations 1 --trajectories 2 --horizon 20 --validation-episodes 2 --test-episodes 2".split())
print(*sorted(name for name in sys.modules if name.startswith("aggrevated.")))
"""


def test_a_run_of_cartpole_loads_no_parsing_no_theory_and_no_other_task(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert "aggrevated.algorithm" in loaded and "aggrevated.tasks.cartpole" in loaded
    others = ("parsing", "theory", "reports", "tasks.algebra", "tasks.acrobot", "tasks.hopper", "simulators.mujoco")
    assert not [name for name in loaded if any(name.startswith(f"aggrevated.{other}") for other in others)]
