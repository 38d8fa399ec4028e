"""Sentences, parsed: whoever was trained to, what a file holds, and what speaks against it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO, TypeAlias

from aggrevated.errors import AggrevatedError, UsageError
from aggrevated.reports.pages import LOST
from aggrevated.text.conllu import BOM, IN_PIECES, LINES, MOST_BYTES, ConlluReader, TextReader

if TYPE_CHECKING:
    from aggrevated.text.reading import ParsedSentence, SentenceReader
    from aggrevated.text.sentence import Sentence

STANDARD_INPUT = Path("-")
TEXT, CONLLU = (".txt",), (".conllu", ".conll")

Sentences: TypeAlias = ConlluReader | TextReader


def load_sentence_reader(run_folder: Path | str) -> SentenceReader:
    """The parser of sentences that 'aggrevated train text' made in that folder; of several trials the first."""
    from aggrevated.runs.trials import runs_in
    from aggrevated.text.reading import SentenceReader
    from aggrevated.text.world import Text, read_by

    run = runs_in(Path(run_folder))[0]
    if not isinstance(run.config.world, Text):
        raise UsageError(f"{run.folder} is a run of {run.config.task.name}; give one of 'aggrevated train text'")
    return SentenceReader(read_by(run.policy))


def has_sentences(file: Path) -> bool:
    """Whether it is plain text or CoNLL-U by its ending, or standard input."""
    return file == STANDARD_INPUT or file.suffix.lower() in (*TEXT, *CONLLU)


def sentences_in(file: Path, standard_input: TextIO) -> Sentences:
    """The sentences of such a file, to be read one by one."""
    if file == STANDARD_INPUT:
        return sentences_of(standard_input.buffer)
    return ConlluReader(file, trees=False) if file.suffix.lower() in CONLLU else TextReader(file)


def sentences_of(stream: BinaryIO) -> Sentences:
    """Those of a stream: CoNLL-U if it begins with a comment or with a first word, and plain text otherwise."""
    pieces = iter(partial(stream.readline, MOST_BYTES + 1), b"")
    first, blank = next(pieces, b"").removeprefix(BOM), 0
    while first.endswith(b"\n") and not first.strip():
        first, blank = next(pieces, b""), blank + 1  # they are counted: lines have their numbers
    lines = chain(repeat(b"\n", blank), [first] if first else [], pieces)
    return ConlluReader(lines, trees=False) if first.startswith((b"#", b"1\t")) else TextReader(lines)


def parsed_by(reader: SentenceReader, sentences: Sentences) -> Iterator[ParsedSentence]:
    """Each sentence, parsed; if one of them cannot be read, those before it are given first."""
    failed: list[AggrevatedError] = []

    def whole() -> Iterator[Sentence]:
        try:
            yield from sentences
        except AggrevatedError as error:
            failed.append(error)

    yield from reader.parse(whole())
    for error in failed:
        raise error


def is_lost(parsed: ParsedSentence) -> bool:
    """Whether so many of its words are expected to be wrong that the tree says nothing."""
    return parsed.expected_loss > LOST * len(parsed.sentence)


def passed_over(sentences: Sentences) -> str:
    """What is in the file besides sentences, when it has been read: a line for people, or nothing."""
    found = [f"{what} ({sentences.counts[what]:,})" for what in LINES if sentences.counts[what]]
    return f"{sentences.name}: passed over {', '.join(found)}" if found else ""


def doubts_about(sentences: Sentences, count: int, lost: int) -> Iterator[str]:
    """What speaks against a file of so many sentences, when it has been read; each is a line for people."""
    name, pieces = sentences.name, sentences.counts[IN_PIECES]
    if sentences.notice:
        yield sentences.notice
    if pieces:
        yield f"{name}: {IN_PIECES} ({pieces:,})"
    if not count:
        yield f"{name}: there are no sentences in it"
    if lost:
        yield f"{name}: over {LOST:.0%} of the words are expected to be wrong in {lost:,} of {count:,} sentences"
