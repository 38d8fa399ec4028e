"""All pages that a reader learns from as arrays, with the names of their symbols."""

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
    """Which of these classes each symbol is."""
    return partial(encode_labels, names=names)


@dataclass(frozen=True)
class PageArrays(Dataset):
    """The same for a policy that also says what symbols are; its features are [Σn, D], one page after the other."""

    names: tuple[str, ...]  # the classes of symbols
    labels: Array  # int64 [Σn]: the class of each
    heads: Array  # int64 [Σn]: the gold heads


@lru_cache(maxsize=1)
def load_page_arrays(crohme: str, sets: int, data_seed: int, warps: int, pictured: float) -> PageArrays:
    """Of generated pages, and of CROHME's in that folder beside them, if one is named."""
    split = load_reader_split(crohme, sets, data_seed, pictured)
    every = [*split.train, *split.validation, *split.test]
    names = choose_class_names(symbol for page in split.train for symbol in page.symbols)
    counts = len(split.train), len(split.validation), len(split.rewriting or ())
    key = cache_key(every, "library", *counts, warps, COMPONENTS, FITTED, names)
    tensors = load_or_compute(
        key,
        lambda: compute_features(split, warps, extract_detailed_features, fit_projection, make_label_encoder(names)),
    )
    return make_page_arrays(tensors, split, names)


def make_page_arrays(tensors: dict[str, Tensor], split: Split, names: tuple[str, ...]) -> PageArrays:
    """What `computed` made of these pages, with the names of its classes."""
    kept = {name: tensor.numpy() for name, tensor in tensors.items()}
    train, validation, test = split_indices(split, len(kept["lengths"]))
    return PageArrays(
        key=digest_tensors(tensors),
        corpus=make_corpus(kept),
        features=kept["features"],
        projection=Projection(kept["centre"], kept["matrix"]),
        train=train,
        validation=validation,
        test=test,
        names=names,
        labels=kept["labels"],
        heads=kept["heads"],
    )


def attach_training_pages(policy: Policy, pages: PageArrays) -> None:
    """Give a policy the pages, the projection that made their features, and the answers to learn from."""
    assert isinstance(policy, ReadingPolicy)
    policy.projection = pages.projection
    policy.with_names(pages.names).with_pages(pages.features, pages.corpus.lengths)
    policy.with_answers(pages.labels, pages.heads)


@dataclass(frozen=True)
class NamesMonitor:
    """UAS on the test pages, and the share of symbols there that the policy names right."""

    monitor: Monitor
    pages: PageArrays

    def with_engine(self, engine: Engine) -> NamesMonitor:
        """The same by another engine."""
        return replace(self, monitor=self.monitor.with_engine(engine))

    def __call__(self, policy: Policy) -> dict[str, float]:
        assert isinstance(policy, ReadingPolicy)
        names, _ = policy.predict_names(self.pages.test)
        first = int(self.pages.corpus.lengths[: self.pages.test[0]].sum())  # the test pages are the last
        return self.monitor(policy) | {"test_names": float((names == self.pages.labels[first:]).mean())}
