"""`aggrevated parse` of text: sentences are printed as they are parsed, some hundred at a time."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aggrevated.cli.drawings import drawings_of
from aggrevated.cli.output import note, print_facts
from aggrevated.cli.progress import Progress
from aggrevated.cli.streams import has_left
from aggrevated.errors import DataError, UsageError
from aggrevated.files import storage_errors
from aggrevated.reports.sentences import (
    STANDARD_INPUT,
    Sentences,
    doubts_about,
    has_sentences,
    is_lost,
    load_sentence_reader,
    parsed_by,
    passed_over,
    sentences_in,
)

if TYPE_CHECKING:
    from aggrevated.text.reading import ParsedSentence

MOST_DRAWN = 20  # sentences


@dataclass(frozen=True)
class SentenceFiles:
    """Files of sentences, and what is wanted of them."""

    files: Sequence[Path]
    draw: bool
    out: Path | None
    strict: bool
    json: bool

    def parse(self, policy: Path | None) -> None:
        """Print all sentences; in the end, say what speaks against them."""
        refuse_others(self.files)
        if policy is None:
            remedy = "train one with 'aggrevated train text' and give its folder as --policy"
            raise UsageError(f"no parser of text comes with the package; {remedy}")
        reader, done, doubtful = load_sentence_reader(policy), 0, list[str]()
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # as CoNLL-U and JSON are everywhere
        for file in self.files:
            sentences = sentences_in(file, sys.stdin)
            count, lost = self._print(counted(parsed_by(reader, sentences), sentences.name), file, done)
            done += count
            if has_left(sys.stdout):
                return
            doubtful += [sentences.name] if told(sentences, count, lost) else []
        if self._draws and done:
            which = f"the first {MOST_DRAWN} of {done:,} sentences" if done > MOST_DRAWN else "all sentences"
            note(f"drawings of {which}, from {self._drawings(self.files[0], 1)['svg']} on")
        if self.strict and doubtful:
            raise DataError(f"there are doubts about {', '.join(doubtful)}; look at these, or leave --strict out")

    @property
    def _draws(self) -> bool:
        return self.draw or self.out is not None

    def _print(self, parses: Iterable[ParsedSentence], file: Path, before: int) -> tuple[int, int]:
        """(how many sentences of the file were printed, how many of these are lost); `before` it there were others."""
        count = lost = 0
        for count, parsed in enumerate(parses, 1):
            is_drawn = self._draws and before + count <= MOST_DRAWN
            if has_left(sys.stdout) and not is_drawn:
                break
            self._show(parsed, file, self._drawings(file, count) if is_drawn else {})
            lost += is_lost(parsed)
        return count, lost

    def _show(self, parsed: ParsedSentence, file: Path, drawings: dict[str, str]) -> None:
        """Print one sentence, and draw it."""
        if self.json:
            print_facts({"file": str(file)} | parsed.facts() | drawings, as_json=True)
        else:
            sys.stdout.write(parsed.conllu())
        sys.stdout.flush()
        if drawings:
            from aggrevated.plots.sentence_tree import draw_sentence

            draw_sentence(parsed, Path(drawings["svg"]).with_suffix(""))

    def _drawings(self, file: Path, number: int) -> dict[str, str]:
        """Those of a sentence of the file, by their endings; the first has the file's name alone."""
        name = Path("standard-input") if file == STANDARD_INPUT else file
        return drawings_of(name, self.out, len(self.files) == 1, f"-{number}" if number > 1 else "")


def refuse_others(files: Sequence[Path]) -> None:
    """A `UsageError` if there are pages among the files; what is not there is told before anything is parsed."""
    for file in files:
        if not has_sentences(file):
            raise UsageError(f"{file} is no file of sentences (.txt, .conllu or -), as others are; parse it separately")
        if file != STANDARD_INPUT:
            with storage_errors(file):
                file.stat()


def counted(parses: Iterable[ParsedSentence], name: str) -> Iterator[ParsedSentence]:
    """The same; how many they are so far is said from time to time, unless they are on a terminal themselves."""
    if sys.stdout.isatty():
        yield from parses
        return
    with Progress(f"sentences of {name}", None) as progress:
        words = 0
        for done, parsed in enumerate(parses, 1):
            yield parsed
            words += len(parsed.sentence)
            progress.at(done, f"{words:,} words")


def told(sentences: Sentences, count: int, lost: int) -> bool:
    """Say what there is to know of a file that has been read; whether it is a doubt."""
    doubts = list(doubts_about(sentences, count, lost))
    for line in filter(None, [passed_over(sentences), *doubts]):
        note(line)
    return bool(doubts)
