"""All pages of a run as arrays: features, lengths and gold trees, computed once and kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from aggrevated.arrays import Array
from aggrevated.files import digest
from aggrevated.parsing.cache import cached, key_of
from aggrevated.parsing.features.projection import Projection
from aggrevated.parsing.features.symbols import raw, table
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.parser import Corpus
from aggrevated.parsing.splits import Split, pages_of, rewritten
from aggrevated.parsing.transitions.configurations import with_root


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
def dataset(crohme: str, sets: int, data_seed: int, single_writer: bool, warps: int) -> Dataset:
    """Of CROHME's pages in that folder; where none is named, of generated ones."""
    split = pages_of(crohme, sets, data_seed, single_writer)
    every = [*split.train, *split.validation, *split.test]
    key = key_of(every, len(split.train), len(split.validation), warps, split.single_lines)
    tensors = cached(key, lambda: computed(split, warps))
    kept = {name: tensor.numpy() for name, tensor in tensors.items()}
    lengths, most = kept["lengths"], int(kept["lengths"].max())
    trees = np.split(kept["heads"], np.cumsum(lengths)[:-1])
    gold = np.stack([with_root(heads, most) for heads in trees])
    to_learn = len(lengths) - len(split.validation) - len(split.test)
    parts = np.split(np.arange(len(lengths)), np.cumsum([to_learn, len(split.validation)]))
    projection = Projection(kept["centre"], kept["matrix"])
    return Dataset(digest(tensors), Corpus(lengths, gold), table(lengths, kept["features"]), projection, *parts)


def computed(split: Split, warps: int) -> dict[str, Tensor]:
    """Features, heads and lengths of all pages, one after the other; the projection is fitted to the training pages."""
    projection = Projection.of(raw(split.train))
    batches = [split.train, *(rewritten(split, copy) for copy in range(warps)), split.validation, split.test]
    arrays = {
        "features": np.concatenate([projection(raw(batch)) for batch in batches]),
        "heads": np.concatenate([page.heads for batch in batches for page in batch]),
        "lengths": np.array([len(page) for batch in batches for page in batch]),
    }
    fitted = {"centre": projection.centre, "matrix": projection.matrix}
    return {name: torch.from_numpy(array) for name, array in arrays.items()} | fitted


def of_pages(pages: Sequence[Page], projection: Projection) -> tuple[Corpus, Array]:
    """(the corpus of these pages, their features), to be read by a policy that has that projection."""
    corpus = Corpus.of(pages)
    return corpus, table(corpus.lengths, projection(raw(pages)))
