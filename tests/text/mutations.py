"""Small CoNLL-U files, ways to spoil them, and what becomes of a spoiled one: sentences, or a sentence with a line."""

import io
import random
import re
from collections.abc import Callable

from aggrevated.errors import DataError
from aggrevated.text.conllu import MOST_BYTES, ConlluReader, TextReader, write_conllu
from aggrevated.text.projective import tree_fault
from aggrevated.text.sentence import Sentence

WORDS = ("the", "cat", "Straße", "猫", "e\u0301", ".", "10 000", "a\u2028b", "𝄞", "_", "#", "x" * 300)
LARGEST = 3 * MOST_BYTES // 2
LABELS = ("nsubj", "obl:tmod", "punct", "root")
NUMBERS = (b"0", b"1", b"-1", b"01", b"2-1", b"1-9", b"3-99999999999", b"0.1", b"1.1", b"1.0", b"_", b"", b"9" * 5_000,
           b"1e3", b"0x1", b"+1", b"\xd9\xa3", b"2.5.1", b"99")  # fmt: skip
RUBBISH = (b"\0", b"\xff", b"\xef\xbb\xbf", b"\r", b"\t", b"\n", b"\n\n", b" ", b"#", b"\x1b[2J", b"\xc3", b"\x85",
           b"\xed\xa0\x80", b"\x1f\x8b\x08\0", b"PK\3\4", b"\t" * 50_000, b"y" * (MOST_BYTES + 1))  # fmt: skip


def tree(n: int, chance: random.Random) -> list[int]:
    """The heads of a random tree with one root: each word in turn gets one of those that came before it."""
    order = random.Random(chance.random()).sample(range(1, n + 1), n)
    heads = dict(zip(order, [0, *(chance.choice(order[:place]) for place in range(1, n))], strict=True))
    return [heads[word] for word in range(1, n + 1)]


def block(chance: random.Random) -> str:
    """A sentence of CoNLL-U, perhaps with comments, a range and empty nodes."""
    heads = tree(chance.choice([1, 2, 5, 12]), chance)
    lines = chance.choices(["# sent_id = 7", "# text = a = b", "#"], k=chance.choice([0, 1, 2]))
    lines += ["0.1\tnode" + "\t_" * 8] * (chance.random() < 0.1)
    ranged = chance.randrange(1, len(heads)) if len(heads) > 1 and chance.random() < 0.3 else 0
    for place, head in enumerate(heads, 1):
        lines += [f"{place}-{place + 1}\tcannot" + "\t_" * 8] * (place == ranged)
        misc = chance.choice(["_", "SpaceAfter=No", "A=1|B=2"])
        lines.append(f"{place}\t{chance.choice(WORDS)}\t_\tX\tY\t_\t{head}\t{chance.choice(LABELS)}\t_\t{misc}")
        lines += [f"{place}.1\tnode" + "\t_" * 8] * (chance.random() < 0.05)
    return "\n".join(lines) + "\n\n"


def honest(chance: random.Random) -> bytes:
    """A file that is as it should be."""
    return "".join(block(chance) for _ in range(chance.choice([1, 2, 4]))).encode()


def bits(data: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 8, 64])):
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def deletion(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + data[start + chance.choice([1, 1, 2, 10, 100]) :]


def truncation(data: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(data))
    return chance.choice([data[:place], data[:place], data[place:]])


def swap(data: bytes, chance: random.Random) -> bytes:
    """Two lines in each other's place."""
    lines = data.splitlines(keepends=True)
    one, other = chance.choices(range(len(lines)), k=2)
    lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def repetition(data: bytes, chance: random.Random) -> bytes:
    """A line, or all of them, many times."""
    lines = data.splitlines(keepends=True)
    start = chance.randrange(len(lines))
    times = chance.choice([2, 2, 2, 3, 3, 3, 20, 600])
    if chance.random() < 0.2:
        return data * min(times, 5)
    return b"".join([*lines[:start], lines[start] * times, *lines[start + 1 :]])


def length(data: bytes, chance: random.Random) -> bytes:
    """One more sentence; at times one of too many words, or of just not too many."""
    if chance.random() < 0.8:
        return data + block(chance).encode()
    count = chance.choice([499, 500, 501, 3_000])
    words = b"".join(b"%d\tw\t_\t_\t_\t_\t%d\tx\t_\t_\n" % (n, n - 1) for n in range(1, count + 1))
    return data + words + chance.choice([b"", b"\n"])


def columns(data: bytes, chance: random.Random) -> bytes:
    """Columns taken away, doubled or exchanged in a line."""
    lines = data.split(b"\n")
    place = chance.randrange(len(lines))
    row = lines[place].split(b"\t")
    one, other = chance.choices(range(len(row)), k=2)
    row[one] = chance.choice([row[other], b"", row[one] + b"\t" + row[one]])
    lines[place] = b"\t".join(row[:one] + row[one + 1 :] if chance.random() < 0.4 else row)
    return b"\n".join(lines)


def numbers(data: bytes, chance: random.Random) -> bytes:
    """IDs and heads that are none."""
    for _ in range(chance.choice([1, 1, 5])):
        found = [match.span() for match in re.finditer(rb"(?<![^\t\n])\d+(?=\t)", data)] or [(0, 0)]
        start, end = chance.choice(found)
        data = data[:start] + chance.choice(NUMBERS) + data[end:]
    return data


def rubbish(data: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(data))
    return data[:place] + chance.choice(RUBBISH) + data[place:]


def ends(data: bytes, chance: random.Random) -> bytes:
    """Other ends of lines, a mark at the start, spaces in blank lines."""
    return chance.choice([
        data.replace(b"\n", b"\r\n"), data.replace(b"\n", b"\r"), b"\xef\xbb\xbf" + data, data.rstrip(b"\n"),
        data.replace(b"\n\n", b"\n  \n"), data.replace(b"\n\n", b"\n"), data.decode("utf-8", "ignore").encode("utf-16"),
    ])  # fmt: skip


MUTATORS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    bits, deletion, truncation, swap, repetition, length, columns, numbers, rubbish, ends,
)  # fmt: skip


def mutated(number: int, chance: random.Random) -> bytes:
    """An honest file, spoiled once in the way of that number, and often in others, too."""
    data = honest(chance)
    for mutate in (MUTATORS[number % len(MUTATORS)], *chance.choices(MUTATORS, k=chance.choice([0, 0, 1, 3]))):
        data = mutate(data or b"\n", chance)[:LARGEST]
    return data


def same(one: Sentence, other: Sentence) -> bool:
    """Whether they are equal in all but their lines."""
    facts = ("words", "labels", "tags", "fine_tags")
    return all(getattr(one, fact) == getattr(other, fact) for fact in facts) and (one.heads == other.heads).all()


def written(sentences: list[Sentence]) -> bytes:
    """A file of them, with the parses that they have."""
    return "".join(write_conllu(one, one.heads, one.labels, [""] * len(one)) for one in sentences).encode()


def outcome(data: bytes, trees: bool) -> str:
    """What becomes of a file: "sentences", or why it is refused. Anything else is an `AssertionError`."""
    reader = ConlluReader(io.BytesIO(data), trees, "file")
    try:
        found = list(reader)
    except DataError as error:
        return refusal(error)
    assert not trees or all(tree_fault(one.heads) is None for one in found)
    again = list(ConlluReader(io.BytesIO(written(found)), trees))
    assert len(again) == len(found) and all(map(same, again, found)), "what is written is read as it was"
    return "sentences, and a notice" if reader.notice else "sentences" if found else "nothing left"


def outcome_as_text(data: bytes) -> str:
    """The same for plain text."""
    try:
        found = list(TextReader(io.BytesIO(data), "file"))
    except DataError as error:
        return refusal(error)
    again = list(ConlluReader(io.BytesIO(written(found)), False))
    assert [one.words for one in again] == [one.words for one in found], "what is written is read as it was"
    return "sentences" if found else "nothing left"


def refusal(error: DataError) -> str:
    """What stands against the file in general; it must be said in one sentence with a line and a remedy."""
    message = str(error)
    assert re.match(r"file: line [1-9]\d* ", message) and ";" in message, message
    assert message.isprintable() and len(message) < 300, message
    return "refused: " + re.sub(r"'.*?'|\d[\d,-]*", "…", message.removeprefix("file: ").partition(";")[0])
