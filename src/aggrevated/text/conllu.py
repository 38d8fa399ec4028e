"""CoNLL-U and plain text, read with suspicion and a sentence at a time; and a parse, written back into its block.

Whatever the bytes are, the answer is sentences or a `DataError` that names the file, the line and the remedy. Memory
does not grow with the file: lines, words and sentences have a limit each. A file that ends in the middle is read up to
there, and the reader's `notice` says so.
"""

from __future__ import annotations

import io
import re
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from aggrevated.arrays import Array
from aggrevated.errors import DataError
from aggrevated.files import in_short, plain_file, storage_errors
from aggrevated.text.projective import tree_fault
from aggrevated.text.sentence import NO_HEAD, UNKNOWN, Sentence

COLUMNS = 10
ID, FORM, UPOS, XPOS, HEAD, DEPREL, MISC = 0, 1, 3, 4, 6, 7, 9

# UD's English-EWT has 159 words in its longest sentence.
MOST_WORDS = 500  # of a sentence
MOST_LETTERS = 10_000  # of a word in plain text, so that the line that is written of it can be read
MOST_BYTES = 100_000  # of a line
MOST_SIZE = 4 << 20  # bytes of a sentence with its comments
LINE_SIZE = 60  # bytes that Python takes for a line, however short
CHUNK = 1 << 16  # bytes of plain text at once

# What the counts of a reader are of: lines, while the sentence is kept,
RANGES, EMPTY_NODES, NO_WORDS = LINES = "ranges of words", "empty nodes", "comments without words"
# sentences that are left out (those that are no tree have the names of `projective`),
TOO_LONG, CUT_OFF = f"too long (over {MOST_WORDS} words)", "cut off at the end of the file"
# and lines of plain text.
IN_PIECES = f"lines of over {MOST_WORDS} words, read in pieces"

BOM = b"\xef\xbb\xbf"
NUMBER = re.compile(r"[0-9]{1,9}")
RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
NOT_UTF_8 = "is not UTF-8; save the file as UTF-8 text (a packed file has to be unpacked)"

Source: TypeAlias = Path | Iterable[bytes]  # a path, an open binary file, or lines as such a file gives them


class ConlluReader:
    """The sentences of a CoNLL-U file, one by one; after the last, `counts` and `notice` are complete.

    With `trees`, HEAD must be right, and sentences that are no tree are left out; without, HEAD and DEPREL are ignored.
    """

    def __init__(self, source: Source, trees: bool, name: str = "standard input") -> None:
        self.source, self.trees = source, trees
        self.name = str(source) if isinstance(source, Path) else name
        self.counts: Counter[str] = Counter()  # of what was skipped, by reason
        self.notice = ""  # a line for people, if the file ended in the middle

    def __iter__(self) -> Iterator[Sentence]:
        self.counts, self.notice = Counter(), ""
        block, torn = _Block(self.name, self.trees), False
        for number, text, whole in _lines(self.source, self.name):
            if text.strip(" "):
                torn = not whole and self._is_torn(number, text)
                if not torn:
                    block.add(number, text)
            elif whole:
                yield from self._used(block, block.fault(closed=True))
                block = _Block(self.name, self.trees)
        lacks_words = torn and self.trees and bool(block.words)  # its tree is not the sentence's, even if it is one
        yield from self._used(block, CUT_OFF if lacks_words else block.fault(closed=False))

    def _is_torn(self, number: int, text: str) -> bool:
        """Whether the last line, which has no newline, is the mere beginning of a word's; the lack is noted."""
        self.notice = f"{self.name} ends without a newline in line {number}: what is whole up to there is used"
        return text.count("\t") < COLUMNS - 1 and not text.partition("\t")[0].strip("0123456789-.")

    def _used(self, block: _Block, fault: str | None) -> Iterator[Sentence]:
        """The sentence if it can be used; what cannot be is counted."""
        self.counts.update(block.skipped)
        if fault:
            self.counts[fault] += 1
        elif block.words:
            yield block.sentence()
        if block.is_cut and not self.notice:
            self.notice = (
                f"{self.name} ends in the middle of a sentence: what is whole up to line {block.number} is used"
            )


class _Block:
    """The lines of one sentence, as they come."""

    def __init__(self, name: str, trees: bool) -> None:
        self.name, self.trees = name, trees
        self.lines: list[str] = []
        self.rows: list[list[str]] = []  # the columns of each word
        self.heads: list[int] = []  # of each, NO_HEAD where nobody asks
        self.numbers: list[int] = []  # of their lines
        self.number = self.size = 0  # the number of the last line; the size of all
        self.words = self.empty_nodes = 0  # so far; since the last word
        self.last_range = 0, 0, 0  # (its last word, its place in `lines`, the number of its line)
        self.skipped: Counter[str] = Counter()
        self.is_cut = False

    def add(self, number: int, text: str) -> None:
        """Take one more line, or raise a `DataError`."""
        self.number = number
        if not text.startswith("#"):
            self._add_row(text.split("\t"))
        if self.words > MOST_WORDS:
            return  # nothing more is kept of a sentence that will be left out
        self.lines.append(text)
        self.size += len(text) + LINE_SIZE
        if self.size > MOST_SIZE:
            raise self._error(f"is in a sentence of over {MOST_SIZE >> 20} MB; put a blank line between sentences")

    def _add_row(self, row: list[str]) -> None:
        """Take the columns of a word, of a range of words, or of an empty node."""
        if len(row) != COLUMNS:
            columns = "1 column" if len(row) == 1 else f"{len(row)} columns"
            raise self._error(f"has {columns} and not {COLUMNS} with tabs between them; give CoNLL-U")
        if row[ID] == str(self.words + 1):
            self._add_word(row)
        elif row[ID] == f"{self.words}.{self.empty_nodes + 1}":
            self.empty_nodes += 1
            self.skipped[EMPTY_NODES] += 1
        elif found := RANGE.fullmatch(row[ID]):
            self._add_range(int(found[1]), int(found[2]))
        else:
            raise self._error(
                f"has the ID {_shown(row[ID])} where {self.words + 1} should follow; number the words 1, 2, 3 and so "
                "on, and put a blank line between sentences"
            )

    def _add_word(self, row: list[str]) -> None:
        self.words, self.empty_nodes = self.words + 1, 0
        if not row[FORM].strip(" "):
            raise self._error("has an empty FORM; write the word into its second column")
        if self.words <= MOST_WORDS:
            self.rows.append(row)
            self.heads.append(self._head(row[HEAD]) if self.trees else NO_HEAD)
            self.numbers.append(self.number)
        elif not self.trees:
            raise self._error(f"is in a sentence of over {MOST_WORDS} words; split it")

    def _add_range(self, first: int, last: int) -> None:
        if not self.last_range[0] < first == self.words + 1 <= last:
            raise self._error(
                f"has the range {first}-{last} before word {self.words + 1}; let ranges begin with the word that "
                "follows them and not overlap"
            )
        self.last_range = last, len(self.lines), self.number
        self.skipped[RANGES] += 1

    def _head(self, text: str) -> int:
        """The number in HEAD; whether there is such a word is seen at the end of the sentence."""
        if not NUMBER.fullmatch(text):
            raise self._error(f"has the HEAD {_shown(text)}; give the number of a word, or 0 for the root")
        if int(text) == self.words:
            raise self._error("has itself as HEAD; give the number of another word, or 0 for the root")
        return int(text)

    def fault(self, closed: bool) -> str | None:
        """Why the sentence is left out, if it is; whether a blank line has `closed` it or the end of the file."""
        if self.words > MOST_WORDS:
            return TOO_LONG
        if closed:
            self._expect_bounds()
        if not self.words:
            return NO_WORDS if self.lines else None
        if not closed:
            return self._fault_at_the_end()
        return tree_fault(np.array(self.heads)) if self.trees else None

    def _fault_at_the_end(self) -> str | None:
        """The same for the last one of a file, where what leads out of it may have been there once."""
        if self.last_range[0] > self.words:  # the range of words that are lost would not be valid
            del self.lines[self.last_range[1]]
            self.is_cut = True
        if self.trees and (max(self.heads) > self.words or tree_fault(np.array(self.heads))):
            self.is_cut = True
            return CUT_OFF
        return None

    def _expect_bounds(self) -> None:
        """Raise a `DataError` if a HEAD or a range leads out of the sentence."""
        last, _, number = self.last_range
        if last > self.words:
            raise self._error(f"has a range up to {last} in a sentence of {self.words} words; correct its end", number)
        for head, number in zip(self.heads, self.numbers, strict=True):
            if head > self.words:
                raise self._error(f"has the HEAD {head} in a sentence of {self.words} words; correct it", number)

    def sentence(self) -> Sentence:
        """What the lines say."""
        columns = list(zip(*self.rows, strict=True))
        labels = _known(columns[DEPREL]) if self.trees else (UNKNOWN,) * self.words
        tags, fine_tags = _known(columns[UPOS]), _known(columns[XPOS])
        return Sentence(columns[FORM], np.array(self.heads), labels, tags, fine_tags, tuple(self.lines))

    def _error(self, what: str, number: int | None = None) -> DataError:
        return _error(self.name, number or self.number, what)


class TextReader:
    """The sentences of plain text, a line each, their words between white space; `counts` and `notice` as above.

    A line may have any number of words: one with too many for a sentence is read in pieces.
    """

    def __init__(self, source: Source, name: str = "standard input") -> None:
        self.source = source
        self.name = str(source) if isinstance(source, Path) else name
        self.counts: Counter[str] = Counter()
        self.notice = ""

    def __iter__(self) -> Iterator[Sentence]:
        self.counts, self.notice = Counter(), ""
        words: list[str] = []
        sentences = 0  # of this line
        for found, ended in self._words():
            words += found
            pieces = [words[start : start + MOST_WORDS] for start in range(0, len(words), MOST_WORDS)]
            words = pieces.pop() if pieces and not ended else []
            sentences += len(pieces)
            yield from (Sentence.of(tuple(piece)) for piece in pieces)
            if ended:
                self.counts.update([IN_PIECES] if sentences > 1 else [])
                sentences = 0

    def _words(self) -> Iterator[tuple[list[str], bool]]:
        """(the next words, whether their line ends with them)."""
        decoder = getincrementaldecoder("utf-8-sig")()
        number, rest = 1, ""  # of a word that may go on
        for data in _pieces(self.source, self.name, CHUNK):
            try:
                text = rest + decoder.decode(data)
            except UnicodeDecodeError as error:
                raise _error(self.name, number, NOT_UTF_8) from error
            words, ended = self._checked(text, number), data.endswith(b"\n")
            rest = words.pop() if words and not ended and not text[-1].isspace() else ""
            yield words, ended
            number += ended
        if decoder.getstate()[0]:
            self.notice = f"{self.name} ends in the middle of a letter in line {number}: its word is left out"
            rest = ""
        yield [rest] if rest else [], True

    def _checked(self, text: str, number: int) -> list[str]:
        """The words of the text, none of them too long and none of them binary."""
        if "\0" in text:
            raise _error(self.name, number, "holds a zero byte; give a file of text")
        words = text.split()
        if max(map(len, words), default=0) > MOST_LETTERS:
            raise _error(self.name, number, f"has a word of over {MOST_LETTERS:,} letters; put spaces between words")
        return words


def write_conllu(
    sentence: Sentence, heads: Array, labels: Sequence[str], misc: Sequence[str], comments: Sequence[str] = (),
    tags: Sequence[str] = (),
) -> str:  # fmt: skip
    """The sentence's block, up to its blank line: with these heads [n] and labels, and more MISC and comments.

    `tags` are for words that have no UPOS yet.

    `misc` has attributes such as "A=1|B=2" for each word, or "". Like comments ("# key = value") they take the place of
    those that have the same key; everything else is as it was read.
    """
    parse = zip(heads.tolist(), labels, misc, tags or (UNKNOWN,) * len(sentence), strict=True)
    lines = _commented(sentence.lines or _made(sentence), comments)
    return "\n".join([_parsed(line, *next(parse)) if _is_word(line) else line for line in lines]) + "\n\n"


def _parsed(line: str, head: int, label: str, misc: str, tag: str) -> str:
    """The line of a word with another parse."""
    row = line.split("\t")
    row[UPOS] = tag if row[UPOS] in ("", UNKNOWN) else row[UPOS]
    row[HEAD], row[DEPREL] = UNKNOWN if head == NO_HEAD else str(head), label
    row[MISC] = _joined(row[MISC], misc)
    return "\t".join(row)


def _joined(old: str, new: str) -> str:
    """Both as one MISC; of attributes with the same key the new ones."""
    if not new:
        return old or UNKNOWN
    added = [part for part in new.split("|") if part not in ("", UNKNOWN)]
    keys = {part.partition("=")[0] for part in added}
    kept = [part for part in old.split("|") if part not in ("", UNKNOWN) and part.partition("=")[0] not in keys]
    return "|".join(kept + added) or UNKNOWN


def _commented(lines: Sequence[str], comments: Sequence[str]) -> list[str]:
    """The lines with these comments after those that stand above the words."""
    keys = {_key(comment) for comment in comments}
    kept = [line for line in lines if not line.startswith("#") or _key(line) not in keys]
    above = next((place for place, line in enumerate(kept) if not line.startswith("#")), len(kept))
    return [*kept[:above], *comments, *kept[above:]]


def _key(comment: str) -> str:
    return comment.removeprefix("#").partition("=")[0].strip()


def _made(sentence: Sentence) -> list[str]:
    """The lines of a sentence that does not come from CoNLL-U."""
    text = f"# text = {' '.join(sentence.words)}"
    facts = zip(sentence.words, sentence.tags, sentence.fine_tags, strict=True)
    rows = [f"{place}\t{word}\t_\t{tag}\t{fine}\t_\t_\t_\t_\t_" for place, (word, tag, fine) in enumerate(facts, 1)]
    return [text, *rows] if len(text.encode()) < MOST_BYTES else rows  # a line that is too long could not be read


def _is_word(line: str) -> bool:
    return line.partition("\t")[0].isdecimal()


def _known(column: tuple[str, ...]) -> tuple[str, ...]:
    """What the column says, `_` where it is empty."""
    return tuple(text or UNKNOWN for text in column) if "" in column else column


def _shown(text: str) -> str:
    return f"'{in_short(text, 40)}'"


def _error(name: str, number: int, what: str) -> DataError:
    return DataError(f"{name}: line {number} {what}")


# From bytes to lines.


def _lines(source: Source, name: str) -> Iterator[tuple[int, str, bool]]:
    """(its number, its text, whether it ends with a newline) of each line."""
    for number, data in enumerate(_pieces(source, name, MOST_BYTES + 1), 1):
        if len(data) > MOST_BYTES:
            raise _error(name, number, f"has over {MOST_BYTES:,} bytes; give a CoNLL-U file, with a word a line")
        whole = data.endswith(b"\n")
        text = _decoded(data.removeprefix(BOM) if number == 1 else data, whole, name, number)
        if "\0" in text:
            raise _error(name, number, "holds a zero byte; give a CoNLL-U file, which is text")
        yield number, text.removesuffix("\n").removesuffix("\r"), whole


def _decoded(data: bytes, whole: bool, name: str, number: int) -> str:
    """The text of a line; of a last one that ends in the middle of a letter, what is before it."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if whole or error.reason != "unexpected end of data":
            raise _error(name, number, NOT_UTF_8) from error
        return data[: error.start].decode()


def _pieces(source: Source, name: str, most: int) -> Iterator[bytes]:
    """Lines with their newlines; those of a file in pieces of at most so many bytes, so that none fills the memory."""
    with storage_errors(Path(name)):
        if isinstance(source, Path):
            with plain_file(source, "a file of sentences") as file:
                yield from iter(partial(file.readline, most), b"")
        elif isinstance(source, io.IOBase):
            yield from iter(partial(source.readline, most), b"")
        else:
            yield from source
