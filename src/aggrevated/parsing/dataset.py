"""All pages of a run as arrays: features, lengths and gold trees, computed once and kept."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from aggrevated.core.arrays import Array
from aggrevated.parsing.feature_cache import cache_key, load_or_compute
from aggrevated.parsing.features.projection import Projection
from aggrevated.parsing.features.symbols import extract_raw_features, pad_features
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.parser import Corpus
from aggrevated.parsing.splits import Split, augment_pages, load_page_split
from aggrevated.parsing.transitions.configurations import add_root
from aggrevated.storage import digest_tensors

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


@lru_cache(maxsize=2)
def load_dataset(crohme: str, sets: int, data_seed: int, single_writer: bool, warps: int) -> Dataset:
    """Of CROHME's pages in that folder; where none is named, of generated ones."""
    split = load_page_split(crohme, sets, data_seed, single_writer)
    every = [*split.train, *split.validation, *split.test]
    key = cache_key(every, len(split.train), len(split.validation), warps, split.single_lines)
    tensors = load_or_compute(key, lambda: compute_features(split, warps))
    kept = {name: tensor.numpy() for name, tensor in tensors.items()}
    features = pad_features(kept["lengths"], kept["features"])
    projection = Projection(kept["centre"], kept["matrix"])
    return Dataset(
        digest_tensors(tensors), make_corpus(kept), features, projection, *split_indices(split, len(kept["lengths"]))
    )


def compute_features(
    split: Split,
    warps: int,
    raw: Callable[[Sequence[Page]], Array] = extract_raw_features,
    fit: Callable[[Sequence[Page]], Projection] = lambda pages: Projection.fit(extract_raw_features(pages)),
    labelled: Callable[[Sequence[str]], Array] | None = None,
) -> dict[str, Tensor]:
    """Features, heads and lengths of all pages, one after the other; the projection is fitted to the training pages.

    With `labelled`, also the class of each symbol.
    """
    projection = fit(split.train)
    batches = [split.train, *(augment_pages(split, copy) for copy in range(warps)), split.validation, split.test]
    arrays = {
        "features": np.concatenate([projection(raw(some)) for batch in batches for some in iter_blocks(batch)]),
        "heads": np.concatenate([page.heads for batch in batches for page in batch]),
        "lengths": np.array([len(page) for batch in batches for page in batch]),
    }
    if labelled is not None:
        symbols = [symbol for batch in batches for page in batch for symbol in page.symbols]
        arrays["labels"] = labelled(symbols)
    fitted = {"centre": projection.centre, "matrix": projection.matrix}
    return {name: torch.from_numpy(array) for name, array in arrays.items()} | fitted


def iter_blocks(pages: Sequence[Page]) -> Iterator[Sequence[Page]]:
    """Some of the pages at a time: the raw features of all would take gigabytes."""
    return (pages[first : first + BLOCK] for first in range(0, len(pages), BLOCK))


def make_corpus(kept: dict[str, Array]) -> Corpus:
    """Lengths and gold trees of all pages."""
    lengths = kept["lengths"]
    most = int(kept["lengths"].max())
    trees = np.split(kept["heads"], np.cumsum(lengths)[:-1])
    return Corpus(lengths, np.stack([add_root(heads, most) for heads in trees]))


def split_indices(split: Split, count: int) -> list[Array]:
    """Which of so many pages are to learn from, to choose on and to report."""
    to_learn = count - len(split.validation) - len(split.test)
    return np.split(np.arange(count), np.cumsum([to_learn, len(split.validation)]))


def make_corpus_and_features(
    pages: Sequence[Page], projection: Projection, raw: Callable[[Sequence[Page]], Array] = extract_raw_features
) -> tuple[Corpus, Array]:
    """(the corpus of these pages, their features), to be read by a policy that has that projection."""
    corpus = Corpus.from_pages(pages)
    return corpus, pad_features(corpus.lengths, projection(raw(pages)))
