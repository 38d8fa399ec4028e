"""Corrected pages as InkML: written files are read back, and every fault of heads has its message."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggrevated.core.errors import DataError
from aggrevated.parsing.pages.crohme import NAMES
from aggrevated.parsing.pages.handwriting import write_page
from aggrevated.parsing.pages.inkml import Group, parse_inkml
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.pages.trees import check_tree
from aggrevated.parsing.transitions.oracle_check import sample_projective_tree
from aggrevated_reader.pages.corrected_files import to_confirmed_page
from aggrevated_reader.pages.inkml_writing import to_inkml
from aggrevated_reader.pictures.segmentation import segment_file

LINE = np.array([[0.0, 0.0], [10.0, 5.0]])
PAGE = Page(
    "one", "Ada & Bob", ("a", "<", "&"), np.array([2, 0, 2]),
    ((LINE,), (LINE + np.array([20, 0.123]), LINE + np.array([20, 8])), (LINE + np.array([40, 0]),)),
)  # fmt: skip
KNOWN = """<?xml version="1.0" encoding="UTF-8"?>
<ink xmlns="http://www.w3.org/2003/InkML">
<annotation type="writer">Ada &amp; Bob</annotation>
<annotation type="truth">a&lt;&amp;</annotation>
<traceFormat><channel name="X" type="decimal"/><channel name="Y" type="decimal"/></traceFormat>
<trace id="t1">0 0, 10 5</trace>
<trace id="t2">20 0.123, 30 5.123</trace>
<trace id="t3">20 8, 30 13</trace>
<trace id="t4">40 0, 50 5</trace>
<traceGroup xml:id="s1"><annotation type="truth">a</annotation><annotation type="head">s2</annotation>\
<traceView traceDataRef="t1"/></traceGroup>
<traceGroup xml:id="s2"><annotation type="truth">&lt;</annotation><annotation type="head">ROOT</annotation>\
<traceView traceDataRef="t2"/><traceView traceDataRef="t3"/></traceGroup>
<traceGroup xml:id="s3"><annotation type="truth">&amp;</annotation><annotation type="head">s2</annotation>\
<traceView traceDataRef="t4"/></traceGroup>
</ink>
"""


def read(data: bytes | str) -> Page:
    return segment_file(data.encode() if isinstance(data, str) else data, "one.inkml").page


def is_same_page(page: Page, other: Page, within: float = 0.01) -> bool:
    ink = [(a, b) for x, y in zip(page.ink, other.ink, strict=True) for a, b in zip(x, y, strict=True)]
    is_same_text = (page.symbols, page.heads.tolist(), page.writer) == (
        other.symbols,
        other.heads.tolist(),
        other.writer,
    )
    return is_same_text and all(a.shape == b.shape and np.abs(a - b).max() <= within for a, b in ink)


def test_to_inkml_writes_known_text_that_is_read_back() -> None:
    assert to_inkml(PAGE, "a<&").decode() == KNOWN
    assert is_same_page(read(KNOWN), PAGE)
    assert parse_inkml(KNOWN.encode(), "one").symbols[1] == Group("<", ("t2", "t3"), "", 0)


def test_to_inkml_leaves_out_unconfirmed_heads_labels_and_groups() -> None:
    named, grouped, bare = (
        read(to_inkml(PAGE, **parts)) for parts in ({"heads": False}, {"labels": False}, {"groups": False})
    )
    assert named.symbols == ("a", "<", "&") and grouped.symbols == bare.symbols == ("?", "?", "?")
    for page in (named, grouped, bare):
        assert page.heads.tolist() == [0, 0, 0] and [len(strokes) for strokes in page.ink] == [1, 2, 1]
    unsure = replace(PAGE, symbols=("a", "?", "&"))
    assert read(to_inkml(unsure, heads=False)).symbols == ("a", "?", "&")
    with pytest.raises(DataError, match="symbol 2 has no label; give it one, or save the page as not confirmed"):
        to_inkml(unsure)
    for data in (to_inkml(PAGE, heads=False), to_inkml(PAGE, groups=False)):
        with pytest.raises(DataError, match=r"one: it has no heads .* and no MathML; correct the page and save it"):
            to_confirmed_page(parse_inkml(data, "one"))


def test_to_inkml_keeps_the_order_of_symbols() -> None:
    backwards = replace(PAGE, ink=PAGE.ink[::-1])
    assert is_same_page(read(to_inkml(backwards)), backwards)


def test_to_inkml_writes_pressures_as_a_channel() -> None:
    pressures = [[np.array([0.5, 0.25])] * len(strokes) for strokes in PAGE.ink]
    data = to_inkml(PAGE, pressures=pressures)
    assert b'name="F"' in data and b">20 0.123 0.5, 30 5.123 0.25<" in data and is_same_page(read(data), PAGE)
    with pytest.raises(DataError, match="the pressures do not match the points; give one pressure for each point"):
        to_inkml(PAGE, pressures=pressures[1:])


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e4])
def test_to_inkml_keeps_the_shape_of_ink_in_any_unit(scale: float) -> None:
    page = write_page(["10(x+2)=a+b", "c×d=e/4"], writer=4, seed=1)
    page = replace(page, ink=tuple(tuple(stroke * scale for stroke in strokes) for strokes in page.ink))
    assert is_same_page(read(to_inkml(page)), page, 0.005 * scale + 1e-9)


@st.composite
def pages(draw: st.DrawFn) -> Page:
    n = draw(st.integers(1, 12))
    text = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=20)
    labels = draw(st.lists(text.filter(lambda label: label != "?" and label not in NAMES), min_size=n, max_size=n))
    points = st.lists(st.tuples(*2 * [st.integers(-10_000, 10_000)]), min_size=1, max_size=4)
    ink = tuple(tuple(np.array(draw(points)) / 100 for _ in range(draw(st.integers(1, 3)))) for _ in range(n))
    heads = sample_projective_tree(n, np.random.default_rng(draw(st.integers(0, 10**6))))
    return Page("one", draw(text), tuple(labels), heads, ink)


@settings(max_examples=60, deadline=None)
@given(page=pages())
def test_to_inkml_round_trips_any_tree_and_labels(page: Page) -> None:
    assert is_same_page(read(to_inkml(page, "".join(page.symbols))), page)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"heads": np.array([2, 0, 1])},
            r"^the arc from symbol 2 to ROOT crosses the arc from symbol 3 to its head 1;",
        ),
        ({"heads": np.array([0, 0, 2])}, r"^the symbols 1 and 2 depend on ROOT; keep one of them there"),
        ({"symbols": ("a", "b\x00", "c")}, r"holds '\\x00', which XML does not allow; remove it"),
        ({"symbols": ("a", "b\ud800", "c")}, r"holds '\\ud800', which XML does not allow; remove it"),
        ({"symbols": ("a", "b" * 81, "c")}, r"^one: the label of .* has more than 80 characters; shorten it"),
        ({"writer": "w" * 81}, r"^one: the writer's name .* has more than 80 characters; shorten it"),
        ({"symbols": ("a", " ", "c")}, r"^symbol 2 has no label"),
        ({"ink": ((LINE,), (LINE * np.nan,), (LINE,))}, r"^one: <trace id=t2> holds nan, which is not a finite"),
        ({"ink": ((LINE,), (LINE * 1e9,), (LINE,))}, r"^one: <trace id=t2> has a number that is not finite or beyond"),
        ({"ink": ((LINE,), (), (LINE,))}, r"^one: <traceGroup id=s2> has no strokes"),
    ],
)
def test_to_inkml_rejects_pages_that_cannot_be_read_back(changed: dict[str, object], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        to_inkml(replace(PAGE, **changed))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (">s2</", ">s9</", r"<traceGroup id=s1> has the head s9, which is not a symbol; give the id of one, or ROOT"),
        (">s2</", ">t1</", r"<traceGroup id=s1> has the head t1, which is not a symbol"),
        (">s2</", ">s1</", r"symbol 1 is its own head; give it another"),
        (">s2</", ">ROOT</", r"the symbols 1 and 2 depend on ROOT; keep one of them there"),
        (">ROOT</", ">s1</", r"no symbol depends on ROOT; choose one that does"),
        (">ROOT</", "></", r"<traceGroup id=s2> has no head, and others have; give all symbols a head, or none"),
        ('xml:id="s3"', 'xml:id="s2"', r"more than one <traceGroup> has the id s2"),
        ('xml:id="s3"', 'xml:id="ROOT"', r"more than one <traceGroup> has the id ROOT, or the id is reserved"),
        ('<annotation type="truth">a</annotation>', "", r"symbol 1 \(stroke 't1'\) has a head and no label; write one"),
        ('type="truth">a<', 'type="head">s3<', r"<traceGroup id=s1> has more than one head; keep one"),
        (">s2</", ">" + "s" * 81 + "</", r"the head of <traceGroup id=s1> .* has more than 80 characters; shorten it"),
    ],
)
def test_read_inkml_page_rejects_invalid_heads(old: str, new: str, sentence: str) -> None:
    assert old in KNOWN
    with pytest.raises(DataError, match=sentence) as raised:
        read(KNOWN.replace(old, new, 1))
    assert str(raised.value).startswith("one.inkml: ")


def test_read_inkml_page_accepts_hash_references_and_latex_names() -> None:
    data = (
        KNOWN.replace(">s2<", ">#s2<")
        .replace(">a<", ">\\times<")
        .replace("&lt;</annotation><a", "\\leq</annotation><a")
    )
    assert read(data).symbols == ("×", "≤", "&") and read(data).heads.tolist() == [2, 0, 2]


def test_read_inkml_page_names_crossing_arcs() -> None:
    data = KNOWN.replace(">s2<", ">s3<", 1)
    with pytest.raises(DataError, match=r"the arc from symbol 1 to its head 3 crosses the arc from symbol 2 to ROOT"):
        read(data)


@settings(max_examples=150, deadline=None)
@given(
    heads=st.lists(st.sampled_from(["ROOT", "s1", "s2", "s3", "#s1", "s4", "t1", "", "root"]), min_size=3, max_size=3)
)
def test_read_inkml_page_gives_a_tree_or_data_error_for_any_heads(heads: list[str]) -> None:
    data = KNOWN
    for number, (old, new) in enumerate(zip(("s2", "ROOT", "s2"), heads, strict=True), 1):
        before, found, after = data.partition(f'xml:id="s{number}"')
        data = before + found + after.replace(f'"head">{old}<', f'"head">{new}<', 1)
    try:
        page = read(data)
    except DataError as error:
        assert str(error).startswith("one.inkml: ")
        return
    if any(heads):
        check_tree(page.heads)
    assert page.symbols == ("a", "<", "&")
