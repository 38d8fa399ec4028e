"""Fixture that installs a third-party package for one test."""

import importlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def install_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the folder on sys.path where the corridor package is installed; the test runs in another folder."""
    folder = tmp_path / "site"
    working_folder = tmp_path / "here"
    metadata = folder / "corridor_package-1.0.dist-info"
    metadata.mkdir(parents=True)
    working_folder.mkdir()
    shutil.copy(Path(__file__).parent / "corridor_package.py", folder)
    monkeypatch.delitem(sys.modules, "corridor_package", raising=False)  # restored after the test
    monkeypatch.syspath_prepend(folder)
    importlib.invalidate_caches()
    points = importlib.import_module("corridor_package").POINTS
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: corridor-package\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("".join(f"[{group}]\n{point}\n" for group, point in points.items()))
    importlib.invalidate_caches()
    monkeypatch.chdir(working_folder)
    yield folder
    sys.modules.pop("corridor_package", None)
