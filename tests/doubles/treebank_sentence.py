"""A sentence with its tree: what is read from a treebank, what is learned from, what is written."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array

UNKNOWN = "_"  # a tag or relation that nobody told, as CoNLL-U writes it
NO_HEAD = -1


@dataclass(frozen=True)
class Sentence:
    """Words 1 … n in order; 0 is ROOT."""

    words: tuple[str, ...]
    heads: Array  # int64 [n]: of each word, NO_HEAD where it is not known
    labels: tuple[str, ...]  # the relation of each to its head
    tags: tuple[str, ...]  # UPOS
    fine_tags: tuple[str, ...]  # XPOS
    lines: tuple[str, ...] = ()  # as they stood in a CoNLL-U file: comments, words, ranges and empty nodes

    def __len__(self) -> int:
        return len(self.words)

    @classmethod
    def of(cls, words: tuple[str, ...]) -> Sentence:
        """Of which nothing but the words is known."""
        unknown = (UNKNOWN,) * len(words)
        return cls(words, np.full(len(words), NO_HEAD), unknown, unknown, unknown)
