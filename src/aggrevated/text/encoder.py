"""What a sentence is to a policy: of each word its spelling, then what stands before and after it, and its tag.

Two recurrent layers read the sentence both ways. From the first the words' tags are told, and the second is told what
these are likely to be. Words of several sentences stand one after the other, [Σn, …].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from aggrevated.arrays import Array
from aggrevated.text.recurrence import BothWays
from aggrevated.text.words import (
    LETTERS,
    LONGEST,
    NO_LETTER,
    PREFIX,
    PREFIXES,
    SHAPE,
    SHAPES,
    SPELLED,
    SUFFIX,
    SUFFIXES,
    WORD,
    Shown,
)

LETTER, SPELLING, OF_SUFFIX, OF_PREFIX, OF_SHAPE, OF_TAG = 32, 128, 24, 16, 8, 32  # widths
WINDOW = 5  # letters that are looked at together
RARE = 0.25  # a word that was met c times is taken for an unknown one with probability RARE / (RARE + c)
UNMET = 0  # the row of words that were never met


class Read(NamedTuple):
    """What was read of sentences."""

    words: Tensor  # [Σn, 2 hidden]
    tags: Tensor  # [Σn, C]: logits of the classes of tags, all inventories one after the other
    lengths: Tensor  # int64 [B]


class Encoder(nn.Module):
    """From sentences to vectors of their words."""

    counts: Tensor  # float32 [rows]: how often the words of a row were met in training

    def __init__(
        self, rows: int, word: int, hidden: int, tags: tuple[int, ...], sees_tags: bool, dropout: float
    ) -> None:
        """`tags` are the sizes of the inventories of tags, of which the first is seen, if that is asked for."""
        super().__init__()
        self.sees_tags, self.inventories = sees_tags, tags
        self.word = nn.Embedding(1 + rows, word)
        self.suffix, self.prefix = nn.Embedding(SUFFIXES, OF_SUFFIX), nn.Embedding(PREFIXES, OF_PREFIX)
        self.shape, self.letter = nn.Embedding(SHAPES, OF_SHAPE), nn.Embedding(LETTERS, LETTER)
        self.spelling = nn.Linear(WINDOW * LETTER, SPELLING)
        self.given = nn.Embedding(1 + tags[0], OF_TAG) if sees_tags else None
        for table in (self.word, self.suffix, self.prefix, self.shape):
            nn.init.normal_(table.weight, std=0.1)
        width = word + OF_SUFFIX + OF_PREFIX + OF_SHAPE + SPELLING + OF_TAG * sees_tags
        self.lower = BothWays(width, hidden)
        self.tagger = nn.Linear(2 * hidden, sum(tags))
        self.likely = nn.Parameter(torch.randn(sum(tags), OF_TAG))
        self.upper = BothWays(2 * hidden + OF_TAG * len(tags), hidden)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("counts", torch.zeros(rows))
        with torch.no_grad():
            self.word.weight[UNMET] = 0.0
            self.letter.weight[NO_LETTER] = 0.0

    def meet(self, shown: Shown, places: Array) -> None:
        """Count the words at these places [n], which are to be learned from."""
        rows = torch.from_numpy(shown.kinds[:, WORD][shown.words[places]]) % len(self.counts)
        self.counts = torch.bincount(rows, minlength=len(self.counts)).float()

    def forward(self, shown: Shown, sentences: Array) -> Read:
        """Of these sentences [B]."""
        places, lengths = shown.places(sentences), shown.lengths[sentences]
        kinds, which = np.unique(shown.words[places], return_inverse=True)
        table, number = torch.from_numpy(shown.kinds[kinds]), torch.from_numpy(which)
        x = torch.cat([self.met(table[:, WORD][number] % len(self.counts)), self.spelled(table)[number]], dim=1)
        if self.given is not None:
            x = torch.cat([x, self.given(1 + torch.from_numpy(shown.tags[places]))], dim=1)
        lower = self.dropped(self.lower(self.dropped(x, lengths), lengths), lengths)
        tags = self.tagger(lower)
        upper = self.upper(torch.cat([lower, self.tag_vectors(tags)], dim=1), lengths)
        return Read(self.dropped(upper, lengths), tags, torch.from_numpy(lengths))

    def met(self, rows: Tensor) -> Tensor:
        """The vectors of words by their rows; that of the unmet for those that are, and at times for rare ones."""
        count = self.counts[rows]
        unmet = count == 0
        if self.training and self.dropout.p:
            unmet = unmet | (torch.rand(rows.shape) < RARE / (RARE + count))
        found: Tensor = self.word(torch.where(unmet, UNMET, 1 + rows))
        return found

    def spelled(self, kinds: Tensor) -> Tensor:
        """[V, W]: what beginning, end, shape and letters tell of each of the different words."""
        letters = self.letter(kinds[:, SPELLED])
        around = nn.functional.pad(letters, (0, 0, WINDOW // 2, WINDOW // 2))
        windows = torch.cat([around[:, first : first + LONGEST] for first in range(WINDOW)], dim=2)
        written = (kinds[:, SPELLED] != NO_LETTER)[:, :, None]
        spelling = (self.spelling(windows).relu() * written).amax(dim=1)
        parts = self.suffix(kinds[:, SUFFIX]), self.prefix(kinds[:, PREFIX]), self.shape(kinds[:, SHAPE]), spelling
        return torch.cat(parts, dim=1)

    def tag_vectors(self, tags: Tensor) -> Tensor:
        """[Σn, inventories * OF_TAG]: of the tags that each word is likely to have."""
        logits, vectors = (torch.split(x, list(self.inventories), dim) for x, dim in ((tags, 1), (self.likely, 0)))
        return torch.cat([one.softmax(1) @ own for one, own in zip(logits, vectors, strict=True)], dim=1)

    def dropped(self, x: Tensor, lengths: Array) -> Tensor:
        """While it learns, without a share of the numbers that stand for words, the same all along a sentence."""
        if not (self.training and self.dropout.p):
            return x
        mask: Tensor = self.dropout(torch.ones(len(lengths), x.shape[1]))
        return x * mask.repeat_interleave(torch.from_numpy(lengths), dim=0)
