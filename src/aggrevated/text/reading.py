"""A parser of sentences: words in, and of each sentence the tree, relations, tags and how much is expected to be wrong.

Sentences come and go one by one, in their order; some thousand words at a time are parsed together. Heads do not
depend on what is parsed beside them; the last bits of confidences may.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from aggrevated.arrays import Array
from aggrevated.files import Facts
from aggrevated.machine import one_thread
from aggrevated.text.acting import Weights
from aggrevated.text.conllu import TextReader, write_conllu
from aggrevated.text.library import corpus_of, refuse_untagged
from aggrevated.text.parses import Parsed, parsed
from aggrevated.text.policy import SentencePolicy
from aggrevated.text.sentence import UNKNOWN, Sentence
from aggrevated.text.words import shown

WORDS, SENTENCES = 6_000, 600  # that are waited for, at most, before they are parsed together


@dataclass(frozen=True)
class ParsedSentence:
    """A sentence, and what was made of it. Word i of n has number i + 1; 0 is ROOT."""

    sentence: Sentence
    heads: Array  # int [n]
    labels: tuple[str, ...]  # of the relations to them
    tags: tuple[str, ...]
    head_right: Array  # [n]: how likely each head is right
    arc_right: Array  # [n]: how likely head and relation are right
    wrong_heads: float  # how many heads are expected to be wrong: the expected cost of all transitions together

    @property
    def expected_loss(self) -> float:
        """How many words are expected to have a wrong head or relation."""
        return float((1 - self.arc_right).sum())

    def conllu(self) -> str:
        """As a block of CoNLL-U: MISC has the expected loss of each arc, a comment that of the sentence."""
        misc = [f"ExpectedLoss={1 - right:.3f}" for right in self.arc_right]
        comments = [f"# expected_loss = {self.expected_loss:.3f}", f"# expected_wrong_heads = {self.wrong_heads:.3f}"]
        return write_conllu(self.sentence, self.heads, self.labels, misc, comments, self.tags)

    def facts(self) -> Facts:
        """All of it, for JSON."""
        columns = zip(
            self.sentence.words, self.tags, self.heads, self.labels, self.head_right, self.arc_right, strict=True
        )
        return {
            "text": " ".join(self.sentence.words),
            "expected_loss": round(self.expected_loss, 4),
            "expected_wrong_heads": round(self.wrong_heads, 4),
            "words": [
                {
                    "number": number,
                    "word": word,
                    "tag": tag,
                    "head": int(head),
                    "label": label,
                    "head_confidence": round(float(sure), 4),
                    "arc_confidence": round(float(both), 4),
                }
                for number, (word, tag, head, label, sure, both) in enumerate(columns, 1)
            ],
        }


@dataclass(frozen=True)
class SentenceReader:
    """A policy that reads sentences."""

    policy: SentencePolicy

    @cached_property
    def weights(self) -> Weights:
        """As the policy has them; it is not to learn any more."""
        return Weights.copy_of(self.policy)

    def parse(self, sentences: Iterable[Sentence]) -> Iterator[ParsedSentence]:
        """Of each sentence, in their order; gold heads that they may have are not looked at."""
        waiting = iter(sentences)
        while some := list(until_enough(waiting)):
            yield from self.read(some)

    def parse_text(self, text: str) -> list[ParsedSentence]:
        """Of each line of a text, whose words stand between white space."""
        return list(self.parse(TextReader(io.BytesIO(text.encode("utf-8", "replace")), "the text")))

    def read(self, sentences: Sequence[Sentence]) -> list[ParsedSentence]:
        """The same of sentences that all go at once."""
        if not sentences:
            return []
        refuse_untagged(self.policy, sentences)
        found: dict[int, ParsedSentence] = {}
        with one_thread():
            self.policy.with_sentences(shown(sentences, self.policy.tag_names))
            corpus = corpus_of([Sentence.of(sentence.words) for sentence in sentences])
            for said, _, _ in parsed(self.policy, corpus, np.arange(len(sentences)), self.weights):
                found |= dict(self._each(said, sentences))
        return [found[place] for place in range(len(sentences))]

    def _each(self, said: Parsed, sentences: Sequence[Sentence]) -> Iterator[tuple[int, ParsedSentence]]:
        labels, tags = self.policy.label_names, self.policy.tag_names
        ends = np.cumsum(said.lengths)
        for place, (number, n, end) in enumerate(zip(said.sentences.tolist(), said.lengths, ends, strict=True)):
            own = slice(end - n, end)
            yield number, ParsedSentence(
                sentences[number], said.heads[own], named(said.labels[own], labels), named(said.tags[own], tags),
                said.head_right[own], said.arc_right[own], float(said.wrong_heads[place]),
            )  # fmt: skip


def named(classes: Array, names: Sequence[str]) -> tuple[str, ...]:
    """The names of these classes; UNKNOWN for a class that has none, as where nothing is named."""
    return tuple(names[number] if number < len(names) else UNKNOWN for number in classes)


def until_enough(sentences: Iterator[Sentence]) -> Iterator[Sentence]:
    """So many of them as are parsed together."""
    words = 0
    for sentence in islice(sentences, SENTENCES):
        yield sentence
        words += len(sentence)
        if words >= WORDS:
            return
