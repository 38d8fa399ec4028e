"""Scripts and notebooks of the guides run and print the keys that their pages show."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

GUIDES = Path(__file__).parent.parent / "docs/guides"
SCRIPTS = sorted(GUIDES.glob("*.py"))
NOTEBOOKS = sorted(GUIDES.glob("*.ipynb"))
INDIRECT_PACKAGES = {
    "LunarLander": "Box2D",
    "MuJoCo": "mujoco",
}  # packages that environments import, by a word in the script
FEW = "iterations=1, trajectories=2, horizon=60, validation_episodes=2, test_episodes=4"


def list_imported_packages(source: str) -> set[str]:
    """Return the packages that a script imports at any level."""
    nodes = [*ast.walk(ast.parse(source))]
    names = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    return {name.split(".")[0] for name in names | {n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)}}


def skip_if_package_missing(source: str) -> None:
    """Skip the test if a package that the script needs is not installed."""
    needed = list_imported_packages(source) | {
        package for words, package in INDIRECT_PACKAGES.items() if words in source
    }
    for package in sorted(needed - {""}):
        pytest.importorskip(package, reason=f"the guide needs {package}")


def parse_last_line(printed: str) -> dict[str, Any]:
    """Return the JSON in the last printed line."""
    values: dict[str, Any] = json.loads(printed.strip().splitlines()[-1])
    return values


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_guide_script_prints_what_its_page_shows(script: Path, tmp_path: Path) -> None:
    skip_if_package_missing(script.read_text())
    done = subprocess.run(
        [sys.executable, str(script), "--small", "--seed", "3"],
        cwd=tmp_path, env=os.environ, capture_output=True, text=True, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    json_blocks = re.findall(r"```json\n(.*?)```", script.with_suffix(".md").read_text(), re.DOTALL)
    assert json_blocks, f"{script.stem}.md shows no line that the script prints"
    printed = parse_last_line(done.stdout)
    assert list(printed) == list(parse_last_line(json_blocks[-1])) and printed["seed"] == 3


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_guide_has_a_page_in_the_index_and_a_small_figure(script: Path) -> None:
    assert f"({script.stem}.md)" in (GUIDES / "README.md").read_text()
    page = script.with_suffix(".md").read_text()
    assert f"({script.name})" in page
    figures = re.findall(r"\((images/[\w.-]+\.png)\)", page)
    assert figures and all(0 < (GUIDES / figure).stat().st_size < 150_000 for figure in figures)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_guide_notebook_runs_and_has_its_outputs(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    sources = ["".join(cell["source"]) for cell in cells]
    skip_if_package_missing("\n".join(sources))
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {}
    for number, (cell, source) in enumerate(zip(cells, sources, strict=True), 1):
        assert cell["execution_count"] == number
        small = re.sub(r"iterations=\d+", FEW, source).replace("range(100)", "range(1)")
        small = small.replace("600_000", "512").replace("n_steps=1024", "n_steps=32")
        exec(small, scope)
        saved_outputs = [output for output in cell["outputs"] if output.get("name") == "stdout"]
        assert bool(capsys.readouterr().out) == bool(saved_outputs), f"code cell {number}"
    assert scope["run"].result().iterations == 1
