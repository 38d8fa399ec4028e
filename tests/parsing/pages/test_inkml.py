"""InkML is read exactly, or refused with one sentence, for any bytes.

`AGGREVATED_MUTATIONS=20000 python -m pytest -n 0 -s tests/parsing/pages/test_inkml.py` is the long form.
"""

import os
import random
import re
import resource
import sys
import tarfile
import time
import tracemalloc
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from aggrevated.core.errors import AggrevatedError, DataError, StorageError, UsageError
from aggrevated.parsing.pages import crohme, inkml
from aggrevated.parsing.pages.inkml import Group, Node, read_inkml

MUTATIONS = int(os.environ.get("AGGREVATED_MUTATIONS", "300"))
ARCHIVE = Path(__file__).parents[4] / "shared/data/crohme/crohme_algebra.tar.xz"

EQUATION = """<?xml version="1.0" encoding="utf-8"?>
<ink xmlns="http://www.w3.org/2003/InkML">
<annotation type="UI">one</annotation>
<annotation type="writer"> w7 </annotation>
<traceFormat><channel name="X" type="decimal"/><channel name="Y" type="decimal"/></traceFormat>
<annotationXML type="truth" encoding="Content-MathML">
  <math xmlns="http://www.w3.org/1998/Math/MathML">
    <mrow><mi xml:id="x_1">x</mi><mrow><mo xml:id="=_1">=</mo><mn xml:id="3_1">3</mn></mrow></mrow>
  </math>
</annotationXML>
<trace id="0">0 0, 10.5 10</trace>
<trace id="1">0 10, 10 -1e1</trace>
<trace id="2">20 3, 30 3</trace>
<trace id="3">20 7, 30 7</trace>
<trace id="4">
40 0, 45 2,
40 5, 45 8, .5e2 10
</trace>
<trace id="5">99 99</trace>
<traceGroup xml:id="A">
  <annotation type="truth">Segmentation</annotation>
  <traceGroup xml:id="B"><annotation type="truth">x</annotation>
    <traceView traceDataRef="0"/><traceView traceDataRef="1"/><annotationXML href="x_1"/></traceGroup>
  <traceGroup xml:id="C"><annotation type="truth">=</annotation>
    <traceView traceDataRef="#2"/><traceView traceDataRef="3"/><annotationXML href="=_1"/></traceGroup>
  <traceGroup xml:id="D"><annotation type="truth">3</annotation>
    <traceView traceDataRef="4"/><annotationXML href="3_1"/></traceGroup>
</traceGroup>
</ink>
"""
FRACTION = """<ink><trace id="0">5 0 1, 6 1 2</trace><trace id="1">0 5 3</trace><trace id="2">5 9 4, 4 9 5</trace>
<trace id="3">8 7 6</trace><annotationXML><math><mfrac xml:id="b"><mn xml:id="1">1</mn><msup><mi xml:id="n">n</mi>
<mn xml:id="2">2</mn></msup></mfrac></math></annotationXML><traceGroup>
<traceGroup><annotation type="truth">1</annotation><traceView traceDataRef="0"/><annotationXML href="1"/></traceGroup>
<traceGroup><annotation type="truth">-</annotation><traceView traceDataRef="1"/><annotationXML href="b"/></traceGroup>
<traceGroup><annotation type="truth">n</annotation><traceView traceDataRef="2"/><annotationXML href="n"/></traceGroup>
<traceGroup><annotation type="truth">2</annotation><traceView traceDataRef="3"/><annotationXML href="2"/></traceGroup>
</traceGroup></ink>"""


def write_file(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "one.inkml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_read_inkml_reads_small_file_exactly(tmp_path: Path) -> None:
    ink = read_inkml(write_file(tmp_path, EQUATION))
    assert ink.writer == "w7" and list(ink.strokes) == ["0", "1", "2", "3", "4", "5"]
    assert np.array_equal(ink.strokes["0"], [[0, 0], [10.5, 10]])
    assert np.array_equal(ink.strokes["1"], [[0, 10], [10, -10]])
    assert np.array_equal(ink.strokes["4"], [[40, 0], [45, 2], [40, 5], [45, 8], [50, 10]])
    assert ink.strokes["4"].dtype == np.float64
    assert ink.symbols == (Group("x", ("0", "1"), "x_1"), Group("=", ("2", "3"), "=_1"), Group("3", ("4",), "3_1"))
    x = Node("mi", "x", "x_1", ())
    equals = Node("mo", "=", "=_1", ())
    three = Node("mn", "3", "3_1", ())
    assert ink.math == Node("math", "", "", (Node("mrow", "", "", (x, Node("mrow", "", "", (equals, three)))),))


def test_read_inkml_accepts_ink_without_labels(tmp_path: Path) -> None:
    ink = read_inkml(write_file(tmp_path, "<ink><trace>1 2</trace><trace>3 4, 5 6,</trace></ink>"))
    assert ink.writer == "" and ink.symbols == () and ink.math is None
    assert [stroke.tolist() for stroke in ink.strokes.values()] == [[[1, 2]], [[3, 4], [5, 6]]]


def test_read_inkml_respects_channel_order_of_trace_format(tmp_path: Path) -> None:
    text = '<ink><traceFormat><channel name="T"/><channel name="Y"/><channel name="X"/></traceFormat>{}</ink>'
    assert read_inkml(write_file(tmp_path, text.format("<trace>x 2 3, - 4 5</trace>"))).strokes["#0"].tolist() == [
        [3, 2],
        [5, 4],
    ]
    assert read_inkml(write_file(tmp_path, "<ink><trace>1 2 F</trace></ink>")).strokes["#0"].tolist() == [[1, 2]]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_read_inkml_supports_encoding(tmp_path: Path, encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?><ink><annotation type="writer">é</annotation></ink>'
    assert read_inkml(write_file(tmp_path, text.encode(encoding))).writer == "é"


GROUP_D = '<traceGroup xml:id="D">'
SENTENCES = [  # (old text, new text, sentence)
    ("</ink>", "", r"it is not well-formed XML \(no element found: line 30, column 0\); restore the file"),
    ("<ink ", "<!DOCTYPE ink><ink ", r"document type or entities .* are refused; remove them"),
    ("utf-8", "shift_jis", r"it is encoded in shift_jis; save it as UTF-8"),
    ("ink", "inc", r"its root is <inc> and not <ink>; give an InkML file"),
    ('name="Y"', 'name="Z"', r"<traceFormat> has no channel X or no channel Y; name both"),
    ("99 99", " ", r"<trace id=5> is empty; remove it, or give it points"),
    ("99 99", "99 99<a/>", r"<trace id=5> holds other elements; it should hold numbers only"),
    ("99 99", "99 99, 98", r"<trace id=5> has a point without x or y; write both"),
    ("99 99", "99 99,, 98 1", r"<trace id=5> has a point without x or y; write both"),
    ("99 99", "99 nan", r"<trace id=5> holds nan, which is not a finite decimal number; write x and y"),
    ("99 99", "inf 99", r"<trace id=5> holds inf, which is not a finite"),
    ("99 99", "1_0 99", r"<trace id=5> holds 1_0, which is not a finite"),
    ("99 99", "٣ 99", r"<trace id=5> holds ٣, which is not a finite"),
    ("99 99", "'3 99", r"<trace id=5> holds '3, which is not a finite"),  # mathematical differences of InkML
    ("99 99", "9" * 99 + " 1", r"<trace id=5> holds 9{37}\.\.\., which is not a finite"),
    ("99 99", "1e999 99", r"<trace id=5> has a number that is not finite or beyond ±10,000,000; scale the ink"),
    ("99 99", "99 -10000001", r"<trace id=5> has a number that is not finite or beyond"),
    ('id="5"', 'id="4"', r"more than one <trace> has the id 4; give each its own"),
    ('traceDataRef="4"', 'traceDataRef="7"', r"<traceGroup id=D> refers to the stroke 7, which is not there; correct"),
    ('traceDataRef="4"', "", r"<traceGroup id=D> refers to the stroke , which is not there; correct"),
    ('traceDataRef="4"', 'traceDataRef="D"', r"<traceGroup id=D> refers to the group D, perhaps in a cycle; refer to"),
    ('<traceView traceDataRef="4"/>', "", r"<traceGroup id=D> has no strokes; remove it"),
    ('<traceView traceDataRef="4"/>', '<traceView traceDataRef="3"/>', r"the stroke 3 belongs to two symbols; give"),
    (GROUP_D, '<traceView traceDataRef="5"/>' + GROUP_D, r"<traceGroup id=A> holds groups and strokes; hold either"),
    ('href="3_1"', 'href="x_1"', r"two symbols refer to the MathML element x_1; give each its own"),
    ('<annotationXML href="3_1"/>', '<annotationXML href="3_1"/>' * 2, r"<traceGroup id=D> has more than one label or"),
    ('xml:id="3_1"', 'xml:id="x_1"', r"more than one MathML element has the id x_1; give each its own"),
    ("</math>", "</math><math/>", r"it has more than one <math>; keep the one with presentation markup"),
    (" w7 ", "w" * 81, r"the writer's name \(w{37}\.\.\.\) has more than 80 characters; shorten it"),
    ('xml:id="D"', f'xml:id="{"D" * 81}"', r"the id of a <traceGroup> \(D{37}\.\.\.\) has more than 80 characters"),
    ("</ink>", f"<{'a' * 81}/></ink>", r"the name of an element \(a{37}\.\.\.\) has more than 80 characters"),
    ("<mrow>", "<mrow>" * 130, r"<mrow> is nested more than 128 deep; flatten the file"),
    ("</ink>", "<a/>" * 10_000 + "</ink>", r"it has more than 10,000 elements; one expression needs far fewer: split"),
    ("</ink>", "<trace>1 1</trace>" * 1_000 + "</ink>", r"it has more than 1,000 strokes \(<trace>\); one expression"),
    ("99 99", "99 99," * 50_001, r"it has more than 50,000 points; one expression needs far fewer"),
    (GROUP_D, "<traceGroup/>" * 300 + GROUP_D, r"it has more than 300 symbols \(<traceGroup>\); one expression"),
]


@pytest.mark.parametrize(("old", "new", "sentence"), SENTENCES)
def test_read_inkml_raises_data_error_for_each_fault(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    path = write_file(tmp_path, EQUATION.replace(old, new) if old == "ink" else EQUATION.replace(old, new, 1))
    with pytest.raises(DataError, match=sentence) as raised:
        read_inkml(path)
    assert str(raised.value).startswith(f"{path}: ")


def test_read_inkml_rejects_large_files_and_non_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"one.inkml is larger than 1,048,576 bytes; .* split the file"):
        read_inkml(write_file(tmp_path, EQUATION + " " * inkml.MAX_BYTES))
    with pytest.raises(DataError, match=r"is not a regular file; give the path of an InkML file"):
        read_inkml(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match=r"pipe is not a regular file"):
        read_inkml(tmp_path / "pipe")
    with pytest.raises(StorageError, match=r"cannot use .*absent.inkml: No such file or directory; check the path"):
        read_inkml(tmp_path / "absent.inkml")


def test_read_inkml_without_defusedxml_names_the_package_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "defusedxml.ElementTree", None)
    with pytest.raises(UsageError, match=r"pip install 'aggrevated\[parsing\]'"):
        read_inkml(write_file(tmp_path, EQUATION))


def test_read_inkml_does_not_read_external_entities(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    attack = f'<!DOCTYPE ink [<!ENTITY x SYSTEM "file://{tmp_path}/secret">]><ink><annotation type="writer">&x;'
    with pytest.raises(DataError, match="refused"):
        read_inkml(write_file(tmp_path, attack + "</annotation></ink>"))


# Mutations: only typed errors, fast, and small.

BOMB = b"<!DOCTYPE ink [<!ENTITY a 'aaaaaaaaaa'>" + b"".join(
    b"<!ENTITY %c '%s'>" % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(9)
)
NUMBERS = (b"1e400", b"-1e308", b"nan", b"inf", b"9" * 5_000, b"0x1", b"1e-9999", b"", b"-", b"1,1", b"\xd9\xa3")
CODECS = (b"utf-7", b"idna", b"punycode", b"undefined", b"utf-16", b"utf-32", b"unicode_escape", b"hex", b"cp037")


def split_pieces(data: bytes, pattern: bytes) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(pattern, data)] or [(0, 0)]


def flip_bits(data: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8, 64])):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def truncate(data: bytes, rng: random.Random) -> bytes:
    start, end = sorted(rng.choices(range(len(data)), k=2))
    return rng.choice([data[:end], data[start:], data[:start] + data[end:]])


def repeat_element(data: bytes, rng: random.Random) -> bytes:
    """Repeat an element or a range of tags once or a thousand times, there or elsewhere."""
    tags = split_pieces(data, rb"<[^>]*>")
    whole = split_pieces(data, rb"<(\w+)\b[^<>]*(/>|>[^<]*</\1>)") + split_pieces(
        data, rb"<traceGroup\b[^>]*>\s*<a.*?</traceGroup>"
    )
    (start, _), (_, end) = sorted(rng.choices(tags, k=2))
    start, end = rng.choice([(start, end), rng.choice(whole), rng.choice(whole)])
    times = min(rng.choice([1, 1, 2, 30, 1_000, 9_000]), inkml.MAX_BYTES // (end - start + 1))
    position = rng.choice([start, rng.choice(tags)[0]])
    return data[:position] + data[start:end] * times + data[position:]


def swap_values(data: bytes, rng: random.Random) -> bytes:
    """Replace a quoted value or the name of an element by another one."""
    pattern = rng.choice([rb'"[^"]*"', rb"</?\w+", rb">[^<]+<"])
    (start, end), (other, last) = rng.choices(split_pieces(data, pattern), k=2)
    return data[:start] + data[other:last] + data[end:]


def change_numbers(data: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.choice([1, 1, 5])):
        start, end = rng.choice(split_pieces(data, rb"[\d.]+"))
        data = data[:start] + rng.choice(NUMBERS) + data[end:]
    return data


def nest_elements(data: bytes, rng: random.Random) -> bytes:
    tag = rng.choice([b"mrow", b"msup", b"mfrac", b"math", b"traceGroup", b"trace", b"a"])
    depth = rng.choice([1, 50, 110, 129, 100_000])
    (start, end) = rng.choice(split_pieces(data, rb"<mi.*?</mi>"))
    return data[:start] + b"<%s>" % tag * depth + data[start:end] + b"</%s>" % tag * depth + data[end:]


def change_to_brackets(data: bytes, rng: random.Random) -> bytes:
    """Replace symbols by brackets and operators, in label and MathML."""
    for _ in range(rng.choice([1, 2, 4])):
        start, end = rng.choice(split_pieces(data, rb">\w<"))
        symbol = rng.choice(["(", ")", "[", "}", "=", "-", "\\times", "\\sum", "!", ",", ""])
        if end:
            data = data.replace(data[start:end], b">" + symbol.encode() + b"<")
    return data


def insert_entities(data: bytes, rng: random.Random) -> bytes:
    doctype = rng.choice([BOMB + b"]>", b'<!DOCTYPE ink SYSTEM "file:///dev/zero">', b"<!DOCTYPE a>", b"", b"", b""])
    reference = rng.choice([b"&k;", b"&lt;", b"&#0;", b"&#55296;", b"&#x41;" * 50_000, b"<![CDATA[]]>", b"<?p?>"])
    start = data.find(b"<ink")
    position = rng.choice(split_pieces(data, rb">")[1:] or [(0, 0)])[1]
    return data[:start] + doctype + data[start:position] + reference + data[position:]


def change_encoding(data: bytes, rng: random.Random) -> bytes:
    declaration = b'<?xml version="1.0" encoding="%s"?>' % rng.choice([b"utf-8", b"iso-8859-1", rng.choice(CODECS)])
    return declaration + data[data.find(b"<ink") :]


MUTATORS = (
    flip_bits,
    truncate,
    repeat_element,
    swap_values,
    change_numbers,
    nest_elements,
    change_to_brackets,
    insert_entities,
    change_encoding,
)


def sources() -> list[bytes]:
    """Return small generated files and a few real ones if available (without extracting them)."""
    found = [EQUATION.encode(), FRACTION.encode()]
    if ARCHIVE.exists():
        with tarfile.open(ARCHIVE) as archive:
            for member in islice(filter(tarfile.TarInfo.isfile, archive), 20):
                file = archive.extractfile(member)
                assert file is not None
                found.append(file.read())
    return found


def peak_memory() -> float:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


@pytest.mark.timeout(3600)
def test_mutated_inkml_gives_page_or_typed_error_quickly(tmp_path: Path) -> None:
    originals = sources()
    rng = random.Random(0)
    pages = 0
    sentences = set()
    slowest = (0.0, b"")
    grown = 0.0
    for number in range(MUTATIONS):
        data = originals[number % 2] if rng.random() < 0.5 else rng.choice(originals)
        for mutate in (MUTATORS[number % len(MUTATORS)], *rng.choices(MUTATORS, k=rng.choice([0, 0, 1, 3]))):
            data = mutate(data or b"<ink>", rng)[: 2 * inkml.MAX_BYTES]
        path = write_file(tmp_path, data)
        before = peak_memory()
        began = time.process_time()
        try:
            page = crohme.build_page(read_inkml(path))
            pages += 1
            assert np.isfinite(page.boxes).all() and (page.heads == 0).sum() == 1
        except AggrevatedError as error:  # any other exception fails the test
            message = str(error)
            assert isinstance(error, DataError) and message.startswith(str(path)), message
            assert "\n" not in message and len(message) < len(str(path)) + 400, message
            sentences.add(re.sub(r"[\d'(<].*", "", message.removeprefix(str(path))))
        seconds = time.process_time() - began
        slowest = max(slowest, (seconds, data))
        grown += peak_memory() - before  # memory for reading, without mutating
        assert seconds < 1, (number, seconds)
    print(
        f"\n{MUTATIONS} mutated files: {pages} pages, {MUTATIONS - pages} refused; slowest {slowest[0]:.3f} s "
        f"({len(slowest[1]):,} bytes); all reads together raised the peak of memory by {grown:.0f} MB"
    )
    assert grown < 80
    assert 0 < pages < MUTATIONS and len(sentences) > 5, sentences


FILL = inkml.MAX_BYTES - 2_000
WORST = {
    "elements": b"<ink>" + b"<a/>" * (FILL // 4),
    "depth": b"<ink>" + b"<a>" * (FILL // 3),
    "attributes": b"<ink " + b" ".join(b'x%d=""' % n for n in range(FILL // 12)) + b"/>",
    "namespaces": b"<ink " + b" ".join(b'xmlns:x%d="u"' % n for n in range(FILL // 20)) + b"/>",
    "comments": b"<ink>" + b"<!---->" * (FILL // 7) + b"</ink>",
    "instructions": b"<ink>" + b"<?x?>" * (FILL // 5) + b"</ink>",
    "an open comment": b"<!--" + b"a" * FILL,
    "an open value": b'<ink a="' + b"&#65;" * (FILL // 5),
    "one long number": b"<ink><trace>" + b"1" * FILL + b" 1</trace></ink>",
    "many commas": b"<ink><trace>" + b"," * FILL + b"</trace></ink>",
    "many points": b"<ink><trace>" + b",".join([b"1 1"] * 50_000) + b"</trace></ink>",
    "long points": b"<ink><trace>" + b"1 " * (FILL // 2) + b"</trace></ink>",
    "many strokes": b"<ink>"
    + b"".join(b'<trace id="%d">%s</trace>' % (n, b"1 1," * 49) for n in range(999))
    + b"</ink>",
    "references": b'<ink><trace id="1">1 1</trace><traceGroup>'
    + b'<traceView traceDataRef="1"/>' * 9_000
    + b"</traceGroup></ink>",
    "brackets": FRACTION.replace(">1<", f">{'(' * 79}<").encode(),
    "a full file": EQUATION.replace("99 99", "99 99," * 49_000).encode(),
}


@pytest.mark.parametrize("name", WORST)
def test_largest_allowed_inkml_is_fast_and_takes_little_memory(tmp_path: Path, name: str) -> None:
    path = write_file(tmp_path, WORST[name])
    began = time.process_time()
    try:
        crohme.build_page(read_inkml(path))
    except DataError as error:
        assert len(str(error)) < len(str(path)) + 400
    assert time.process_time() - began < 1
    tracemalloc.start()
    try:
        crohme.build_page(read_inkml(path))
    except DataError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 60e6, f"{peak / 1e6:.0f} MB"
