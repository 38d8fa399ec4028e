"""What a policy is told of a word: rows of tables for the word, its beginning, its end and its shape, and its letters.

Rows are hashes (CRC-32, the same on every machine): no vocabulary has to be kept, and no word is foreign. What words
have in common, their letters above all, is computed once for each different word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from zlib import crc32

import numpy as np

from aggrevated.arrays import Array
from aggrevated.parsing.learners.names import numbers_of
from aggrevated.text.sentence import Sentence

LONGEST = 20  # letters of a word: of longer ones the first ten and the last ten
LETTERS, SUFFIXES, PREFIXES, SHAPES = 512, 2048, 2048, 512  # rows of the tables
ASCII = 256  # letters with rows of their own; others share the rest
WORD, SUFFIX, PREFIX, SHAPE, SPELLED = 0, 1, 2, 3, slice(4, 4 + LONGEST)  # columns of what is known of a word
NO_LETTER = 0
SHAPELY = 6  # letters that a shape is told by


def row(text: str, rows: int) -> int:
    """Where a text stands in a table of so many rows."""
    return crc32(text.encode("utf-8", "surrogatepass")) % rows


def shape(word: str) -> str:
    """Xxx of Tom, dd of 42: what can be seen from afar."""
    return "".join("X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word[:SHAPELY])


def letter(c: str) -> int:
    """The row of a letter; 0 is none."""
    code = ord(c)
    return 1 + (code if code < ASCII - 1 else ASCII + crc32(c.encode("utf-8", "surrogatepass")) % (LETTERS - ASCII - 1))


def known_of(word: str) -> list[int]:
    """The columns of one word: its hash, of which a policy takes the row of its own table, and the rows of the rest."""
    low = word.lower()
    spelled = word if len(word) <= LONGEST else word[: LONGEST // 2] + word[-LONGEST // 2 :]
    letters = [letter(c) for c in spelled] + [NO_LETTER] * (LONGEST - len(spelled))
    hashed = crc32(low.encode("utf-8", "surrogatepass"))
    return [hashed, row(low[-3:], SUFFIXES), row(low[:3], PREFIXES), row(shape(word), SHAPES), *letters]


@dataclass(frozen=True)
class Shown:
    """Sentences as a policy is shown them, one after the other."""

    kinds: Array  # int64 [V, 4 + LONGEST]: of each different word
    words: Array  # int64 [Σn]: which of them each word is
    tags: Array  # int64 [Σn]: the class of each word's tag, UNKNOWN where it has none
    lengths: Array  # int64 [P]

    @cached_property
    def starts(self) -> Array:
        """[P]: the place of each sentence's first word."""
        first: Array = np.cumsum(self.lengths) - self.lengths
        return first

    def places(self, sentences: Array) -> Array:
        """[Σn]: where the words of these sentences [B] stand among all."""
        lengths = self.lengths[sentences]
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        places: Array = np.repeat(self.starts[sentences], lengths) + within
        return places


def shown(sentences: Sequence[Sentence], tags: Sequence[str] = ()) -> Shown:
    """These sentences, whose tags are of these classes."""
    number: dict[str, int] = {}
    words = [number.setdefault(word, len(number)) for sentence in sentences for word in sentence.words]
    kinds = np.array([known_of(word) for word in number], np.int64).reshape(len(number), SPELLED.stop)
    classes = numbers_of([tag for sentence in sentences for tag in sentence.tags], tags)
    return Shown(kinds, np.array(words, np.int64), classes, np.array([len(s) for s in sentences], np.int64))
