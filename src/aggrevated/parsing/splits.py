"""Splits of generated or CROHME pages into training, validation and test, by writers and strings."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from aggrevated.core.errors import DataError
from aggrevated.parsing.features.crops import warp_crop
from aggrevated.parsing.pages import crohme, handwriting
from aggrevated.parsing.pages.page import Page

# purposes of random numbers, as entropy of their seeds
_SPLIT = 11
_WARP = 12
_COMPOSE = 13
LONGEST = 60  # symbols on a training page of a reader


@dataclass(frozen=True)
class Split:
    """Pages for training, validation and test.

    Attributes:
        train: training pages.
        validation: pages on which the best policy is selected.
        test: test pages.
        single_lines: whether the training pages are single lines, which can be stacked to larger pages.
        rewriting: training pages of which copies with slightly warped symbols are made; None: all.
    """

    train: list[Page]
    validation: list[Page]
    test: list[Page]
    single_lines: bool = False
    rewriting: list[Page] | None = None


def load_crohme_split(folder: Path, seed: int, core: bool = True) -> Split:
    """Split CROHME's expressions by writers.

    Validation has a tenth of the writers of train/; the test is dev/. In a folder without train/ and dev/,
    the folder's files are split 80/10/10 by writers. Training has no string of validation or test.

    Args:
        folder: folder with train/ and dev/, or with InkML files.
        seed: seed of the choice of writers.
        core: whether only core expressions are used, see `crohme.is_core`.

    Returns:
        The split.

    Raises:
        DataError: no training page is left, or all expressions are by one writer.
    """
    parts = [crohme.load(part_folder, core=core) for part_folder in find_inkml_folders(folder)]
    remaining, test = parts if len(parts) == 2 else split_by_writer(parts[0], seed + 1)
    train, validation = split_by_writer(exclude_strings(remaining, test), seed)
    if not train:
        raise DataError(f"{folder}: validation or test has every string of training; give more expressions")
    return Split(train, validation, test, single_lines=True)


def drop_long_pages(pages: Sequence[Page]) -> list[Page]:
    """Return the pages of at most `LONGEST` symbols, since arrays are padded to the longest page."""
    return [page for page in pages if len(page) <= LONGEST]


def load_page_split(folder: str, sets: int, seed: int, single_writer: bool) -> Split:
    """Return CROHME's pages in `folder`, or generated sets of equations if `folder` is empty."""
    if folder:
        return load_crohme_split(Path(folder), seed)
    return Split(*handwriting.generate_page_splits(sets, seed=seed, single_writer=single_writer))


def load_evaluation_pages(folder: Path, core: bool = True) -> list[Page]:
    """Return the core expressions (all if `core` is false) of a folder, of its dev/ if it has one."""
    return crohme.load(find_evaluation_folder(folder), core=core)


def find_evaluation_folder(folder: Path) -> Path:
    """Return the folder with the expressions for evaluation: dev/ if it exists, or the folder itself."""
    return folder / "dev" if (folder / "dev").is_dir() else folder


def find_inkml_folders(folder: Path) -> list[Path]:
    """Return the folders with InkML files: train/ and dev/ if both exist, or the folder itself."""
    parts = [folder / "train", folder / "dev"]
    return parts if all(part.is_dir() for part in parts) else [folder]


def describe_skipped_files(folder: Path) -> list[str]:
    """Return messages about InkML files that cannot be used, one line for each folder that has such files."""
    lines = ((part, crohme.read_folder(part).notice) for part in find_inkml_folders(folder))
    return [f"{part}: {line}" for part, line in lines if line]


def split_by_writer(pages: list[Page], seed: int) -> tuple[list[Page], list[Page]]:
    """Split pages by writers, 90/10, and drop pages from the first part whose string is in the second."""
    writers = sorted({page.writer for page in pages})
    if len(writers) < 2:
        raise DataError(f"all {len(pages)} expressions are by one writer; give a folder with several, to hold some out")
    order = np.random.default_rng([_SPLIT, seed]).permutation(len(writers))
    held_out_writers = {writers[i] for i in order[: max(1, len(writers) // 10)]}
    held_out = [page for page in pages if page.writer in held_out_writers]
    return exclude_strings([page for page in pages if page.writer not in held_out_writers], held_out), held_out


def exclude_strings(pages: Sequence[Page], others: Sequence[Page]) -> list[Page]:
    """Return the pages whose string does not occur in `others`."""
    excluded = {page.symbols for page in others}
    return [page for page in pages if page.symbols not in excluded]


def augment_pages(split: Split, copy: int) -> list[Page]:
    """Return rewritten copies of the training pages, each symbol slightly warped.

    In copies with an odd number, single lines are stacked to pages of one to three lines of one writer.

    Args:
        split: pages, of which `rewriting` or all training pages are copied.
        copy: number of the copy, which determines all random numbers.

    Returns:
        The rewritten pages.
    """
    pages = split.train if split.rewriting is None else split.rewriting
    if split.single_lines and copy % 2:
        pages = crohme.stack_expressions(pages, np.random.default_rng([_COMPOSE, copy]))
    return [augment_page(page, np.random.default_rng([_WARP, copy, i])) for i, page in enumerate(pages)]


def augment_page(page: Page, generator: np.random.Generator) -> Page:
    """Return the page with every symbol slightly warped in its position."""
    return replace(page, ink=tuple(warp_crop(strokes, generator) for strokes in page.ink))
