"""All pages of a run as arrays: features, lengths and gold trees, computed once and kept."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from aggrevated.arrays import Array
from aggrevated.files import digest
from aggrevated.parsing.cache import cached, key_of
from aggrevated.parsing.features.projection import Projection
from aggrevated.parsing.features.symbols import detailed, raw, table
from aggrevated.parsing.learners.names import classes_of, numbers_of
from aggrevated.parsing.learners.reading import COMPONENTS, FITTED, projection_of
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.parser import Corpus
from aggrevated.parsing.splits import Split, pages_of, rewritten, to_read
from aggrevated.parsing.transitions.configurations import with_root

BLOCK = 500  # pages at a time


@dataclass(frozen=True)
class Dataset:
    """The pages to learn from, with their rewritten copies, then those for validation, then those for the test."""

    key: str  # a digest of all this
    corpus: Corpus
    features: Array  # float32 [P, N, D]
    projection: Projection  # that made them of raw ones
    train: Array  # which pages they are
    validation: Array
    test: Array


@dataclass(frozen=True)
class Library(Dataset):
    """The same for a policy that also says what symbols are; its features are [Σn, D], one page after the other."""

    names: tuple[str, ...]  # the classes of symbols
    labels: Array  # int64 [Σn]: the class of each
    heads: Array  # int64 [Σn]: the gold heads


@lru_cache(maxsize=2)
def dataset(crohme: str, sets: int, data_seed: int, single_writer: bool, warps: int) -> Dataset:
    """Of CROHME's pages in that folder; where none is named, of generated ones."""
    split = pages_of(crohme, sets, data_seed, single_writer)
    every = [*split.train, *split.validation, *split.test]
    key = key_of(every, len(split.train), len(split.validation), warps, split.single_lines)
    tensors = cached(key, lambda: computed(split, warps))
    kept = {name: tensor.numpy() for name, tensor in tensors.items()}
    features = table(kept["lengths"], kept["features"])
    projection = Projection(kept["centre"], kept["matrix"])
    return Dataset(digest(tensors), corpus_of(kept), features, projection, *parts_of(split, len(kept["lengths"])))


@lru_cache(maxsize=1)
def library(crohme: str, sets: int, data_seed: int, warps: int, pictured: float) -> Library:
    """Of generated pages, and of CROHME's in that folder beside them, if one is named."""
    split = to_read(crohme, sets, data_seed, pictured)
    every = [*split.train, *split.validation, *split.test]
    names = classes_of(symbol for page in split.train for symbol in page.symbols)
    counts = len(split.train), len(split.validation), len(split.rewriting or ())
    key = key_of(every, "library", *counts, warps, COMPONENTS, FITTED, names)
    tensors = cached(key, lambda: computed(split, warps, detailed, projection_of, names))
    return library_of(tensors, split, names)


def library_of(tensors: dict[str, Tensor], split: Split, names: tuple[str, ...]) -> Library:
    """What `computed` made of these pages, with the names of its classes."""
    kept = {name: tensor.numpy() for name, tensor in tensors.items()}
    train, validation, test = parts_of(split, len(kept["lengths"]))
    return Library(
        key=digest(tensors),
        corpus=corpus_of(kept),
        features=kept["features"],
        projection=Projection(kept["centre"], kept["matrix"]),
        train=train,
        validation=validation,
        test=test,
        names=names,
        labels=kept["labels"],
        heads=kept["heads"],
    )


def computed(
    split: Split,
    warps: int,
    raw: Callable[[Sequence[Page]], Array] = raw,
    fit: Callable[[Sequence[Page]], Projection] = lambda pages: Projection.of(raw(pages)),
    names: tuple[str, ...] | None = None,
) -> dict[str, Tensor]:
    """Features, heads and lengths of all pages, one after the other; the projection is fitted to the training pages.

    With `names`, the classes of symbols, also which of them each symbol is.
    """
    projection = fit(split.train)
    batches = [split.train, *(rewritten(split, copy) for copy in range(warps)), split.validation, split.test]
    arrays = {
        "features": np.concatenate([projection(raw(some)) for batch in batches for some in blocks(batch)]),
        "heads": np.concatenate([page.heads for batch in batches for page in batch]),
        "lengths": np.array([len(page) for batch in batches for page in batch]),
    }
    if names is not None:
        symbols = [symbol for batch in batches for page in batch for symbol in page.symbols]
        arrays["labels"] = numbers_of(symbols, names)
    fitted = {"centre": projection.centre, "matrix": projection.matrix}
    return {name: torch.from_numpy(array) for name, array in arrays.items()} | fitted


def blocks(pages: Sequence[Page]) -> Iterator[Sequence[Page]]:
    """Some of the pages at a time: the raw features of all would take gigabytes."""
    return (pages[first : first + BLOCK] for first in range(0, len(pages), BLOCK))


def corpus_of(kept: dict[str, Array]) -> Corpus:
    """Lengths and gold trees of all pages."""
    lengths, most = kept["lengths"], int(kept["lengths"].max())
    trees = np.split(kept["heads"], np.cumsum(lengths)[:-1])
    return Corpus(lengths, np.stack([with_root(heads, most) for heads in trees]))


def parts_of(split: Split, count: int) -> list[Array]:
    """Which of so many pages are to learn from, to choose on and to report."""
    to_learn = count - len(split.validation) - len(split.test)
    return np.split(np.arange(count), np.cumsum([to_learn, len(split.validation)]))


def of_pages(
    pages: Sequence[Page], projection: Projection, raw: Callable[[Sequence[Page]], Array] = raw
) -> tuple[Corpus, Array]:
    """(the corpus of these pages, their features), to be read by a policy that has that projection."""
    corpus = Corpus.of(pages)
    return corpus, table(corpus.lengths, projection(raw(pages)))
