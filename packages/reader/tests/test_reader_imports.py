"""The modules of the reader are layers: no module imports a module that imports it."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import aggrevated_reader

ROOT = Path(aggrevated_reader.__file__).parent
NAME = aggrevated_reader.__name__


def find_imported(tree: ast.AST) -> set[str]:
    """Return the packages and top modules of the reader that a file imports, also in functions or for types only."""
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    names = [f"{node.module}.{alias.name}" for node in froms for alias in node.names]
    names += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    return {name.removeprefix(f"{NAME}.").split(".")[0] for name in names if name.startswith(f"{NAME}.")}


def test_reader_packages_are_in_no_import_cycle() -> None:
    needs: dict[str, set[str]] = {}
    for path in ROOT.rglob("*.py"):
        own = path.relative_to(ROOT).parts[0].removesuffix(".py")
        needs.setdefault(own, set()).update(find_imported(ast.parse(path.read_text())) - {own})
    order = list(TopologicalSorter(needs).static_order())  # raises on a cycle
    assert {"pages", "pictures", "learners", "web"} <= set(order)
    assert not needs["pages"] and not needs["learners"] and not needs["__init__"]
    assert needs["pictures"] == {"pages"}
