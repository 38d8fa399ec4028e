"""CoNLL-U and plain text are read exactly, or refused with a line's number; what is written is read as it was.

`python benchmarks/conllu_fuzz.py` is the long form of the mutations.
"""

import io
import os
import random
import re
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutations import mutated, outcome, outcome_as_text, same, tree

from aggrevated.errors import DataError, StorageError
from aggrevated.text.conllu import MOST_BYTES, MOST_WORDS, ConlluReader, TextReader, write_conllu
from aggrevated.text.sentence import NO_HEAD, Sentence

BLANK = "\t_" * 8
ENTRY = """# sent_id = w-1
# text = I can't = no
1\tI\ti\tPRON\tPRP\tCase=Nom\t2\tnsubj\t2:nsubj\t_
2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
2\tca\tcan\tAUX\tMD\t_\t0\troot\t_\t_
3\tn't\tnot\tPART\tRB\t_\t2\tadvmod:neg\t_\tA=1|B
3.1\tgo\tgo\tVERB\t_\t_\t_\t_\t2:dep\t_
"""
SECOND = "1\tNo\t_\tINTJ\tUH\t_\t0\troot\t_\t_\n"
FILE = f"{ENTRY}\n{SECOND}\n"


def reader(text: str | bytes, trees: bool = True) -> ConlluReader:
    return ConlluReader(io.BytesIO(text if isinstance(text, bytes) else text.encode()), trees, "file")


def words_in(text: str | bytes, trees: bool = True) -> list[tuple[str, ...]]:
    return [one.words for one in reader(text, trees)]


def rows(*heads: int | str) -> str:
    """A sentence with these heads, up to its blank line."""
    return "".join(f"{n}\tw{n}\t_\tX\tY\t_\t{head}\tdep\t_\t_\n" for n, head in enumerate(heads, 1)) + "\n"


# What is read.


def test_a_small_file_is_read_exactly(tmp_path: Path) -> None:
    path = tmp_path / "one.conllu"
    path.write_text(FILE)
    found = ConlluReader(path, trees=True)
    first, second = found
    assert first.words == ("I", "ca", "n't") and first.labels == ("nsubj", "root", "advmod:neg")
    assert first.heads.tolist() == [2, 0, 2] and first.heads.dtype == np.int64
    assert first.tags == ("PRON", "AUX", "PART") and first.fine_tags == ("PRP", "MD", "RB")
    assert first.lines == tuple(ENTRY.splitlines())
    assert second.words == ("No",) and second.lines == (SECOND.rstrip("\n"),)
    assert found.counts == {"ranges of words": 1, "empty nodes": 1} and found.notice == ""
    assert len(list(found)) == 2 and found.counts.total() == 2  # once more, and not counted twice


def test_without_trees_heads_are_nobody_s_business() -> None:
    text = FILE.replace("\t2\tnsubj", "\t_\t_").replace("\t0\troot", "\tx\troot")
    first, second = reader(text, trees=False)
    assert first.words == ("I", "ca", "n't") and first.heads.tolist() == [NO_HEAD] * 3
    assert first.labels == ("_",) * 3 and first.tags == ("PRON", "AUX", "PART")
    assert len(second) == 1


def lists(text: str) -> Iterable[bytes]:
    return text.encode().splitlines(keepends=True)


def generators(text: str) -> Iterator[bytes]:
    yield from lists(text)


@pytest.mark.parametrize("kind", [lists, generators, lambda text: io.BufferedReader(io.BytesIO(text.encode()))])
def test_lines_may_come_from_anywhere(kind: Any) -> None:
    assert [one.words for one in ConlluReader(kind(FILE), True)] == [("I", "ca", "n't"), ("No",)]
    assert [one.words for one in TextReader(kind("a b\n\nc\n"))] == [("a", "b"), ("c",)]


VARIANTS = [
    FILE.replace("\n", "\r\n"),
    "\ufeff" + FILE,
    "\ufeff" + FILE.replace("\n", "\r\n"),
    "\n\n" + FILE + "\n\n",
    FILE.replace("\n\n", "\n  \n"),
    FILE.removesuffix("\n"),
]


@pytest.mark.parametrize("text", VARIANTS)
def test_what_is_tolerated(text: str) -> None:
    found = reader(text)
    first, _ = found
    assert first.lines == tuple(ENTRY.splitlines()) and found.notice == ""


def test_lines_end_at_newlines_only() -> None:
    for sign in ("\u2028", "\x85", "\x0b", "\x0c", "\x1c", "\r"):
        assert words_in(SECOND.replace("No", f"N{sign}o")) == [(f"N{sign}o",)]


def test_a_word_may_have_spaces_and_an_empty_column_is_not_known() -> None:
    (found,) = reader(SECOND.replace("No", "10 000").replace("INTJ", "").replace("root", ""))
    assert found.words == ("10 000",) and found.tags == found.labels == ("_",) and found.fine_tags == ("UH",)


# What is left out.


def test_sentences_that_are_no_trees_are_left_out_and_counted() -> None:
    text = rows(0) + rows(0, 3, 2) + rows(2, 1) + rows(0, 0) + rows(0, 0, 1) + rows(*range(MOST_WORDS + 1)) + rows(2, 0)
    found = reader(text + "# newdoc\n\n")
    assert [len(one) for one in found] == [1, 2]
    trees = {"a cycle": 1, "no root": 1, "more than one root": 2}
    assert found.counts == trees | {"too long (over 500 words)": 1, "comments without words": 1}
    assert [len(one) for one in reader(rows(*range(MOST_WORDS)))] == [MOST_WORDS]


# A file that ends in the middle.

CUT = "file ends in the middle of a sentence: what is whole up to line {} is used"
TORN = "file ends without a newline in line {}: what is whole up to there is used"


def test_wherever_a_file_ends_it_is_read_up_to_there() -> None:
    data = FILE.replace("ca\t", "cä\t").encode()
    for end in range(len(data)):
        for trees in (False, True):
            found = reader(data[:end], trees)
            words = [one.words for one in found]
            lines = data[:end].split(b"\n")
            torn = lines[-1].removesuffix(b"\xc3")
            if torn:
                assert found.notice == TORN.format(len(lines))
            whole = [line for line in lines if line.count(b"\t") == 9 and line.partition(b"\t")[0].isdigit()]
            expected = [line.split(b"\t")[1].decode() for line in whole]
            if not trees:
                assert [word for sentence in words for word in sentence] == expected
            elif len(expected) in (1, 2):  # the root is not there yet, or "I" and its head alone
                in_a_word = torn.count(b"\t") < 9 and not torn.partition(b"\t")[0].strip(b"0123456789-.")
                kept = len(expected) == 2 and not (torn and in_a_word)  # else it is known that words are lacking
                assert words == ([("I", "cä")] if kept else [])
                assert (found.counts["cut off at the end of the file"] == 1) != kept


@pytest.mark.parametrize(
    ("text", "trees", "words", "notice"),
    [
        (rows(0) + "1\tw", True, 1, TORN.format(3)),
        (rows(0) + "1", False, 1, TORN.format(3)),
        (rows(0) + "1\tw\t_\t_\t_\t_\t0\troot\t_\t", True, 2, TORN.format(3)),
        (rows(0) + "# newd", True, 1, TORN.format(3)),
        (rows(0) + rows(2, 9).removesuffix("\n"), True, 1, CUT.format(4)),
        (rows(0) + rows(2, 9).removesuffix("\n"), False, 3, ""),
        (rows(0, 1).removesuffix("\n"), True, 2, ""),
        (f"1-2\tab{BLANK}\n" + rows(0).removesuffix("\n"), True, 1, CUT.format(2)),
        ("\ufeff", True, 0, ""),
        ("", True, 0, ""),
    ],
)
def test_what_is_said_of_the_end(text: str, trees: bool, words: int, notice: str) -> None:
    found = reader(text, trees)
    sentences = list(found)
    assert sum(map(len, sentences)) == words and found.notice == notice
    for one in sentences:  # what is written of it is whole
        (again,) = reader(write_conllu(one, one.heads, one.labels, [""] * len(one)), trees)
        assert same(one, again)


# What is refused.

NUMBER_THE_WORDS = r"number the words 1, 2, 3 and so on, and put a blank line between sentences"
FAULTS = [  # what is replaced in FILE, by what, the line and the sentence
    ("\tAUX\t", "\t", 5, r"has 9 columns and not 10 with tabs between them; give CoNLL-U"),
    ("\tAUX\t", "\tAUX\t_\t", 5, r"has 11 columns and not 10"),
    ("# sent", "sent", 1, r"has 1 column and not 10"),
    ("1\tNo", "2\tNo", 9, rf"has the ID '2' where 1 should follow; {NUMBER_THE_WORDS}"),
    ("\n\n", "\n", 8, r"has the ID '1' where 4 should follow"),
    ("3\tn't", "03\tn't", 6, r"has the ID '03' where 3 should follow"),
    ("3\tn't", "\tn't", 6, r"has the ID '' where 3 should follow"),
    ("3\tn't", "9" * 5_000 + "\tn't", 6, r"has the ID '9{37}\.\.\.' where 3 should follow"),
    ("3\tn't", "\x1b3\tn't", 6, r"has the ID '\\x1b3' where"),
    ("3\tn't", "٣\tn't", 6, r"has the ID '٣' where 3"),
    ("3.1\t", "2.1\t", 7, r"has the ID '2.1' where 4 should follow"),
    ("3.1\t", "3.2\t", 7, r"has the ID '3.2' where"),
    ("3.1\t", "4.1\t", 7, r"has the ID '4.1' where"),
    ("2-3\t", "3-3\t", 4, r"has the range 3-3 before word 2; let ranges begin with the word that follows them and"),
    ("2-3\t", "2-1\t", 4, r"has the range 2-1 before word 2"),
    ("2\tca\t", f"2-2\tx{BLANK}\n2\tca\t", 5, r"has the range 2-2 before word 2; .* not overlap"),
    ("2-3\t", "2-4\t", 4, r"has a range up to 4 in a sentence of 3 words; correct its end"),
    ("2-3\t", "2-9999999999\t", 4, r"has the ID '2-9999999999' where 2 should"),
    ("\tI\t", "\t\t", 3, r"has an empty FORM; write the word into its second column"),
    ("\tI\t", "\t  \t", 3, r"has an empty FORM"),
    ("\t2\tnsubj", "\tx\tnsubj", 3, r"has the HEAD 'x'; give the number of a word, or 0 for the root"),
    ("\t2\tnsubj", "\t_\tnsubj", 3, r"has the HEAD '_'; give"),
    ("\t2\tnsubj", "\t-1\tnsubj", 3, r"has the HEAD '-1'; give"),
    ("\t2\tnsubj", "\t٢\tnsubj", 3, r"has the HEAD '٢'; give"),
    ("\t2\tnsubj", "\t" + "9" * 5_000 + "\tnsubj", 3, r"has the HEAD '9{37}\.\.\.'; give"),
    ("\t2\tnsubj", "\t4\tnsubj", 3, r"has the HEAD 4 in a sentence of 3 words; correct it"),
    ("\t2\tnsubj", "\t1\tnsubj", 3, r"has itself as HEAD; give the number of another word, or 0 for the root"),
    ("ca\t", "c\0a\t", 5, r"holds a zero byte; give a CoNLL-U file, which is text"),
    ("ca\t", "x" * MOST_BYTES, 5, r"has over 100,000 bytes; give a CoNLL-U file, with a word a line"),
]


@pytest.mark.parametrize(("old", "new", "line", "sentence"), FAULTS)
def test_every_fault_has_its_line_and_its_sentence(old: str, new: str, line: int, sentence: str) -> None:
    assert old in FILE
    with pytest.raises(DataError, match=rf"^file: line \d+ {sentence}") as raised:
        list(reader(FILE.replace(old, new, 1)))
    message = str(raised.value)
    assert message.isprintable() and len(message) < 200
    found = re.match(r"file: line (\d+) ", message)
    assert found and int(found[1]) == line


@pytest.mark.parametrize("data", [b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\x1f\x8b\x08"])
def test_what_is_not_utf_8_is_refused(data: bytes) -> None:
    for trees in (True, False):
        with pytest.raises(DataError, match=r"^file: line 9 is not UTF-8; save the file as UTF-8 text"):
            list(reader(FILE.encode().replace(b"UH", data), trees))
    with pytest.raises(DataError, match=r"^file: line 2 is not UTF-8; save the file as UTF-8 text"):
        list(TextReader([b"one\n", data + b"\n"], "file"))


def test_a_sentence_that_is_too_long_to_be_parsed_is_refused() -> None:
    with pytest.raises(DataError, match=r"^file: line 503 is in a sentence of over 500 words; split it"):
        list(reader(rows(0) + rows(*range(600)), trees=False))
    assert words_in(rows(*range(500)), trees=False)


def test_a_range_without_words_is_refused() -> None:
    with pytest.raises(DataError, match=r"^file: line 3 has a range up to 2 in a sentence of 0 words; correct its end"):
        list(reader(rows(0) + f"1-2\tx{BLANK}\n\n"))


def test_comments_without_end_are_refused() -> None:
    with pytest.raises(
        DataError, match=r"line 68760 is in a sentence of over 4 MB; put a blank line between sentences"
    ):
        list(ConlluReader((b"#\n" for _ in range(10**9)), True))


def test_what_stands_before_a_fault_has_been_read_by_then() -> None:
    found = iter(reader(FILE + "x\n"))
    assert [next(found).words, next(found).words] == [("I", "ca", "n't"), ("No",)]
    with pytest.raises(DataError, match="line 11 has 1 column"):
        next(found)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for kind in (lambda path: ConlluReader(path, True), TextReader):
        with pytest.raises(StorageError, match=r"cannot use .*absent: No such file or directory; check the path"):
            list(kind(tmp_path / "absent"))
        with pytest.raises(DataError, match=r"is not a regular file; give the path of a file of sentences"):
            list(kind(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match=r"pipe is not a regular file"):
        list(ConlluReader(tmp_path / "pipe", True))


# What is written.


def test_a_parse_is_written_into_its_block() -> None:
    first, second = reader(FILE, trees=False)
    text = write_conllu(
        first, np.array([3, 3, 0]), ["a", "b:c", "root"], ["S=.5", "", "B=2|S=1"], ["# text = new", "# sure = 1"]
    )
    assert text == (
        "# sent_id = w-1\n# text = new\n# sure = 1\n"
        "1\tI\ti\tPRON\tPRP\tCase=Nom\t3\ta\t2:nsubj\tS=.5\n"
        "2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n"
        "2\tca\tcan\tAUX\tMD\t_\t3\tb:c\t_\t_\n"
        "3\tn't\tnot\tPART\tRB\t_\t0\troot\t_\tA=1|B=2|S=1\n"
        "3.1\tgo\tgo\tVERB\t_\t_\t_\t_\t2:dep\t_\n\n"
    )
    again = write_conllu(second, np.array([0]), ["root"], ["_"], ["# sure = 1"])
    assert again == "# sure = 1\n" + SECOND + "\n"


def test_writing_twice_changes_nothing_more() -> None:
    first, _ = reader(FILE)
    parse = first.heads, first.labels, ["S=1"] * 3, ["# sure = 1"]
    once = write_conllu(first, *parse)
    (again,) = reader(once)
    assert write_conllu(again, *parse) == once


def test_plain_words_get_a_block() -> None:
    text = write_conllu(Sentence.of(("A", "#")), np.array([NO_HEAD, 1]), ["_", "dep"], ["", "S=1"])
    assert text == "# text = A #\n1\tA\t_\t_\t_\t_\t_\t_\t_\t_\n2\t#\t_\t_\t_\t_\t1\tdep\t_\tS=1\n\n"
    (found,) = reader(text, trees=False)
    assert found.words == ("A", "#")
    huge = Sentence.of(("x" * 9_000,) * 20)  # its text would be a line that nobody could read
    (again,) = reader(write_conllu(huge, huge.heads, huge.labels, [""] * 20), trees=False)
    assert again.words == huge.words


signs = st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\0")
texts = st.text(signs, min_size=1, max_size=6)
forms = texts.filter(lambda text: text.strip(" "))


@st.composite
def blocks(draw: st.DrawFn) -> str:
    n = draw(st.integers(1, 6))
    lines = draw(st.lists(texts.map("#".__add__), max_size=3))
    for place, head in enumerate(tree(n, random.Random(draw(st.integers(0, 10**6)))), 1):
        if place == 1 and n > 1 and draw(st.booleans()):
            lines.append(f"1-{draw(st.integers(1, n))}\tx" + BLANK)
        columns = [str(place), draw(forms), *draw(st.tuples(*[texts] * 4)), str(head), *draw(st.tuples(*[texts] * 3))]
        lines.append("\t".join(columns))
        lines += [f"{place}.{empty}\tx" + BLANK for empty in range(1, draw(st.integers(0, 2)) + 1)]
    return "".join(line + "\n" for line in lines) + "\n"


@given(st.lists(blocks(), max_size=4))
def test_what_is_read_is_written_as_it_was(found: list[str]) -> None:
    text = "".join(found)
    sentences = list(reader(text))
    assert "".join(write_conllu(one, one.heads, one.labels, [""] * len(one)) for one in sentences) == text
    assert len(sentences) == len(found)


@given(st.lists(st.lists(forms.filter(lambda word: word.split() == [word]), min_size=1, max_size=5), max_size=4))
def test_plain_text_is_read_as_it_was(sentences: list[list[str]]) -> None:
    text = "".join(" ".join(words) + "\n" for words in sentences)
    found = list(TextReader([b"\n", *lists_of(text)]))
    assert [list(one.words) for one in found] == sentences
    for one in found:
        (again,) = reader(write_conllu(one, one.heads, one.labels, [""] * len(one)), trees=False)
        assert again.words == one.words


def lists_of(text: str) -> list[bytes]:
    return [line + b"\n" for line in text.encode().split(b"\n")[:-1]]


# Plain text.


def test_plain_text_is_a_sentence_a_line() -> None:
    found = TextReader(io.BytesIO("\ufeffThe  cat\tsat .\r\n\n   \nÜber\u00a0uns".encode()))
    assert [one.words for one in found] == [("The", "cat", "sat", "."), ("Über", "uns")]
    assert not found.counts and found.notice == ""
    assert next(iter(found.__class__([b"a b"]))).heads.tolist() == [NO_HEAD, NO_HEAD]


@pytest.mark.parametrize("count", [0, 1, 499, 500, 501, 1_000, 1_001, 40_000])
def test_a_long_line_is_read_in_pieces(count: int) -> None:
    words = [f"wörd{n}" for n in range(count)]
    found = TextReader(io.BytesIO(" ".join(words).encode() + b"\nend\n"))
    *pieces, end = (list(one.words) for one in found)
    assert [word for piece in pieces for word in piece] == words and end == ["end"]
    assert [len(piece) for piece in pieces] == [500] * (count // 500) + [count % 500] * (count % 500 > 0)
    assert found.counts == ({"lines of over 500 words, read in pieces": 1} if count > 500 else {})


def test_plain_text_that_is_none_is_refused() -> None:
    for word in ("x" * 10_001, "x" * 10_001 + "\nmore"):
        with pytest.raises(DataError, match=r"^file: line 2 has a word of over 10,000 letters; put spaces between"):
            list(TextReader(io.BytesIO(b"one\nand " + word.encode()), "file"))
    assert len(list(TextReader(io.BytesIO(b"x" * 10_000)))) == 1
    with pytest.raises(DataError, match=r"^file: line 3 holds a zero byte; give a file of text"):
        list(TextReader(io.BytesIO(b"one\n\nt\0wo"), "file"))


def test_text_that_ends_in_the_middle_of_a_letter() -> None:
    found = TextReader(io.BytesIO("one\ntwo thr\u00e9".encode()[:-1]), "file")
    assert [one.words for one in found] == [("one",), ("two",)]
    assert found.notice == "file ends in the middle of a letter in line 2: its word is left out"


# Memory and time.


class Endless(io.RawIOBase):
    """A file of `count` times the same bytes, that are never there all at once."""

    def __init__(self, piece: bytes, count: int) -> None:
        self.piece, self.left, self.rest = piece, count, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while self.left and len(self.rest) < len(buffer):
            self.rest += self.piece
            self.left -= 1
        data, self.rest = self.rest[: len(buffer)], self.rest[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


@pytest.mark.parametrize(
    ("piece", "count", "kind"),
    [
        (FILE.encode(), 10_000, lambda file: ConlluReader(file, True)),
        (b"word " * 100, 10_000, TextReader),  # a line of a million words
        (b"word\n", 100_000, TextReader),
    ],
)
def test_memory_does_not_grow_with_the_file(piece: bytes, count: int, kind: Any) -> None:
    tracemalloc.start()
    for _ in kind(io.BufferedReader(Endless(piece, count))):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize("piece", [b"x", b"1", b"\t", b"#"])
def test_a_line_without_end_is_refused_before_it_is_read(piece: bytes) -> None:
    file = Endless(piece * 1_000, 10**9)
    with pytest.raises(DataError, match=r"line 1 has over 100,000 bytes"):
        list(ConlluReader(io.BufferedReader(file), True))
    assert 10**9 - file.left < 1_000


def test_a_sentence_without_end_is_left_out_in_little_memory() -> None:
    tracemalloc.start()
    found = ConlluReader((b"%d\tw\t_\t_\t_\t_\t0\tx\t_\t_\n" % n for n in range(1, 200_001)), True)
    assert list(found) == [] and found.counts == {"too long (over 500 words)": 1}
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 << 20


def test_mutated_files_give_sentences_or_a_sentence_with_a_line() -> None:
    outcomes = set()
    for number in range(1_500):
        data = mutated(number, random.Random(number))
        began = time.process_time()
        outcomes |= {outcome(data, trees=True), outcome(data, trees=False), outcome_as_text(data)}
        assert time.process_time() - began < 1, number
    assert {"sentences", "sentences, and a notice", "nothing left"} < outcomes and len(outcomes) > 12
