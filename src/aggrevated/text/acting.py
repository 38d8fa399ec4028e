"""The policy that parses sentences, one step at a time on NumPy: a sentence is read when it is first met.

All products are those of `products`: a sentence is read alone and in company with the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.random import Generator

from aggrevated.actors.samplers import Sampler
from aggrevated.arrays import Array
from aggrevated.elementary import exp_of
from aggrevated.engines.sending import Kept
from aggrevated.products import add_product, add_row, affine, compiled, copy_row
from aggrevated.text import heading
from aggrevated.text.recurrence import BothWays, recur
from aggrevated.text.words import LONGEST, NO_LETTER, PREFIX, SHAPE, SPELLED, SUFFIX, WORD, Shown

if TYPE_CHECKING:
    from torch import nn

    from aggrevated.text.encoder import Encoder
    from aggrevated.text.heading import Heading
    from aggrevated.text.policy import SentencePolicy

ZERO, LOUDER, NEVER = np.float32(0.0), np.float32(heading.LOUDER), np.float32(heading.NEVER)
NONE_ROW, ROOT_ROW, WORDS_FROM = 0, 1, 2  # among the items


@dataclass(frozen=True)
class Layer:
    """x W + b, on NumPy."""

    weight: Array  # [inputs, outputs]
    bias: Array

    @classmethod
    def copy_of(cls, layer: nn.Linear) -> Self:
        weight = layer.weight.detach().numpy().T.copy(order="C")
        bias = np.zeros(weight.shape[1], np.float32) if layer.bias is None else layer.bias.detach().numpy().copy()
        return cls(weight, bias)

    def __call__(self, x: Array) -> Array:
        return affine(x, self.weight, self.bias)


def rows_of(table: nn.Embedding) -> Array:
    """A copy of them."""
    return table.weight.detach().numpy().copy()


@dataclass(frozen=True)
class NumpyBothWays:
    """`BothWays` on NumPy."""

    gates: Layer
    memory: Array

    @classmethod
    def copy_of(cls, layer: BothWays) -> Self:
        return cls(Layer.copy_of(layer.gates), layer.memory.detach().numpy().copy())

    def __call__(self, x: Array, lengths: Array) -> Array:
        return recur(self.gates(x), self.memory, lengths)[0]


@dataclass(frozen=True)
class NumpyEncoder:
    """`Encoder` on NumPy."""

    counts: Array
    word: Array
    suffix: Array
    prefix: Array
    shape: Array
    letter: Array
    given: Array | None
    spelling: Layer
    lower: NumpyBothWays
    tagger: Layer
    likely: tuple[Array, ...]
    upper: NumpyBothWays

    @classmethod
    def copy_of(cls, encoder: Encoder) -> Self:
        ends = np.cumsum(encoder.inventories)[:-1]
        return cls(
            counts=encoder.counts.numpy().copy(),
            word=rows_of(encoder.word),
            suffix=rows_of(encoder.suffix),
            prefix=rows_of(encoder.prefix),
            shape=rows_of(encoder.shape),
            letter=rows_of(encoder.letter),
            given=None if encoder.given is None else rows_of(encoder.given),
            spelling=Layer.copy_of(encoder.spelling),
            lower=NumpyBothWays.copy_of(encoder.lower),
            tagger=Layer.copy_of(encoder.tagger),
            likely=tuple(np.split(encoder.likely.detach().numpy().copy(), ends)),
            upper=NumpyBothWays.copy_of(encoder.upper),
        )

    def read(self, shown: Shown, sentences: Array) -> tuple[Array, Array]:
        """(the words of these sentences [Σn, 2 hidden], logits of their tags [Σn, C])."""
        places, lengths = shown.places(sentences), shown.lengths[sentences]
        kinds, which = np.unique(shown.words[places], return_inverse=True)
        vectors = self.spelled(shown.kinds[kinds])[which]
        if self.given is not None:
            vectors = np.concatenate([vectors, self.given[1 + shown.tags[places]]], axis=1)
        lower = self.lower(vectors, lengths)
        tags = self.tagger(lower)
        return self.upper(np.concatenate([lower, *self.tag_vectors(tags)], axis=1), lengths), tags

    def spelled(self, kinds: Array) -> Array:
        """[V, W]: of each of these different words all that is known of it alone."""
        rows, spelled = kinds[:, WORD] % len(self.counts), kinds[:, SPELLED]
        met = self.word[np.where(self.counts[rows] == 0, 0, 1 + rows)]
        window = len(self.spelling.weight) // self.letter.shape[1]
        letters = np.pad(self.letter[spelled], ((0, 0), (window // 2, window // 2), (0, 0)))
        windows = np.concatenate([letters[:, first : first + LONGEST] for first in range(window)], axis=2)
        written = spelled != NO_LETTER
        found = np.zeros((*spelled.shape, len(self.spelling.bias)), np.float32)
        found[written] = np.maximum(self.spelling(windows[written]), ZERO)
        beside = self.suffix[kinds[:, SUFFIX]], self.prefix[kinds[:, PREFIX]], self.shape[kinds[:, SHAPE]]
        return np.concatenate([met, *beside, found.max(axis=1)], axis=1)

    def tag_vectors(self, tags: Array) -> list[Array]:
        """Of each inventory [Σn, OF_TAG]: of the tags that each word is likely to have."""
        logits = np.split(tags, np.cumsum([len(vectors) for vectors in self.likely])[:-1], axis=1)
        return [Layer(own, np.zeros_like(own[0]))(softmax(one)) for one, own in zip(logits, self.likely, strict=True)]


def softmax(logits: Array) -> Array:
    """Of each row."""
    out = np.array(logits, order="C")
    _softmax(out)
    return out


@compiled
def _softmax(rows):  # type: ignore[no-untyped-def]
    for row in rows:
        highest = row[0]
        for x in row:
            highest = max(highest, x)
        total = ZERO
        for j in range(len(row)):
            row[j] = exp_of(row[j] - highest)
            total += row[j]
        for j in range(len(row)):
            row[j] /= total


@dataclass(frozen=True)
class NumpyHeading:
    """`Heading` on NumPy."""

    dependent: Layer
    governor: Layer
    between: Array  # [k + 1, k]
    told: Layer

    @classmethod
    def copy_of(cls, own: Heading) -> Self:
        between = own.between.detach().numpy().copy()
        dependent, governor, told = map(Layer.copy_of, (own.dependent, own.governor, own.told))
        return cls(dependent, governor, between, told)

    def prepared(self, items: Array) -> tuple[Array, Array]:
        """(rows [m, k] of dependents, [m, k] of heads), whose products are the logits of P."""
        dependents, governors = np.maximum(self.dependent(items), ZERO), np.maximum(self.governor(items), ZERO)
        return affine(dependents, self.between[:-1], self.between[-1]), governors


def heads_of(dependents: Array, governors: Array) -> Array:
    """P [1 + n, 1 + n] of one sentence, from rows of ROOT and its words."""
    scores = np.zeros((len(dependents), len(dependents)), np.float32)
    add_product(scores, dependents, np.ascontiguousarray(governors.T))
    np.fill_diagonal(scores, NEVER)
    heads = softmax(scores)
    heads[0] = ZERO
    return heads


@dataclass(frozen=True)
class Weights:
    """Of the policy as it was."""

    encoder: NumpyEncoder
    heading: NumpyHeading
    special: Array  # [2, D]: none, ROOT
    places: Layer
    readout: Layer
    sampler: Sampler

    @classmethod
    def copy_of(cls, policy: SentencePolicy) -> Self:
        return cls(
            NumpyEncoder.copy_of(policy.encoder), NumpyHeading.copy_of(policy.heading),
            policy.special.detach().numpy().copy(), Layer.copy_of(policy.places), Layer.copy_of(policy.readout),
            policy.head.sampler(),
        )  # fmt: skip


class SentenceActor:
    """The policy as it was; what was read of the sentences so far is kept."""

    def __init__(self, weights: Weights, sentences: Kept[Shown]) -> None:
        self.weights, self.sentences = weights, sentences
        count, special = len(sentences.value.lengths), weights.special
        self.first = np.full(count, -1)  # of each sentence the row of its first word
        self.square = np.zeros(count, np.int64)  # and where its P begins
        self.items = special  # [WORDS_FROM + Σn, D]: none, ROOT and all words
        self.tags = np.zeros((WORDS_FROM, len(weights.encoder.tagger.bias)), np.float32)  # logits of each
        self.projected = weights.places(special)  # [WORDS_FROM + Σn, VIEW * W]
        self.heads = np.zeros(0, np.float32)  # [Σ (1 + n)²]: P of each sentence

    def memory(self, count: int) -> Array:
        """Nothing: a configuration is all there is to know."""
        return np.zeros((count, 0), np.float32)

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        return self.weights.sampler.noise(generators, horizon)

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        sentences = observation[:, 0].astype(np.int64)
        self._read(np.unique(sentences[self.first[sentences] < 0]))
        told, readout = self.weights.heading.told, self.weights.readout
        logits = np.empty((len(sentences), len(readout.bias)), np.float32)
        _logits(
            logits, observation[:, 1:].astype(np.int64), self.first[sentences], self.square[sentences],
            self.sentences.value.lengths[sentences], self.projected, self.heads, told.weight, told.bias,
            readout.weight, readout.bias,
        )  # fmt: skip
        return logits, memory

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None = None) -> Array:
        return self.weights.sampler.choose(parameters, noise, legal)

    def what_was_read(self, sentences: Array) -> tuple[Array, Array]:
        """(the words [Σn, D], logits of their tags [Σn, C]) of these sentences [B], which have been read."""
        rows = np.concatenate([np.arange(self.first[one], self.first[one] + n) for one, n in self._sized(sentences)])
        return self.items[rows], self.tags[rows]

    def _sized(self, sentences: Array) -> Iterator[tuple[int, int]]:
        """Each with its length."""
        return zip(sentences.tolist(), self.sentences.value.lengths[sentences].tolist(), strict=True)

    def _read(self, sentences: Array) -> None:
        """Add these sentences to those that were read."""
        if not len(sentences):
            return
        weights, row, square = self.weights, len(self.items), len(self.heads)
        words, tags = weights.encoder.read(self.sentences.value, sentences)
        self.items, self.tags = np.concatenate([self.items, words]), np.concatenate([self.tags, tags])
        self.projected = np.concatenate([self.projected, weights.places(words)])
        dependents, governors = weights.heading.prepared(np.concatenate([weights.special[ROOT_ROW:], words]))
        heads, first = [self.heads], 1
        for sentence, n in self._sized(sentences):
            own = np.r_[0, first : first + n]
            heads.append(heads_of(dependents[own], governors[own]).reshape(-1))
            self.first[sentence], self.square[sentence] = row, square
            first, row, square = first + n, row + n, square + (1 + n) ** 2
        self.heads = np.concatenate(heads)


@compiled
def _logits(logits, numbers, first, square, lengths, projected, heads, told, told_bias, readout, bias):  # type: ignore[no-untyped-def]
    """Of each row of numbers: s, t, u on top of the stack, b first in the buffer, and two behind it."""
    width = len(told_bias)
    hidden, sums = np.empty(width, np.float32), np.empty(told.shape[0], np.float32)
    for lane in range(len(numbers)):
        copy_row(hidden, told_bias)
        size = 1 + lengths[lane]
        p = heads[square[lane] : square[lane] + size * size].reshape(size, size)
        _sums(sums, p, numbers[lane])
        add_row(hidden, sums, told)
        for place in range(projected.shape[1] // width):
            number = numbers[lane, place]
            row = NONE_ROW if number < 0 else ROOT_ROW if number == 0 else first[lane] + number - 1
            for j in range(width):
                hidden[j] += projected[row, place * width + j]
        for j in range(width):
            hidden[j] = max(hidden[j], ZERO)
        copy_row(logits[lane], bias)
        add_row(logits[lane], hidden, readout)


@compiled
def _sums(sums, p, numbers):  # type: ignore[no-untyped-def]
    """`heading.sums_of` for one configuration."""
    s, b = max(numbers[0], 0), numbers[3]
    t, u = numbers[1], numbers[2]
    for i in range(len(sums)):
        sums[i] = ZERO
    sums[12] = _sum(p[s], 0, s)
    if t >= 0:
        sums[10], sums[11] = p[s, t], p[t, s]
    if b >= 0:
        _sums_with_buffer(sums, p, s, t, u, b)
    for i in range(len(sums)):
        sums[i] *= LOUDER


@compiled
def _sums_with_buffer(sums, p, s, t, u, b):  # type: ignore[no-untyped-def]
    """Those that the first word of the buffer has a part in."""
    sums[0], sums[1], sums[4] = p[s, b], p[b, s], _sum(p[b], b + 1, len(p))
    sums[2], sums[15] = _sum(p[s], b + 1, len(p)), _sum(p[b], 0, s)
    sums[13] = _sum(p[:, s], b + 1, len(p))
    sums[3] = sums[13] + p[b, s]
    if t >= 0:
        sums[5], sums[8], sums[14] = p[b, t], p[t, b], _sum(p[t], b, len(p))
    if u >= 0:
        sums[6], sums[7], sums[9] = p[b, u], _sum(p[b], 0, u), p[u, b]


@compiled
def _sum(row, first, last):  # type: ignore[no-untyped-def]
    total = ZERO
    for i in range(first, last):
        total += row[i]
    return total
