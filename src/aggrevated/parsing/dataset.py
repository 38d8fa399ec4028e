"""All pages of a run as arrays: features, lengths and gold trees, computed once and cached."""

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
    """Training pages with their rewritten copies, then validation pages, then test pages.

    Attributes:
        key: digest of the features, the trees and the projection, in hexadecimal.
        corpus: lengths and gold trees of all P pages.
        features: features of all symbols, zeros beyond a page, float32 [P, N, D].
        projection: projection that computed the features from raw features.
        train: indices of the training pages and their copies.
        validation: indices of the validation pages.
        test: indices of the test pages.
    """

    key: str
    corpus: Corpus
    features: Array
    projection: Projection
    train: Array
    validation: Array
    test: Array


@lru_cache(maxsize=2)
def load_dataset(crohme: str, sets: int, data_seed: int, single_writer: bool, warps: int) -> Dataset:
    """Return the pages of a CROHME folder, or generated pages, as arrays.

    Args:
        crohme: folder of CROHME's InkML files; empty for generated pages.
        sets: number of generated sets of equations.
        data_seed: seed of the generated pages and of the choice of validation writers.
        single_writer: whether one hand writes all generated sets.
        warps: number of rewritten copies of each training page.

    Returns:
        The pages of all three parts.
    """
    split = load_page_split(crohme, sets, data_seed, single_writer)
    pages = [*split.train, *split.validation, *split.test]
    key = cache_key(pages, len(split.train), len(split.validation), warps, split.single_lines)
    tensors = load_or_compute(key, lambda: compute_features(split, warps))
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    features = pad_features(arrays["lengths"], arrays["features"])
    projection = Projection(arrays["centre"], arrays["matrix"])
    return Dataset(
        digest_tensors(tensors),
        make_corpus(arrays),
        features,
        projection,
        *split_indices(split, len(arrays["lengths"])),
    )


def compute_features(
    split: Split,
    warps: int,
    raw: Callable[[Sequence[Page]], Array] = extract_raw_features,
    fit: Callable[[Sequence[Page]], Projection] = lambda pages: Projection.fit(extract_raw_features(pages)),
    labelled: Callable[[Sequence[str]], Array] | None = None,
) -> dict[str, Tensor]:
    """Compute features, heads and lengths of all pages, concatenated over the pages.

    Args:
        split: pages for training, validation and test.
        warps: number of rewritten copies of each training page.
        raw: function that computes the raw features of pages, float32 [symbols, F].
        fit: function that fits the projection to the training pages.
        labelled: function that encodes the labels of symbols as classes; None: no classes are returned.

    Returns:
        Tensors by name: `features`, `heads`, `lengths`, the projection's `centre` and `matrix`, and
        `labels` if `labelled` is given.
    """
    projection = fit(split.train)
    batches = [split.train, *(augment_pages(split, copy) for copy in range(warps)), split.validation, split.test]
    arrays = {
        "features": np.concatenate([projection(raw(block)) for batch in batches for block in iter_blocks(batch)]),
        "heads": np.concatenate([page.heads for batch in batches for page in batch]),
        "lengths": np.array([len(page) for batch in batches for page in batch]),
    }
    if labelled is not None:
        symbols = [symbol for batch in batches for page in batch for symbol in page.symbols]
        arrays["labels"] = labelled(symbols)
    projection_tensors = {"centre": projection.centre, "matrix": projection.matrix}
    return {name: torch.from_numpy(array) for name, array in arrays.items()} | projection_tensors


def iter_blocks(pages: Sequence[Page]) -> Iterator[Sequence[Page]]:
    """Return the pages in blocks, since the raw features of all pages would take gigabytes."""
    return (pages[first : first + BLOCK] for first in range(0, len(pages), BLOCK))


def make_corpus(arrays: dict[str, Array]) -> Corpus:
    """Return the corpus of concatenated `heads` and `lengths`."""
    lengths = arrays["lengths"]
    most = int(arrays["lengths"].max())
    trees = np.split(arrays["heads"], np.cumsum(lengths)[:-1])
    return Corpus(lengths, np.stack([add_root(heads, most) for heads in trees]))


def split_indices(split: Split, count: int) -> list[Array]:
    """Return the indices of the training, validation and test pages among `count` pages."""
    n_train = count - len(split.validation) - len(split.test)
    return np.split(np.arange(count), np.cumsum([n_train, len(split.validation)]))


def make_corpus_and_features(
    pages: Sequence[Page], projection: Projection, raw: Callable[[Sequence[Page]], Array] = extract_raw_features
) -> tuple[Corpus, Array]:
    """Return the corpus of pages and their features, for a policy that reads features of a given projection.

    Args:
        pages: pages to encode.
        projection: projection of the policy.
        raw: function that computes the raw features of pages, float32 [symbols, F].

    Returns:
        The corpus, and the features float32 [P, N, D].
    """
    corpus = Corpus.from_pages(pages)
    return corpus, pad_features(corpus.lengths, projection(raw(pages)))
