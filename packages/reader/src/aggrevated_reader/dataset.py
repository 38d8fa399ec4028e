"""Arrays of all pages that a reader learns from, with the names of their symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from torch import Tensor

from aggrevated.core.arrays import Array
from aggrevated.engines import Engine
from aggrevated.parsing.dataset import Dataset, compute_features, make_corpus, split_indices
from aggrevated.parsing.feature_cache import cache_key, load_or_compute
from aggrevated.parsing.features.projection import Projection
from aggrevated.parsing.features.symbols import extract_detailed_features
from aggrevated.parsing.problem import Monitor
from aggrevated.parsing.splits import Split
from aggrevated.policies import Policy
from aggrevated.storage import digest_tensors
from aggrevated_reader.learners.reading_policy import COMPONENTS, FITTED, ReadingPolicy, fit_projection
from aggrevated_reader.learners.symbol_names import choose_class_names, encode_labels
from aggrevated_reader.splits import load_reader_split


def make_label_encoder(names: tuple[str, ...]) -> Callable[[Sequence[str]], Array]:
    """Return a function from the labels of symbols to the numbers of their classes."""
    return partial(encode_labels, names=names)


@dataclass(frozen=True)
class PageArrays(Dataset):
    """Dataset of a policy that also names symbols; its features are [Σn, D], one page after the other."""

    names: tuple[str, ...]  # of the classes
    labels: Array  # int64 [Σn]: the class of each symbol
    heads: Array  # int64 [Σn]: the gold head of each symbol


@lru_cache(maxsize=1)
def load_page_arrays(crohme: str, sets: int, data_seed: int, warps: int, pictured: float) -> PageArrays:
    """Return the arrays of generated pages and, if `crohme` names a folder, of CROHME's pages in it."""
    split = load_reader_split(crohme, sets, data_seed, pictured)
    all_pages = [*split.train, *split.validation, *split.test]
    names = choose_class_names(symbol for page in split.train for symbol in page.symbols)
    counts = len(split.train), len(split.validation), len(split.rewriting or ())
    key = cache_key(all_pages, "library", *counts, warps, COMPONENTS, FITTED, names)
    tensors = load_or_compute(
        key,
        lambda: compute_features(split, warps, extract_detailed_features, fit_projection, make_label_encoder(names)),
    )
    return make_page_arrays(tensors, split, names)


def make_page_arrays(tensors: dict[str, Tensor], split: Split, names: tuple[str, ...]) -> PageArrays:
    """Return the tensors of `compute_features` as page arrays with the names of the classes."""
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    train, validation, test = split_indices(split, len(arrays["lengths"]))
    return PageArrays(
        key=digest_tensors(tensors),
        corpus=make_corpus(arrays),
        features=arrays["features"],
        projection=Projection(arrays["centre"], arrays["matrix"]),
        train=train,
        validation=validation,
        test=test,
        names=names,
        labels=arrays["labels"],
        heads=arrays["heads"],
    )


def attach_training_pages(policy: Policy, pages: PageArrays) -> None:
    """Give a policy the pages, the projection that made their features, and the answers to learn from."""
    assert isinstance(policy, ReadingPolicy)
    policy.projection = pages.projection
    policy.with_names(pages.names).with_pages(pages.features, pages.corpus.lengths)
    policy.with_answers(pages.labels, pages.heads)


@dataclass(frozen=True)
class NamesMonitor:
    """Monitor of UAS on the test pages and of the share of their symbols that the policy names correctly."""

    monitor: Monitor
    pages: PageArrays

    def with_engine(self, engine: Engine) -> NamesMonitor:
        """Return a copy that uses another engine."""
        return replace(self, monitor=self.monitor.with_engine(engine))

    def __call__(self, policy: Policy) -> dict[str, float]:
        assert isinstance(policy, ReadingPolicy)
        names, _ = policy.predict_names(self.pages.test)
        first = int(self.pages.corpus.lengths[: self.pages.test[0]].sum())  # the test pages come last
        return self.monitor(policy) | {"test_names": float((names == self.pages.labels[first:]).mean())}
