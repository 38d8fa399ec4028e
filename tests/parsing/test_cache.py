"""The cache: what is in it is what was computed, and nothing that happens to it matters."""

import os
from dataclasses import replace

import numpy as np
import pytest
import torch

from aggrevated.parsing.feature_cache import KEPT, cached, folder, key_of
from aggrevated.parsing.pages.handwriting import write_page

PAGES = [write_page(["x=3+a"], 1, 0), write_page(["y=2"], 2, 0)]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("AGGREVATED_CACHE", str(tmp_path / "kept"))
    return tmp_path / "kept"


class Work:
    """Gives other numbers each time, so that it shows where they came from."""

    calls = 0

    def __call__(self):
        self.calls += 1
        return {"numbers": torch.arange(6.0).reshape(2, 3) + self.calls, "few": torch.tensor([self.calls])}


def test_the_second_time_nothing_is_computed(here):
    work = Work()
    first, second = cached("a", work), cached("a", work)
    assert work.calls == 1 and set(second) == {"numbers", "few"}
    assert all(torch.equal(first[name], second[name]) and first[name].dtype == second[name].dtype for name in first)
    assert cached("b", work)["few"].item() == 2 and cached("a", work)["few"].item() == 1


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "other"])
def test_a_damaged_file_is_computed_again_and_mended(here, damage):
    work = Work()
    cached("a", work)
    (path,) = here.iterdir()
    data = bytearray(path.read_bytes())
    data[-3] ^= 4
    path.write_bytes(
        {"flip": bytes(data), "truncate": bytes(data[:-9]), "empty": b"", "other": b"not a file of ours"}[damage]
    )
    assert cached("a", work)["few"].item() == 2
    assert cached("a", work)["few"].item() == 2 and work.calls == 2


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("AGGREVATED_CACHE", str(tmp_path / "file" / "below"))
    work = Work()
    assert [cached("a", work)["few"].item() for _ in range(2)] == [1, 2]
    assert (tmp_path / "file").read_text() == "no folder"


def test_only_the_newest_are_kept(here):
    for number in range(KEPT + 4):
        cached(f"key-{number}", Work())
        os.utime(here / f"key-{number}.safetensors", (1000 + number, 1000 + number))
    assert KEPT == 8
    cached("last", Work())
    assert {path.stem for path in here.iterdir()} == {"last", *(f"key-{number}" for number in range(5, 12))}


def test_where_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("AGGREVATED_CACHE", str(tmp_path / "mine"))
    assert folder() == tmp_path / "mine"
    monkeypatch.delenv("AGGREVATED_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert folder() == tmp_path / "aggrevated"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert folder() == tmp_path / ".cache" / "aggrevated"


def with_ink(page, change):
    """The page with its first stroke changed."""
    (first, *strokes), *others = page.ink
    return replace(page, ink=((change(first.copy()), *strokes), *others))


def one_point_moved(stroke):
    stroke[-1, 0] += 1e-9
    return stroke


CHANGES = {
    "one point of ink": lambda pages: [with_ink(pages[0], one_point_moved), pages[1]],
    "a point more": lambda pages: [with_ink(pages[0], lambda stroke: np.concatenate([stroke, stroke[-1:]])), pages[1]],
    "one head": lambda pages: [replace(pages[0], heads=np.array([2, 0, 2, 2, 2])), pages[1]],
    "one symbol": lambda pages: [replace(pages[0], symbols=tuple("z=3+a")), pages[1]],
    "the writer, by whose lines pages are composed": lambda pages: [replace(pages[0], writer="another"), pages[1]],
    "the order": lambda pages: pages[::-1],
    "a page less": lambda pages: pages[:1],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_key_changes_with(change):
    assert key_of(PAGES, 1) == key_of([write_page(["x=3+a"], 1, 0), write_page(["y=2"], 2, 0)], 1)
    assert key_of(change(PAGES), 1) != key_of(PAGES, 1)


def test_the_key_changes_with_the_settings():
    keys = {key_of(PAGES, *settings) for settings in [(), (1, 1, 0), (1, 1, 1), (2, 0, 0), (1, 1)]}
    assert len(keys) == 5


def test_strokes_of_one_symbol_are_not_those_of_two():
    """The same points, divided among the symbols in another way."""
    line, dot = np.arange(8.0).reshape(4, 2), np.zeros((1, 2))
    page = write_page(["12"], 0, 0)
    one, other = replace(page, ink=((line, dot), (line,))), replace(page, ink=((line,), (dot, line)))
    assert key_of([one]) != key_of([other])
