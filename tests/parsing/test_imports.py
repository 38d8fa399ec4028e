"""The packages of parsing are layers: no package imports one that imports it."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import aggrevated.parsing

ROOT = Path(aggrevated.parsing.__file__).parent
NAME = aggrevated.parsing.__name__


def find_imported(tree: ast.AST) -> set[str]:
    """Return the packages and top modules of parsing that a file imports anywhere, also for types only."""
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    names = [f"{node.module}.{alias.name}" for node in froms for alias in node.names]
    names += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    return {name.removeprefix(f"{NAME}.").split(".")[0] for name in names if name.startswith(f"{NAME}.")}


def test_parsing_packages_are_in_no_import_cycle() -> None:
    needs: dict[str, set[str]] = {}
    for path in ROOT.rglob("*.py"):
        package = path.relative_to(ROOT).parts[0].removesuffix(".py")
        needs.setdefault(package, set()).update(find_imported(ast.parse(path.read_text())) - {package})
    order = list(TopologicalSorter(needs).static_order())  # raises if there is a cycle
    assert {"pages", "features", "transitions", "learners"} <= set(order)
    assert not needs["pages"] and not needs["transitions"] and not needs["__init__"]
    assert needs["features"] == {"pages"}
