"""A treebank: all sentences of a CoNLL-U file that have a tree, and what people should know of the others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from aggrevated.errors import DataError
from aggrevated.files import Facts, storage_errors
from aggrevated.text.conllu import LINES, ConlluReader
from aggrevated.text.projective import crossed, is_projective
from aggrevated.text.sentence import Sentence

Stamp: TypeAlias = tuple[int, int]  # when a file was changed, its size


@dataclass(frozen=True)
class Treebank:
    """The sentences of a file in its order, each a tree, and what was left out of it."""

    path: Path
    sentences: tuple[Sentence, ...]
    counts: Counter[str]  # of what was skipped, by reason
    cut: str  # where the file ended, if that was in the middle
    not_projective: int  # sentences
    crossed_arcs: int  # of these, those that are not projective

    def __len__(self) -> int:
        return len(self.sentences)

    @property
    def left_out(self) -> Counter[str]:
        """How many sentences were left out for each reason."""
        return Counter({reason: count for reason, count in self.counts.items() if reason not in LINES})

    def facts(self) -> Facts:
        """What is not in its sentences, for JSON: those left out, by reason, and where it ended; nothing if all is."""
        left_out = {"left_out": dict(self.left_out)} if self.left_out else {}
        return left_out | ({"ended": self.cut} if self.cut else {})

    @property
    def notice(self) -> str:
        """A line for people, empty where there is nothing to know."""
        parts = [part for part in (self._left_out(), self._not_projective(), self.cut) if part]
        return f"{self.path.name}: {'; '.join(parts)}" if parts else ""

    def _left_out(self) -> str:
        total = self.left_out.total()
        return f"{total:,} sentence{'s' * (total != 1)} left out: {_listed(self.left_out)}" if total else ""

    def _not_projective(self) -> str:
        if not self.not_projective:
            return ""
        share = f"{self.not_projective:,} of {len(self):,} trees"
        return f"{share} are not projective: learned from as lifted, scored against their true heads"


def load(path: Path) -> Treebank:
    """The treebank of a CoNLL-U file; one in which no sentence can be used is a `DataError`."""
    return _read(path, stamp(path))


def stamp(path: Path) -> Stamp:
    """What changes when a file does."""
    with storage_errors(path):
        facts = path.stat()
    return facts.st_mtime_ns, facts.st_size


@lru_cache(maxsize=4)  # people are told what is left out before the sentences are used
def _read(path: Path, stamp: Stamp) -> Treebank:
    """The same of the file as it was with that stamp."""
    reader = ConlluReader(path, trees=True)
    sentences = tuple(reader)
    if not sentences:
        why = _listed(reader.counts) or "it has no words"
        raise DataError(f"{path} has no sentence that can be used ({why}); give a CoNLL-U file with HEAD and DEPREL")
    across = [int(crossed(one.heads).sum()) for one in sentences if not is_projective(one.heads)]
    cut = reader.notice.replace(f"{path} ", "it ", 1)
    return Treebank(path, sentences, reader.counts, cut, len(across), sum(across))


def _listed(counts: Counter[str]) -> str:
    """The reasons, most frequent first, with their counts."""
    return ", ".join(f"{reason} ({count:,})" for reason, count in counts.most_common())
