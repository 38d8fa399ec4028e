"""The package of somebody else, installed for one test."""

import importlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def install_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that it is installed in, which is on the path; the test runs in another one."""
    folder = tmp_path / "site"
    here = tmp_path / "here"
    about = folder / "corridor_package-1.0.dist-info"
    about.mkdir(parents=True)
    here.mkdir()
    shutil.copy(Path(__file__).parent / "corridor_package.py", folder)
    monkeypatch.delitem(sys.modules, "corridor_package", raising=False)  # it is there again after the test
    monkeypatch.syspath_prepend(folder)
    importlib.invalidate_caches()
    points = importlib.import_module("corridor_package").POINTS
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: corridor-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("".join(f"[{group}]\n{point}\n" for group, point in points.items()))
    importlib.invalidate_caches()
    monkeypatch.chdir(here)
    yield folder
    sys.modules.pop("corridor_package", None)
