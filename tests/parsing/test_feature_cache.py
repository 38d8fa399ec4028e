"""The feature cache returns exactly what was computed, and no damage to it matters."""

import os
from dataclasses import replace

import numpy as np
import pytest
import torch

from aggrevated.parsing.feature_cache import MAX_CACHED_FILES, cache_folder, cache_key, load_or_compute
from aggrevated.parsing.pages.handwriting import write_page

PAGES = [write_page(["x=3+a"], 1, 0), write_page(["y=2"], 2, 0)]


@pytest.fixture
def cache_path(tmp_path, monkeypatch):
    monkeypatch.setenv("AGGREVATED_CACHE", str(tmp_path / "kept"))
    return tmp_path / "kept"


class CountingComputation:
    """Computation that returns other numbers at each call, so that cached results can be recognized."""

    calls = 0

    def __call__(self):
        self.calls += 1
        return {"numbers": torch.arange(6.0).reshape(2, 3) + self.calls, "few": torch.tensor([self.calls])}


def test_load_or_compute_computes_only_once(cache_path):
    work = CountingComputation()
    first = load_or_compute("a", work)
    second = load_or_compute("a", work)
    assert work.calls == 1 and set(second) == {"numbers", "few"}
    assert all(torch.equal(first[name], second[name]) and first[name].dtype == second[name].dtype for name in first)
    assert load_or_compute("b", work)["few"].item() == 2 and load_or_compute("a", work)["few"].item() == 1


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "other"])
def test_load_or_compute_replaces_damaged_file(cache_path, damage):
    work = CountingComputation()
    load_or_compute("a", work)
    (path,) = cache_path.iterdir()
    data = bytearray(path.read_bytes())
    data[-3] ^= 4
    path.write_bytes(
        {"flip": bytes(data), "truncate": bytes(data[:-9]), "empty": b"", "other": b"not a file of ours"}[damage]
    )
    assert load_or_compute("a", work)["few"].item() == 2
    assert load_or_compute("a", work)["few"].item() == 2 and work.calls == 2


def test_load_or_compute_ignores_unwritable_folder(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("AGGREVATED_CACHE", str(tmp_path / "file" / "below"))
    work = CountingComputation()
    assert [load_or_compute("a", work)["few"].item() for _ in range(2)] == [1, 2]
    assert (tmp_path / "file").read_text() == "no folder"


def test_load_or_compute_keeps_only_the_newest_files(cache_path):
    for number in range(MAX_CACHED_FILES + 4):
        load_or_compute(f"key-{number}", CountingComputation())
        os.utime(cache_path / f"key-{number}.safetensors", (1000 + number, 1000 + number))
    assert MAX_CACHED_FILES == 8
    load_or_compute("last", CountingComputation())
    assert {path.stem for path in cache_path.iterdir()} == {"last", *(f"key-{number}" for number in range(5, 12))}


def test_cache_folder_follows_environment_variables(tmp_path, monkeypatch):
    monkeypatch.setenv("AGGREVATED_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("AGGREVATED_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "aggrevated"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "aggrevated"


def with_ink(page, change):
    """Return the page with its first stroke changed."""
    (first, *strokes), *others = page.ink
    return replace(page, ink=((change(first.copy()), *strokes), *others))


def move_last_point(stroke):
    stroke[-1, 0] += 1e-9
    return stroke


CHANGES = {
    "one point of ink": lambda pages: [with_ink(pages[0], move_last_point), pages[1]],
    "a point more": lambda pages: [with_ink(pages[0], lambda stroke: np.concatenate([stroke, stroke[-1:]])), pages[1]],
    "one head": lambda pages: [replace(pages[0], heads=np.array([2, 0, 2, 2, 2])), pages[1]],
    "one symbol": lambda pages: [replace(pages[0], symbols=tuple("z=3+a")), pages[1]],
    "the writer, by whose lines pages are composed": lambda pages: [replace(pages[0], writer="another"), pages[1]],
    "the order": lambda pages: pages[::-1],
    "a page less": lambda pages: pages[:1],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_cache_key_changes_with_page_content(change):
    assert cache_key(PAGES, 1) == cache_key([write_page(["x=3+a"], 1, 0), write_page(["y=2"], 2, 0)], 1)
    assert cache_key(change(PAGES), 1) != cache_key(PAGES, 1)


def test_cache_key_changes_with_settings():
    keys = {cache_key(PAGES, *settings) for settings in [(), (1, 1, 0), (1, 1, 1), (2, 0, 0), (1, 1)]}
    assert len(keys) == 5


def test_cache_key_depends_on_which_strokes_form_a_symbol():
    """The points are equal, but divided among the symbols differently."""
    line = np.arange(8.0).reshape(4, 2)
    dot = np.zeros((1, 2))
    page = write_page(["12"], 0, 0)
    one = replace(page, ink=((line, dot), (line,)))
    other = replace(page, ink=((line,), (dot, line)))
    assert cache_key([one]) != cache_key([other])
