"""All sentences of a run as arrays: what is read of their words, their gold trees, and the answers to learn from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aggrevated.arrays import Array
from aggrevated.errors import DataError
from aggrevated.parsing.learners.names import classes_of, numbers_of
from aggrevated.parsing.parser import Corpus
from aggrevated.parsing.transitions.configurations import NONE, with_root
from aggrevated.text.generated import generated
from aggrevated.text.policy import BYTES, FINE_TAGS, LABELS, TAGS, SentencePolicy
from aggrevated.text.projective import projectivised
from aggrevated.text.sentence import UNKNOWN, Sentence
from aggrevated.text.treebank import Stamp, load, stamp
from aggrevated.text.words import Shown, shown

FEWEST = 10  # sentences that can be split in three


class Split(NamedTuple):
    """Sentences to learn from, to choose on and to report."""

    train: tuple[Sentence, ...]
    validation: tuple[Sentence, ...]
    test: tuple[Sentence, ...]  # empty where the policy is reported on what it was chosen on


class Names(NamedTuple):
    """Of the classes that a policy tells apart."""

    labels: tuple[str, ...]
    tags: tuple[str, ...]
    fine_tags: tuple[str, ...]

    @classmethod
    def of(cls, sentences: Sequence[Sentence]) -> Names:
        """Those that occur in these."""
        columns = ([name for sentence in sentences for name in column(sentence)] for column in COLUMNS)
        return cls(*(told(names, most) for names, most in zip(columns, (LABELS, TAGS, FINE_TAGS), strict=True)))


COLUMNS: tuple[Callable[[Sentence], tuple[str, ...]], ...] = (
    lambda one: one.labels, lambda one: one.tags, lambda one: one.fine_tags,
)  # fmt: skip


def told(names: Iterable[str], most: int) -> tuple[str, ...]:
    """The classes of these names, of which UNKNOWN is none."""
    return classes_of((name for name in names if name != UNKNOWN), most, BYTES)


@dataclass(frozen=True)
class Library:
    """The sentences to learn from, then those to choose on, then those to report."""

    key: str  # a digest of all this
    sentences: tuple[Sentence, ...]
    names: Names
    shown: Shown
    corpus: Corpus  # with trees that are projective
    labels: Array  # int64 [Σn]: classes; likewise of the tags
    tags: Array
    fine_tags: Array
    heads: Array  # int64 [Σn]: gold heads as they are
    train: Array  # which sentences they are
    validation: Array
    test: Array

    @classmethod
    def of(cls, split: Split, names: Names | None = None) -> Library:
        """Of these sentences, with the classes of those to learn from, or with others."""
        every = (*split.train, *split.validation, *split.test)
        names = names or Names.of(split.train)
        labels, tags, fine_tags = (
            numbers_of([name for one in every for name in column(one)], own)
            for column, own in zip(COLUMNS, names, strict=True)
        )
        ends = np.cumsum([len(part) for part in split])
        train, validation, test = (np.arange(end - len(part), end) for part, end in zip(split, ends, strict=True))
        return cls(
            key=key_of(split),
            sentences=every,
            names=names,
            shown=shown(every, names.tags),
            corpus=corpus_of(every),
            labels=labels,
            tags=tags,
            fine_tags=fine_tags,
            heads=np.concatenate([one.heads for one in every]),
            train=train,
            validation=validation,
            test=test if len(test) else validation,
        )

    def show(self, policy: SentencePolicy, heads: Array | None = None) -> None:
        """Let a policy read these sentences, with the answers to learn from; `heads` [Σn] in place of the gold ones."""
        answers = self.heads if heads is None else heads
        policy.with_sentences(self.shown).with_answers(self.labels, self.tags, self.fine_tags, answers)

    def heads_by(self, corpus: Corpus) -> Array:
        """[Σn]: the gold heads, but of the sentences to learn from those of another corpus."""
        heads, lengths = self.heads.copy(), self.shown.lengths[self.train]
        own = [tree[1 : n + 1] for tree, n in zip(corpus.gold[self.train], lengths, strict=True)]
        heads[self.shown.places(self.train)] = np.concatenate(own)
        return heads


def corpus_of(sentences: Sequence[Sentence]) -> Corpus:
    """Their trees, made projective; where a sentence has none, its words have no gold head."""
    lengths = np.array([len(one) for one in sentences])
    trees = [projectivised(one.heads) if (one.heads >= 0).all() else one.heads for one in sentences]
    return Corpus(lengths, np.stack([with_root(heads, int(lengths.max())) for heads in trees]))


def key_of(split: Split) -> str:
    """A digest of the sentences and of what they are for."""
    sha = sha256(repr([len(part) for part in split]).encode())
    for part in split:
        for one in part:
            sha.update(repr((one.words, one.heads.tolist(), one.labels, one.tags, one.fine_tags)).encode())
    return sha.hexdigest()


def split_of(data: str, dev: str, test: str, sentences: int, seed: int, longest: int) -> Split:
    """What these files hold; without one for `dev` the data is split 80/10/10, and without `data` it is generated."""
    every = load(Path(data)).sentences if data else tuple(generated(sentences, seed))
    if not dev:
        if len(every) < FEWEST:
            raise DataError(f"{data or 'the data'} has {len(every)} sentences, too few to split; give --dev, too")
        first, second = (len(every) * part // 10 for part in (8, 9))
        return Split(short(every[:first], longest), every[first:second], every[second:])
    return Split(short(every, longest), load(Path(dev)).sentences, load(Path(test)).sentences if test else ())


def short(sentences: tuple[Sentence, ...], longest: int) -> tuple[Sentence, ...]:
    """Those that are no longer; a `DataError` if there is none."""
    found = tuple(one for one in sentences if len(one) <= longest)
    if not found:
        raise DataError(f"no sentence to learn from has {longest} words or fewer; give a larger --longest")
    return found


def library(data: str, dev: str, test: str, sentences: int, seed: int, longest: int) -> Library:
    """The sentences of a run, as its files are now."""
    stamps = tuple(stamp(Path(path)) for path in (data, dev, test) if path)
    return _library(stamps, data, dev, test, sentences, seed, longest)


@lru_cache(maxsize=2)
def _library(stamps: tuple[Stamp, ...], *of_split: Any) -> Library:
    return Library.of(split_of(*of_split))


def refuse_untagged(policy: SentencePolicy, sentences: Iterable[Sentence]) -> None:
    """A `DataError` if the policy is to see tags, and there are none."""
    if policy.sees_tags and any(all(tag == UNKNOWN for tag in sentence.tags) for sentence in sentences):
        raise DataError(
            "a policy that sees UPOS tags (--see-tags) cannot do without, and there are sentences that have none; give "
            "CoNLL-U that has them in column 4, or let the policy learn without"
        )


def corrupted(corpus: Corpus, share: float, seed: int) -> Corpus:
    """The same trees, of which about that share of the heads is wrong: an expert who has learned badly.

    A word that is drawn gets another head at random, one that is not below it; then the tree is made projective again.
    """
    generator = np.random.default_rng(seed)
    gold = corpus.gold.copy()
    for tree, n in zip(gold, corpus.lengths, strict=True):
        heads = tree[1 : n + 1].copy()
        for word in np.flatnonzero(generator.random(n) < share) + 1:
            others = [h for h in range(1, n + 1) if h != heads[word - 1] and not is_below(heads, h, int(word))]
            if others and heads[word - 1] != 0:
                heads[word - 1] = generator.choice(others)
        tree[1 : n + 1] = projectivised(heads)
    return Corpus(corpus.lengths, gold)


def is_below(heads: Array, word: int, above: int) -> bool:
    """Whether `word` is `above`, or below it."""
    while word not in (0, above, NONE):
        word = int(heads[word - 1])
    return word == above
