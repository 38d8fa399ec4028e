"""Segmentation of strokes into symbols in reading order: every rule on hand-made strokes, then whole pages."""

import tarfile
import time
from pathlib import Path

import numpy as np
import pytest

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError, StorageError
from aggrevated.parsing.pages import crohme, inkml
from aggrevated.parsing.pages.handwriting import generate_page_splits, write_page
from aggrevated.parsing.pages.page import Page
from aggrevated_reader.pictures import image
from aggrevated_reader.pictures.segmentation import (
    find_lines,
    group_into_symbols,
    read_page,
    segment_file,
    segment_page,
    sort_reading_order,
    to_unlabeled_page,
)
from aggrevated_reader.pictures.symbol_grouping import group_strokes

ARCHIVE = Path(__file__).parents[5] / "shared/data/crohme/crohme_algebra.tar.xz"

# Strokes as points, 100 units a symbol, y downwards.
DIGIT = "0,0 40,0 40,50 0,50 0,100 40,100"
SYMBOLS = {
    "+": "0,50 60,50 | 30,20 30,80",
    "=": "0,40 60,40 | 2,65 58,66",
    "= slanted": "0,40 60,30 | 25,70 85,60",
    "x": "0,20 60,90 | 60,20 0,90",
    "x back to back": "0,20 20,25 25,55 20,90 0,95 | 60,20 42,25 38,55 42,90 60,95",
    "4": "10,0 0,50 50,50 | 60,25 58,105",
    "5": "10,0 5,45 40,50 40,90 0,100 | 20,-12 60,-12",
    "7": "0,0 50,0 20,100 | 10,50 45,50",
    "t": "30,0 30,80 45,95 | 5,35 55,35",
    "π": "0,20 60,20 | 15,22 12,90 | 45,22 48,90",
    "i": "10,45 10,100 | 12,10",
    "j": "20,40 20,120 0,130 | 30,5 31,7",
    "÷": "0,50 60,50 | 30,20 | 30,80",
    "±": "0,50 60,50 | 30,20 30,80 | 0,105 60,105",
    "≤": "60,0 0,35 60,70 | 0,60 60,100",
    "≠": "0,40 60,40 | 0,65 60,65 | 50,15 10,90",
    "k": "0,-10 0,100 | 50,30 14,60 50,100",
    "y": "0,0 20,40 | 50,0 30,55 0,130",
}


def parse_strokes(text: str) -> list[Array]:
    return [np.array([[float(v) for v in point.split(",")] for point in way.split()]) for way in text.split("|")]


def boxes(ink: list[tuple[Array, ...]]) -> Array:
    return to_unlabeled_page("", ink).boxes


@pytest.mark.parametrize("name", SYMBOLS)
def test_group_into_symbols_joins_strokes_of_one_symbol_only(name: str) -> None:
    before = parse_strokes(DIGIT)
    middle = [stroke + np.array([80, 0]) for stroke in parse_strokes(SYMBOLS[name])]
    after = [stroke + np.array([200, 0]) for stroke in parse_strokes(DIGIT)]
    found = group_into_symbols([*after, *reversed(middle), *before])
    assert [len(symbol) for symbol in found] == [1, len(middle), 1]


@pytest.mark.parametrize(
    ("what", "parts"),
    [
        ("two digits", f"{DIGIT} | 55,0 55,100"),
        ("a minus between digits", f"{DIGIT} | 55,50 90,50 | 105,0 105,100"),
        ("two minuses side by side", "0,50 50,50 | 70,50 120,50 | 150,0 150,100"),
        ("brackets back to back", "0,-20 20,50 0,120 | 60,-20 40,50 60,120 | 80,0 80,60"),
        ("a fraction", "0,0 40,0 40,60 | -10,80 50,80 | 0,100 40,100 40,160"),
        (
            "a minus above another line",
            f"0,50 60,50 | {' '.join(f'{x},{y + 160}' for x, y in [(0, 0), (40, 0), (9, 99)])}",
        ),
        ("a point after a digit", f"{DIGIT} | 55,98 56,99"),
    ],
)
def test_group_strokes_keeps_distant_strokes_apart(what: str, parts: str) -> None:
    ink = parse_strokes(parts)
    assert len(group_strokes([(stroke,) for stroke in ink])) == len(ink), what


def test_sort_reading_order_reads_lines_top_down_and_left_to_right() -> None:
    page = write_page(["2x+1=7", "2x=6", "x=3"], writer=2, seed=0)
    shuffled = np.random.default_rng(0).permutation(len(page))
    order = sort_reading_order([page.ink[place] for place in shuffled])
    assert [int(shuffled[place]) for place in order] == list(range(len(page)))
    assert [len(line) for line in find_lines(page.ink)] == [6, 4, 3]


@pytest.mark.parametrize("slope", [-0.15, 0.15])
def test_find_lines_handles_sloped_lines_and_flat_symbols(slope: float) -> None:
    def make_line(text: str, left: float, top: float) -> list[tuple[Array, ...]]:
        ink = []
        for place, symbol in enumerate(text):
            x = left + 80 * place
            shape = "0,50 50,50" if symbol == "-" else DIGIT
            shift = (x, top + slope * x + 12 * np.sin(place))
            ink.append(tuple(stroke + shift for stroke in parse_strokes(shape)))
        return ink

    ink = [*make_line("-2-2222-2222-", 0, 0), *make_line("2-2", 500, 220), *make_line("--222-", -50, 440)]
    shuffled = np.random.default_rng(1).permutation(len(ink))
    order = sort_reading_order([ink[place] for place in shuffled])
    assert [int(shuffled[place]) for place in order] == list(range(len(ink)))
    assert [len(found) for found in find_lines([ink[place] for place in shuffled])] == [13, 3, 6]


def test_group_into_symbols_handles_no_ink_and_a_dot() -> None:
    assert group_into_symbols([]) == [] and sort_reading_order([]) == [] and len(to_unlabeled_page("empty", [])) == 0
    assert len(group_into_symbols([np.array([[3.0, 4.0]])])) == 1
    page = to_unlabeled_page("one", [(np.array([[3.0, 4.0]]),)])
    assert page.symbols == ("?",) and page.heads.tolist() == [0]


def is_recovered(page: Page) -> bool:
    """Return whether the shuffled strokes alone give the same symbols in the same order."""
    ink = [stroke for symbol in page.ink for stroke in symbol]
    found = group_into_symbols([ink[place] for place in np.random.default_rng(0).permutation(len(ink))])
    return len(found) == len(page) and bool(np.allclose(boxes(found), page.boxes))


def test_segmentation_recovers_most_generated_pages() -> None:
    pages = [page for part in generate_page_splits(150, 30, seed=5) for page in part]
    assert np.mean([is_recovered(page) for page in pages]) >= 0.95


@pytest.mark.skipif(not ARCHIVE.exists(), reason="the CROHME data are not there")
def test_segmentation_recovers_most_real_core_expressions(tmp_path: Path) -> None:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, [m for m in archive if m.name.removeprefix("./").startswith("dev")], filter="data")
    pages = crohme.load(tmp_path / "dev", core=True)
    assert np.mean([is_recovered(page) for page in pages]) >= 0.8


# Files.

TRACES = (
    '<trace id="a">0 0, 40 0, 0 100</trace><trace id="b">80 40, 140 40</trace><trace id="c">80 60, 140 60</trace>'
    '<trace id="d">180 0, 180 100</trace>'
)
GROUPS = (
    '<traceGroup><traceGroup><annotation type="truth">1</annotation><traceView traceDataRef="d"/></traceGroup>'
    '<traceGroup><annotation type="truth">\\times</annotation><traceView traceDataRef="a"/></traceGroup>'
    '<traceGroup><traceView traceDataRef="c"/><traceView traceDataRef="b"/></traceGroup></traceGroup>'
)


def write_file(tmp_path: Path, content: str, name: str = "one.inkml") -> Path:
    (tmp_path / name).write_text(content)
    return tmp_path / name


def test_read_page_groups_and_orders_bare_strokes(tmp_path: Path) -> None:
    page = read_page(write_file(tmp_path, f"<ink>{TRACES}</ink>"))
    assert page.symbols == ("?", "?", "?") and page.heads.tolist() == [0, 0, 0] and page.name == "one"
    assert [len(symbol) for symbol in page.ink] == [1, 2, 1] and page.boxes[:, 0].tolist() == [0, 80, 180]


def test_read_page_keeps_given_groups_and_labels(tmp_path: Path) -> None:
    page = read_page(write_file(tmp_path, f"<ink>{TRACES}{GROUPS}</ink>"))
    assert page.symbols == ("×", "?", "1") and page.heads.tolist() == [0, 0, 0]


def test_read_page_takes_order_labels_and_heads_from_mathml(tmp_path: Path) -> None:
    math = '<annotationXML><math><mn xml:id="m">1</mn><mo xml:id="n">=</mo><mi xml:id="o">a</mi></math></annotationXML>'
    linked = GROUPS.replace("\\times", "a")
    for stroke, href in (("d", "m"), ("a", "o"), ("b", "n")):
        reference = f'traceDataRef="{stroke}"/>'
        linked = linked.replace(reference, reference + f'<annotationXML href="{href}"/>')
    page = read_page(write_file(tmp_path, f"<ink>{math}{TRACES}{linked}</ink>"))
    assert page.symbols == ("1", "=", "a") and page.heads.tolist() == [2, 0, 2]


def test_read_page_detects_the_format_from_content(tmp_path: Path) -> None:
    assert len(read_page(write_file(tmp_path, f"<ink>{TRACES}</ink>", "page"))) == 3


def test_segment_file_gives_the_same_for_bytes_as_for_a_file(tmp_path: Path) -> None:
    from_file = segment_page(write_file(tmp_path, f"<ink>{TRACES}{GROUPS}</ink>"))
    from_bytes = segment_file(f"<ink>{TRACES}{GROUPS}</ink>".encode(), "nowhere/one.inkml")
    assert from_bytes.page.name == from_file.page.name == "one" and from_bytes.page.symbols == from_file.page.symbols
    assert from_bytes.stroke_ids == from_file.stroke_ids == (("a",), ("c", "b"), ("d",))
    assert len(segment_file(f"<ink>{TRACES}</ink>".encode(), "page").page) == 3


@pytest.mark.parametrize(
    ("data", "name", "sentence"),
    [
        (b"x = 3", "notes.txt", r"^notes\.txt is neither InkML, a picture"),
        (b"", "page.inkml", r"^page\.inkml: it is not well-formed XML"),
        (b"<ink/>", "page.inkml", r"^page\.inkml: it has no strokes"),
        (b"<ink/>", "page.png", r"^page\.png: it is neither PNG, JPEG, WebP nor PDF"),
        (b"<ink>" + bytes(inkml.MAX_BYTES), "page.inkml", r"^page\.inkml is larger than 1,048,576 bytes; "),
        (image.PNG + bytes(image.MAX_BYTES), "page", r"^page is larger than 64 MB; save the picture smaller"),
    ],
)
def test_segment_file_rejects_bytes_that_are_no_page(data: bytes, name: str, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        segment_file(data, name)


def test_read_page_raises_data_error_for_other_files(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"notes\.txt is neither InkML, a picture \(PNG, JPEG, WebP\) nor PDF; give one"
    ):
        read_page(write_file(tmp_path, "x = 3", "notes.txt"))
    with pytest.raises(DataError, match=r"one\.inkml: it has no strokes \(<trace>\); give a file with ink"):
        read_page(write_file(tmp_path, "<ink/>"))
    with pytest.raises(
        DataError, match=r"page\.png: it is neither PNG, JPEG, WebP nor PDF; save the picture as one of these"
    ):
        read_page(write_file(tmp_path, "<ink/>", "page.png"))
    with pytest.raises(DataError, match=r"is not a regular file; give the path of an InkML file, a picture"):
        read_page(tmp_path)
    with pytest.raises(StorageError, match=r"cannot use .*none\.png: .*; check the path"):
        read_page(tmp_path / "none.png")
    many = "".join(f"<trace>{9 * k} 0, {9 * k} 8</trace>" for k in range(501))
    with pytest.raises(DataError, match=r"one\.inkml: 501 strokes are not a page of algebra; give at most 500"):
        read_page(write_file(tmp_path, f"<ink>{many}</ink>"))
    heap = "".join(f"<trace>0 {k}, 90 {90 - k}</trace>" for k in range(99))
    with pytest.raises(DataError, match=r"one\.inkml: its strokes lie all over each other: that is not a page"):
        read_page(write_file(tmp_path, f"<ink>{heap}</ink>"))


def test_group_into_symbols_takes_less_than_a_second_for_largest_page() -> None:
    generator = np.random.default_rng(0)
    corners = np.stack(np.meshgrid(np.arange(25), np.arange(20)), axis=-1).reshape(-1, 1, 2) * 120.0
    scribbles = list(corners + generator.uniform(0, 140, (500, 100, 2)))
    began = time.process_time()
    group_into_symbols(scribbles)
    assert time.process_time() - began < 1
