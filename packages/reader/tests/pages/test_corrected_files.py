"""Corrected pages as training data: which files of a folder are used, the pages added to them, and names of symbols."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aggrevated.core.errors import DataError, StorageError
from aggrevated.parsing.features.symbols import extract_detailed_features
from aggrevated.parsing.pages.page import Page
from aggrevated_reader import corrected_pages_problem
from aggrevated_reader.corrected_pages_problem import (
    describe_corrected_pages,
    extend_class_names,
    load_corrected_arrays,
    load_corrected_pages,
)
from aggrevated_reader.learners.shipped_reader import load_builtin_reader
from aggrevated_reader.learners.symbol_names import CLASSES
from aggrevated_reader.pages.corrected_files import read_folder
from aggrevated_reader.pages.generated import generate_pages
from aggrevated_reader.pages.inkml_writing import to_inkml

PAGES = generate_pages(24, 77, structures=False)


@pytest.fixture(autouse=True)
def use_few_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use few pages besides the corrected ones."""
    for name, count in (("BESIDE", 20), ("CHOSEN_ON", 6), ("REPORTED", 5), ("OWN", 12), ("OWN_CHOSEN_ON", 8)):
        monkeypatch.setattr(corrected_pages_problem, name, count)


def save_pages(folder: Path, pages: list[Page], **parts: bool) -> Path:
    folder.mkdir(exist_ok=True)
    for page in pages:
        (folder / f"{page.name}.inkml").write_bytes(to_inkml(page, **parts))
    return folder


def test_read_folder_counts_and_describes_unconfirmed_pages(tmp_path: Path) -> None:
    folder = save_pages(tmp_path / "pages", PAGES[:3])
    save_pages(folder, PAGES[3:5], heads=False)
    save_pages(folder, PAGES[5:6], groups=False)
    (folder / "broken.inkml").write_text("<ink>")
    found = read_folder(folder)
    assert [page.symbols for page in found.pages] == [page.symbols for page in sorted(PAGES[:3], key=lambda p: p.name)]
    assert sorted(found.counts.values()) == [1, 3]
    first, second = describe_corrected_pages(str(folder), 0)
    assert "4 of 7 InkML files cannot be used and are left out: 3 x it has no heads" in first
    assert second.startswith("3 corrected pages: training uses 4 copies of each and 20 generated pages; the best")


def test_load_corrected_pages_rejects_folder_without_corrected_page(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="none: No such file or directory"):
        read_folder(tmp_path / "none")
    with pytest.raises(DataError, match=r"holds no \.inkml files; give the folder in which corrected pages were saved"):
        read_folder(tmp_path)
    folder = save_pages(tmp_path / "pages", PAGES[:2], heads=False)
    with pytest.raises(
        DataError, match=r"none of the 2 InkML files in .* can be used: .* correct the page and save it"
    ):
        load_corrected_pages(str(folder), 0)


def test_load_corrected_pages_rereads_a_changed_page(tmp_path: Path) -> None:
    folder = save_pages(tmp_path / "pages", PAGES[:1])
    assert load_corrected_pages(str(folder), 0).training_pages[0].symbols == PAGES[0].symbols
    again = replace(PAGES[0], symbols=("ζ",) * len(PAGES[0]))
    save_pages(folder, [again])
    assert load_corrected_pages(str(folder), 0).training_pages[0].symbols == again.symbols


def test_load_corrected_pages_holds_out_pages_only_where_there_are_many(tmp_path: Path) -> None:
    few = load_corrected_pages(str(save_pages(tmp_path / "few", PAGES[:3])), 0)
    assert not few.held_out and len(few.training_pages) == 3 and few.own == 6 and few.copies == 4
    drawn = few.split.validation[0]
    (same,) = (page for page in few.training_pages if page.symbols == drawn.symbols)
    assert not np.array_equal(drawn.ink[0][0], same.ink[0][0]), "validation is on other copies than those learned from"
    many = load_corrected_pages(str(save_pages(tmp_path / "many", PAGES)), 0)
    assert many.held_out and len(many.training_pages) == 22 and many.own == 2 and many.copies == 1
    held = {page.name for page in many.split.validation[:2]}
    assert not held & {page.name for page in many.split.train}


@pytest.mark.parametrize("count", [3, 24])
def test_corrected_page_arrays_use_the_projection_of_the_reader(tmp_path: Path, count: int) -> None:
    folder = save_pages(tmp_path / "pages", PAGES[:count])
    pages, arrays = load_corrected_arrays(str(folder), 0)
    starts = np.cumsum(arrays.corpus.lengths) - arrays.corpus.lengths
    found = {
        tuple(arrays.names[k] for k in arrays.labels[starts[p] :][: arrays.corpus.lengths[p]]) for p in pages.originals
    }
    assert found == {page.symbols for page in PAGES[:count]} and len(pages.originals) == count
    first = pages.originals[0]
    page = pages.training_pages[0]
    own = arrays.features[starts[first] :][: len(page)]
    assert np.array_equal(own, load_builtin_reader().projection(extract_detailed_features([page])))
    assert arrays.names[: len(load_builtin_reader().classes)] == load_builtin_reader().classes
    assert len(arrays.train) == 20 + len(pages.training_pages) * (1 + pages.copies)


def test_new_names_follow_known_ones_and_must_fit() -> None:
    page = PAGES[0]
    known = load_builtin_reader().classes
    named = replace(page, symbols=("ζ", "∮", *page.symbols[2:]))
    assert extend_class_names((page, named)) == (*known, "ζ", "∮")
    room = CLASSES - len(known)
    many = [replace(page, symbols=(f"n{k}", *page.symbols[1:])) for k in range(room + 1)]
    assert len(extend_class_names(tuple(many[:-1]))) == CLASSES
    with pytest.raises(DataError, match=f"{room + 1} labels that the reader does not know; it has room for {room}"):
        extend_class_names(tuple(many))
    with pytest.raises(DataError, match="'a label of seventeen'; labels must be printable and have at most 16 bytes"):
        extend_class_names((replace(page, symbols=("a label of seventeen", *page.symbols[1:])),))
