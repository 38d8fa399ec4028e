"""Pages for training, validation and test: generated, or CROHME's, with different writers and strings in each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from aggrevated.core.errors import DataError
from aggrevated.parsing.features.crops import warp_crop
from aggrevated.parsing.pages import crohme, handwriting
from aggrevated.parsing.pages.page import Page

# what a random number is for
_SPLIT = 11
_WARP = 12
_COMPOSE = 13
LONGEST = 60  # symbols on a page that a reader learns from


@dataclass(frozen=True)
class Split:
    """Pages to learn from, to choose on and to report."""

    train: list[Page]
    validation: list[Page]
    test: list[Page]
    single_lines: bool = False  # whether the training pages are single lines, of which larger pages can be made
    rewriting: list[Page] | None = None  # those of the training pages that are rewritten; None: all


def load_crohme_split(folder: Path, seed: int, core: bool = True) -> Split:
    """CROHME's expressions, or only those of the core: train/ without a tenth of its writers, these writers, and dev/.

    Where there are no such folders, the folder's own files, of which a further tenth of the writers is the test. No
    string is in two parts: what validation or test has is left out of training.
    """
    loaded = [crohme.load(part, core=core) for part in find_inkml_folders(folder)]
    rest, test = loaded if len(loaded) == 2 else split_by_writer(loaded[0], seed + 1)
    train, validation = split_by_writer(exclude_strings(rest, test), seed)
    if not train:
        raise DataError(f"{folder}: every string to learn from is one of validation or test; give more expressions")
    return Split(train, validation, test, single_lines=True)


def drop_long_pages(pages: Sequence[Page]) -> list[Page]:
    """Those that are not too long: every page takes the room of the longest."""
    return [page for page in pages if len(page) <= LONGEST]


def load_page_split(folder: str, sets: int, seed: int, single_writer: bool) -> Split:
    """CROHME's pages in that folder; where none is named, generated sets of equations in generated hands."""
    if folder:
        return load_crohme_split(Path(folder), seed)
    return Split(*handwriting.generate_page_splits(sets, seed=seed, single_writer=single_writer))


def load_evaluation_pages(folder: Path, core: bool = True) -> list[Page]:
    """The expressions of a folder, or only those of the core; of its dev/, if it has one."""
    return crohme.load(find_evaluation_folder(folder), core=core)


def find_evaluation_folder(folder: Path) -> Path:
    """Where the expressions lie that a policy is tried on."""
    return folder / "dev" if (folder / "dev").is_dir() else folder


def find_inkml_folders(folder: Path) -> list[Path]:
    """Where its InkML files lie: train/ and dev/, or the folder itself."""
    parts = [folder / "train", folder / "dev"]
    return parts if all(part.is_dir() for part in parts) else [folder]


def describe_skipped_files(folder: Path) -> list[str]:
    """What people are told of files that cannot be used, a line for each folder that has some."""
    lines = ((part, crohme.read_folder(part).notice) for part in find_inkml_folders(folder))
    return [f"{part}: {line}" for part, line in lines if line]


def split_by_writer(pages: list[Page], seed: int) -> tuple[list[Page], list[Page]]:
    """(pages of nine tenths of the writers, pages of the others); the first without the strings of the second."""
    writers = sorted({page.writer for page in pages})
    if len(writers) < 2:
        raise DataError(f"all {len(pages)} expressions are by one writer; give a folder with several, to hold some out")
    order = np.random.default_rng([_SPLIT, seed]).permutation(len(writers))
    held = {writers[i] for i in order[: max(1, len(writers) // 10)]}
    others = [page for page in pages if page.writer in held]
    return exclude_strings([page for page in pages if page.writer not in held], others), others


def exclude_strings(pages: Sequence[Page], others: Sequence[Page]) -> list[Page]:
    """Those pages whose string is none of the others'."""
    taken = {page.symbols for page in others}
    return [page for page in pages if page.symbols not in taken]


def augment_pages(split: Split, copy: int) -> list[Page]:
    """The training pages as the same hands might have written them another time; the same for the same copy.

    Single lines are, in every other copy, put together to pages of one to three lines of one writer.
    """
    pages = split.train if split.rewriting is None else split.rewriting
    if split.single_lines and copy % 2:
        pages = crohme.stack_expressions(pages, np.random.default_rng([_COMPOSE, copy]))
    return [augment_page(page, np.random.default_rng([_WARP, copy, i])) for i, page in enumerate(pages)]


def augment_page(page: Page, generator: np.random.Generator) -> Page:
    """Every symbol warped a little, where it stands."""
    return replace(page, ink=tuple(warp_crop(strokes, generator) for strokes in page.ink))
