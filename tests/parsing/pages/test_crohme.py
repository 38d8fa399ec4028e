"""From MathML to heads: known trees, an error for each invalid input, and the real data where available."""

import re
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from aggrevated.core.errors import DataError, StorageError
from aggrevated.parsing.pages import algebra
from aggrevated.parsing.pages.crohme import BAR, build_page, is_core, load, read_folder, stack, stack_expressions
from aggrevated.parsing.pages.inkml import Ink, read_inkml
from aggrevated.parsing.pages.page import Page
from helpers.handwriting import is_projective

ARCHIVE = Path(__file__).parents[4] / "shared/data/crohme/crohme_algebra.tar.xz"


def row(symbols: str) -> str:
    """Return MathML nested to the right as CROHME's; each symbol's id is its name and its position."""
    nested = ""
    for position, symbol in reversed(list(enumerate(symbols.split()))):
        tag = "mn" if symbol.isdigit() else "mi" if symbol.isalpha() else "mo"
        nested = f'<mrow><{tag} xml:id="{symbol}.{position}">{symbol}</{tag}>{nested}</mrow>'
    return nested


def document(math: str, writer: str = "w") -> str:
    """Return InkML in which symbol k, in the order of the MathML, is a square of 8 at x = 10 k."""
    leaves = re.findall(r'<(\w+) xml:id="([^"]*)">([^<]*)', math)
    traces = groups = ""
    for k, (tag, id, text) in enumerate(leaves):
        left = 10 * k
        right = 10 * k + 8
        traces += f'<trace id="{k}">{left} 0, {right} 0, {right} 8, {left} 8</trace>'
        label = "-" if tag == "mfrac" else text
        groups += f'<traceGroup><annotation type="truth">{label}</annotation><traceView traceDataRef="{k}"/>'
        groups += f'<annotationXML href="{id}"/></traceGroup>'
    return (
        f'<ink><annotation type="writer">{writer}</annotation><annotationXML><math>{math}</math></annotationXML>'
        f"{traces}<traceGroup>{groups}</traceGroup></ink>"
    )


def ink_of(tmp_path: Path, math: str) -> Ink:
    (tmp_path / "one.inkml").write_text(document(math))
    return read_inkml(tmp_path / "one.inkml")


def arcs(tree: Page) -> str:
    """Return each symbol with its head: `x→=`."""
    names = ("ROOT", *tree.symbols)
    return " ".join(f"{symbol}→{names[head]}" for symbol, head in zip(tree.symbols, tree.heads, strict=True))


def test_page_from_mathml_has_heads_of_the_papers_first_line(tmp_path: Path) -> None:
    tree = build_page(ink_of(tmp_path, row("1 0 ( x + 2 ) = a + b")))
    assert tree.heads.tolist() == [2, 7, 7, 5, 3, 5, 8, 0, 10, 8, 10]
    assert tree.symbols == tuple("10(x+2)=a+b") and (tree.name, tree.writer) == ("one", "w")
    assert tree.boxes[3].tolist() == [30, 0, 38, 8]


KNOWN = [
    (row("a = b"), "a→= =→ROOT b→="),
    (row("a \\leq b \\lt c"), "a→≤ ≤→< b→≤ <→ROOT c→<"),
    (row("a - b + c"), "a→- -→+ b→- +→ROOT c→+"),
    (row("a + b \\times c"), "a→+ +→ROOT b→× ×→+ c→×"),
    (row("2 x y"), "2→x x→y y→ROOT"),
    (row("[ a ] ( b )"), "[→] a→[ ]→) (→) b→( )→ROOT"),
    (row("- 2 x + 1"), "-→x 2→x x→+ +→ROOT 1→+"),
    (row("a = - b"), "a→= =→ROOT -→b b→="),
    ('<msup><mi xml:id="x">x</mi><mrow><mi xml:id="n">n</mi><mo xml:id="+">+</mo><mn xml:id="1">1</mn></mrow></msup>',
     "x→ROOT n→+ +→x 1→+"),
    ('<mrow><mo xml:id="(">(</mo><mi xml:id="a">a</mi><msup><mo xml:id=")">)</mo><mn xml:id="2">2</mn></msup></mrow>'
     '<mi xml:id="b">b</mi>', "(→) a→( )→b 2→) b→ROOT"),
    ('<msubsup><mi xml:id="x">x</mi><mn xml:id="1">1</mn><mn xml:id="2">2</mn></msubsup>', "x→ROOT 1→x 2→x"),
    ('<mn xml:id="3">3</mn><mfrac xml:id="f"><mi xml:id="a">a</mi><mrow><mi xml:id="b">b</mi><mo xml:id="-">-</mo>'
     '<mi xml:id="c">c</mi></mrow></mfrac>', f"3→{BAR} a→{BAR} {BAR}→ROOT b→- -→{BAR} c→-"),
    ('<mn xml:id="2">2</mn><msqrt xml:id="r"><mi xml:id="x">x</mi><mo xml:id="+">+</mo><mn xml:id="1">1</mn></msqrt>'
     '<mi xml:id="y">y</mi>', "2→√ √→y x→+ +→√ 1→+ y→ROOT"),
    ('<mroot xml:id="r"><mi xml:id="x">x</mi><mn xml:id="3">3</mn></mroot>', "3→√ √→ROOT x→√"),
    ('<mn xml:id="2">2</mn><mo>&#8290;</mo><mi xml:id="x">x</mi>', "2→x x→ROOT"),  # an invisible × has no ink
    (row("3 . 1 4"), "3→. .→1 1→4 4→ROOT"),
]  # fmt: skip


@pytest.mark.parametrize(("math", "expected"), KNOWN)
def test_page_from_mathml_has_known_tree(tmp_path: Path, math: str, expected: str) -> None:
    assert arcs(build_page(ink_of(tmp_path, math))) == expected


def test_page_from_mathml_sorts_ink_into_reading_order(tmp_path: Path) -> None:
    tree = build_page(ink_of(tmp_path, '<mfrac xml:id="f"><mn xml:id="1">1</mn><mn xml:id="2">2</mn></mfrac>'))
    assert tree.symbols == ("1", BAR, "2")
    assert tree.boxes[:, 0].tolist() == [10, 0, 20]  # the bar is the first element of the MathML


def leaf(tag: str, id: str, text: str) -> str:
    return f'<{tag} xml:id="{id}">{text}</{tag}>'


SENTENCES = [
    (
        "<mfenced>" + leaf("mi", "x", "x") + "</mfenced>",
        r"<mfenced id=''>: it has no head rule, only math, mfrac",
    ),
    ("<msqrt>" + leaf("mi", "x", "x") + "</msqrt>", r"<msqrt id=''>: no symbol refers to it; give its id"),
    (
        leaf("mo", "s", "\\sum"),
        r"<mo id='s'>: it has no head rule for the operator '\\\\sum'; leave the file",
    ),
    ("<msup>" + leaf("mi", "x", "x") + "</msup>", r"<msup id=''>: it has 1 parts and not 2; complete it"),
    (
        "<mfrac>" + leaf("mi", "x", "x") * 1 + leaf("mi", "y", "y") + "</mfrac>",
        r"<mfrac id=''>: no symbol refers to it",
    ),
    ('<mi xml:id="x">x<mn/></mi>', r"<mi id='x'>: it holds other elements; it should hold one symbol"),
    (leaf("mi", "x", ""), r"<mi id='x'>: its symbol has no label; write one into the <traceGroup>"),
    (row("( a + b"), r"<math> is not an expression \(line 1, column 5: the end .*\); correct it or leave the file out"),
    (row("a ) + b"), r"<math> is not an expression \(line 1, column 2: '\)' .*\); correct it or leave"),
    (row("a + = b"), r"<math> is not an expression \(line 1, column 3: '=' stands where"),
    (row(" ".join("(" * 60 + "a" + ")" * 60)), r"<(math|mrow)> is (not|nested)"),
    ("<mo>+</mo>", r"<traceGroup id=> has no strokes; remove it"),
]


@pytest.mark.parametrize(("math", "sentence"), SENTENCES)
def test_page_from_invalid_mathml_raises_data_error(tmp_path: Path, math: str, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence) as raised:
        build_page(ink_of(tmp_path, math))
    assert str(raised.value).startswith(f"{tmp_path / 'one.inkml'}: ")


def read_with_replacement(tmp_path: Path, old: str, new: str) -> Ink:
    (tmp_path / "one.inkml").write_text(document(row("a = b")).replace(old, new, 1))
    return read_inkml(tmp_path / "one.inkml")


def test_page_rejects_mismatched_ink_and_mathml(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"<mi id='b.2'>: no symbol refers to it; give its id as the href"):
        build_page(read_with_replacement(tmp_path, 'href="b.2"', 'href="c.2"'))
    with pytest.raises(DataError, match=r"symbol 'b' of stroke '2' refers to 'b.2', which is not a symbol of the"):
        build_page(read_with_replacement(tmp_path, 'xml:id="b.2"', ""))
    with pytest.raises(DataError, match=r"symbol '9' of stroke 'z' refers to '', which is not a symbol of the MathML"):
        stray = '<traceGroup><annotation type="truth">9</annotation><traceView traceDataRef="z"/></traceGroup>'
        build_page(read_with_replacement(tmp_path, "</ink>", f'<trace id="z">1 1</trace>{stray}</ink>'))
    with pytest.raises(
        DataError, match=r"one.inkml: it has no MathML \(<math>\), so no heads are known; add it or leave"
    ):
        build_page(read_with_replacement(tmp_path, f"<math>{row('a = b')}</math>", ""))


def test_page_without_writer_uses_its_file_name_as_writer(tmp_path: Path) -> None:
    assert build_page(read_with_replacement(tmp_path, ">w<", "><")).writer == "one"


@pytest.mark.parametrize(
    ("math", "core"),
    [
        (row("a = b"), True),
        (row("a \\geq b"), True),
        (row("- a b"), True),
        (row("a b c"), False),  # no operator
        (row("a b"), False),
        (row("a ="), False),
        (row("1 + 2 . 5"), False),
        (row("n ! = 6"), False),
        (row("a = \\{ b \\}"), False),
        (row("f ( a , b ) = 1"), False),
        (row("a " * 28 + "= b"), True),
        (row("a " * 29 + "= b"), False),
        ("<msup><mi xml:id='x'>x</mi><mn>2</mn></msup>" + row("= 4 + 1"), False),
        ("<mfrac><mi>x</mi><mn>2</mn></mfrac>" + row("= 4 + 1"), False),
        ("<msqrt><mi>x</mi></msqrt>" + row("= 4 + 1"), False),
    ],
)
def test_is_core_accepts_one_line_of_3_to_30_symbols_with_an_operator(tmp_path: Path, math: str, core: bool) -> None:
    assert is_core(ink_of(tmp_path, math)) == core


def test_read_folder_sorts_pages_by_name_and_counts_skipped_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no .inkml files; give the folder that holds them, such as train/"):
        load(tmp_path)
    with pytest.raises(StorageError, match=r"cannot use .*absent"):
        load(tmp_path / "absent")
    for name, math in (("b", row("a = b")), ("a", row("a b")), ("c", row("c + d"))):
        (tmp_path / f"{name}.inkml").write_text(document(math))
    (tmp_path / "notes.txt").write_text("not ink")
    assert [one.name for one in load(tmp_path)] == ["a", "b", "c"]
    assert [one.name for one in load(tmp_path, core=True)] == ["b", "c"]
    assert read_folder(tmp_path).notice == "" and not read_folder(tmp_path).counts
    for name in "de":
        (tmp_path / f"{name}.inkml").write_text(document(row("c + d"))[:-9])
    (tmp_path / "f.inkml").write_text(document(row("c + ≡ d")))
    result = read_folder(tmp_path)
    assert [one.name for one in result.pages] == ["a", "b", "c"] and result.core == (False, True, True)
    assert [one.name for one in load(tmp_path, core=True)] == ["b", "c"]
    assert sorted(result.counts.values()) == [1, 2] and {*result.skipped.values()} == {
        ("d.inkml", "e.inkml"),
        ("f.inkml",),
    }
    assert result.notice.startswith("3 of 6 InkML files cannot be used and are left out: 2 x it is not well-formed XML")
    assert "1 x it has no head rule for the operator '≡'" in result.notice and "f.inkml" not in result.notice


def test_load_rejects_folder_without_usable_files(tmp_path: Path) -> None:
    (tmp_path / "d.inkml").write_text(document(row("c + d"))[:-9])
    with pytest.raises(
        DataError, match=r"none of the 1 InkML files in .* can be used: .*d\.inkml: it is not well-formed"
    ):
        load(tmp_path)


def test_load_core_rejects_folder_without_core_expressions(tmp_path: Path) -> None:
    (tmp_path / "a.inkml").write_text(document(row("a b")))
    with pytest.raises(DataError, match=r"none of the 1 expressions in .* is on one line of 3 to 30 symbols with an"):
        load(tmp_path, core=True)


def test_stack_of_three_lines_gives_the_papers_example(tmp_path: Path) -> None:
    lines = [build_page(ink_of(tmp_path, row(line))) for line in ("1 0 ( x + 2 ) = a + b", "c + d = e", "x = 3")]
    stacked = stack(lines, np.random.default_rng(0))
    assert stacked.heads.tolist() == [2, 7, 7, 5, 3, 5, 8, 0, 10, 8, 10, 13, 15, 13, 8, 15, 18, 8, 18]
    assert stacked.heads.tolist() == algebra.parse_heads(["10(x+2)=a+b", "c+d=e", "x=3"]).tolist()
    assert stacked.name == "one+one+one" and "".join(stacked.symbols) == "10(x+2)=a+bc+d=ex=3"
    first = stacked.boxes[:11]
    second = stacked.boxes[11:16]
    third = stacked.boxes[16:]
    assert first[:, 3].max() + 4 <= second[:, 1].min() and second[:, 3].max() + 4 <= third[:, 1].min()
    for part, line in ((first, lines[0]), (second, lines[1]), (third, lines[2])):
        assert np.ptp(part - line.boxes, axis=0) == pytest.approx(0)  # moved, not changed


def test_compose_uses_each_expression_once_and_keeps_writers_apart(tmp_path: Path) -> None:
    for n in range(20):
        (tmp_path / f"{n:02}.inkml").write_text(document(row("a = b + c"), writer="one" if n < 13 else "two"))
    pages = load(tmp_path)
    composed = stack_expressions(pages, np.random.default_rng(0))
    assert sorted(name for one in composed for name in one.name.split("+")) == [one.name for one in pages]
    writers = {one.name: one.writer for one in pages}
    for one in composed:
        assert {writers[name] for name in one.name.split("+")} == {one.writer}
    assert set(Counter(len(one) // 5 for one in composed)) == {1, 2, 3}
    repeated = stack_expressions(pages, np.random.default_rng(0))
    assert [one.name for one in repeated] == [one.name for one in composed]
    assert all(np.array_equal(one.boxes, two.boxes) for one, two in zip(composed, repeated, strict=True))


# The real data.


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not ARCHIVE.exists():
        pytest.skip(f"the CROHME data are not part of the project, and {ARCHIVE} is not there")
    folder = tmp_path_factory.mktemp("crohme")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize(("part", "files", "core"), [("train", 3847, 989), ("dev", 222, 61)])
def test_pages_of_real_expressions_are_projective(data: Path, part: str, files: int, core: int) -> None:
    inks = [read_inkml(path) for path in sorted((data / part).glob("*.inkml"))]
    assert len(inks) == files and sum(map(is_core, inks)) == core
    pages = [build_page(ink) for ink in inks]
    assert all(is_projective(one.heads) for one in pages)
    for one, ink in zip(pages, inks, strict=True):
        assert len(one) == len(ink.symbols)
        if is_core(ink):  # the labels in one line agree with the MathML
            assert one.heads.tolist() == algebra.parse_expression_heads([one.symbols]).tolist()


def test_compose_of_real_expressions_gives_projective_pages(data: Path) -> None:
    pages = load(data / "dev", core=True)
    composed = stack_expressions(pages, np.random.default_rng(0))
    assert len(pages) == 61 and sum(map(len, composed)) == sum(map(len, pages))
    assert all(is_projective(one.heads) for one in composed)
    assert max(one.name.count("+") for one in composed) == 2
