"""Pages for training, validation and test: generated, or CROHME's, with different writers and strings in each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from aggrevated.errors import DataError
from aggrevated.parsing.features.crops import warped
from aggrevated.parsing.pages import crohme, handwriting
from aggrevated.parsing.pages.page import Page

_SPLIT, _WARP, _COMPOSE = 11, 12, 13  # what a random number is for


@dataclass(frozen=True)
class Split:
    """Pages to learn from, to choose on and to report."""

    train: list[Page]
    validation: list[Page]
    test: list[Page]
    single_lines: bool = False  # whether the training pages are single lines, of which larger pages can be made


def real(folder: Path, seed: int) -> Split:
    """CROHME's core expressions: train/ without a tenth of its writers, these writers, and dev/.

    Where there are no such folders, the folder's own files, of which a further tenth of the writers is the test. No
    string is in two parts: what validation or test has is left out of training.
    """
    parts = folder / "train", folder / "dev"
    if all(part.is_dir() for part in parts):
        rest, test = (crohme.load(part, core=True) for part in parts)
    else:
        rest, test = without_some_writers(crohme.load(folder, core=True), seed + 1)
    train, validation = without_some_writers(without_strings_of(rest, test), seed)
    if not train:
        raise DataError(f"{folder}: every string to learn from is one of validation or test; give more expressions")
    return Split(train, validation, test, single_lines=True)


def pages_of(folder: str, sets: int, seed: int, single_writer: bool) -> Split:
    """CROHME's pages in that folder; where none is named, generated sets of equations in generated hands."""
    if folder:
        return real(Path(folder), seed)
    return Split(*handwriting.generated(sets, seed=seed, single_writer=single_writer))


def to_evaluate(folder: Path) -> list[Page]:
    """The core expressions of a folder; of its dev/, if it has one."""
    return crohme.load(folder / "dev" if (folder / "dev").is_dir() else folder, core=True)


def without_some_writers(pages: list[Page], seed: int) -> tuple[list[Page], list[Page]]:
    """(pages of nine tenths of the writers, pages of the others); the first without the strings of the second."""
    writers = sorted({page.writer for page in pages})
    if len(writers) < 2:
        raise DataError(f"all {len(pages)} expressions are by one writer; give a folder with several, to hold some out")
    order = np.random.default_rng([_SPLIT, seed]).permutation(len(writers))
    held = {writers[i] for i in order[: max(1, len(writers) // 10)]}
    others = [page for page in pages if page.writer in held]
    return without_strings_of([page for page in pages if page.writer not in held], others), others


def without_strings_of(pages: Sequence[Page], others: Sequence[Page]) -> list[Page]:
    """Those pages whose string is none of the others'."""
    taken = {page.symbols for page in others}
    return [page for page in pages if page.symbols not in taken]


def rewritten(split: Split, copy: int) -> list[Page]:
    """The training pages as the same hands might have written them another time; the same for the same copy.

    Single lines are, in every other copy, put together to pages of one to three lines of one writer.
    """
    pages = split.train
    if split.single_lines and copy % 2:
        pages = crohme.compose(pages, np.random.default_rng([_COMPOSE, copy]))
    return [rewrite(page, np.random.default_rng([_WARP, copy, i])) for i, page in enumerate(pages)]


def rewrite(page: Page, generator: np.random.Generator) -> Page:
    """Every symbol warped a little, where it stands."""
    return replace(page, ink=tuple(warped(strokes, generator) for strokes in page.ink))
