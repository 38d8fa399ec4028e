"""All pages that a reader learns from as arrays, with the names of their symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from torch import Tensor

from aggrevated.core.arrays import Array
from aggrevated.engines import Engine
from aggrevated.parsing.dataset import Dataset, computed, corpus_of, parts_of
from aggrevated.parsing.feature_cache import cached, key_of
from aggrevated.parsing.features.projection import Projection
from aggrevated.parsing.features.symbols import detailed
from aggrevated.parsing.page_problems import Monitor
from aggrevated.parsing.splits import Split
from aggrevated.policies import Policy
from aggrevated.storage import digest
from aggrevated_reader.learners.reading_policy import COMPONENTS, FITTED, ReadingPolicy, projection_of
from aggrevated_reader.learners.symbol_names import classes_of, numbers_of
from aggrevated_reader.splits import to_read


def labelling(names: tuple[str, ...]) -> Callable[[Sequence[str]], Array]:
    """Which of these classes each symbol is."""
    return partial(numbers_of, names=names)


@dataclass(frozen=True)
class Library(Dataset):
    """The same for a policy that also says what symbols are; its features are [Σn, D], one page after the other."""

    names: tuple[str, ...]  # the classes of symbols
    labels: Array  # int64 [Σn]: the class of each
    heads: Array  # int64 [Σn]: the gold heads


@lru_cache(maxsize=1)
def library(crohme: str, sets: int, data_seed: int, warps: int, pictured: float) -> Library:
    """Of generated pages, and of CROHME's in that folder beside them, if one is named."""
    split = to_read(crohme, sets, data_seed, pictured)
    every = [*split.train, *split.validation, *split.test]
    names = classes_of(symbol for page in split.train for symbol in page.symbols)
    counts = len(split.train), len(split.validation), len(split.rewriting or ())
    key = key_of(every, "library", *counts, warps, COMPONENTS, FITTED, names)
    tensors = cached(key, lambda: computed(split, warps, detailed, projection_of, labelling(names)))
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


def teach(policy: Policy, pages: Library) -> None:
    """Give a policy the pages, the projection that made their features, and the answers to learn from."""
    assert isinstance(policy, ReadingPolicy)
    policy.projection = pages.projection
    policy.with_names(pages.names).with_pages(pages.features, pages.corpus.lengths)
    policy.with_answers(pages.labels, pages.heads)


@dataclass(frozen=True)
class Named:
    """UAS on the test pages, and the share of symbols there that the policy names right."""

    monitor: Monitor
    pages: Library

    def over(self, engine: Engine) -> Named:
        """The same by another engine."""
        return replace(self, monitor=self.monitor.over(engine))

    def __call__(self, policy: Policy) -> dict[str, float]:
        assert isinstance(policy, ReadingPolicy)
        names, _ = policy.named(self.pages.test)
        first = int(self.pages.corpus.lengths[: self.pages.test[0]].sum())  # the test pages are the last
        return self.monitor(policy) | {"test_names": float((names == self.pages.labels[first:]).mean())}
