"""Ink as the page sends it, and the steps of a parse, without a browser."""

import json
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from writing import write_lines

from aggrevated.core.errors import DataError
from aggrevated.parsing.pages.page import Page
from aggrevated_reader import load_reader
from aggrevated_reader.page_reader import PageReading
from aggrevated_reader.pages.inkml_writing import to_inkml
from aggrevated_reader.pages_report import PageReader
from aggrevated_reader.parse_steps import list_parse_steps
from aggrevated_reader.web.drawings import Drawings
from aggrevated_reader.web.ink import ROOT, Drawing, SymbolCorrection, parse_drawing, place_symbols
from helpers.command_line import failure, said

PAGE = write_lines("a(b+c)=d")


@pytest.fixture(scope="module")
def reader() -> PageReader:
    return load_reader()


def make_drawing(**corrections: object) -> Drawing:
    """Return the drawing of a page, with one part for each stroke."""
    parts = [[stroke.tolist()] for strokes in PAGE.ink for stroke in strokes]
    return parse_drawing({"parts": parts, **corrections})


def displayed_state(drawings: Drawings, drawing: Drawing) -> dict[str, object]:
    """Return what the page shows of a drawing."""
    read = drawings.read(drawing)
    return {"labels": list(read.labels), "heads": read.heads.tolist()}


def test_parse_drawing_uses_pressure_of_one_half_by_default() -> None:
    drawing = parse_drawing({"parts": [[[[1, 2], [3, 4, 0.9], [5, 6, 7]]]]})
    assert drawing.parts[0][0].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert drawing.pressures[0][0].tolist() == [0.5, 0.9, 1.0]


def test_drawing_symbols_keep_confirmed_groups_and_find_others() -> None:
    drawing = make_drawing(said=[{"parts": [1, 0]}])  # a and (
    assert drawing.corrections == (SymbolCorrection((0, 1)),)
    symbols = drawing.group_symbols()
    assert symbols[0] == (0, 1) and len(symbols) == 7
    assert sorted(part for parts in symbols for part in parts) == list(range(10))
    assert len(make_drawing().group_symbols()) == 8


def test_parse_drawing_drops_missing_heads_and_adds_implied_symbols() -> None:
    taken = make_drawing(said=[{"parts": [0], "head": [1]}, {"parts": [1, 2]}])
    assert taken.corrections == (SymbolCorrection((0,)), SymbolCorrection((1, 2)))
    named = make_drawing(said=[{"parts": [0], "head": [1]}, {"parts": [2], "head": []}])
    assert named.corrections == (
        SymbolCorrection((0,), None, (1,)),
        SymbolCorrection((2,), None, ROOT),
        SymbolCorrection((1,)),
    )


def test_place_symbols_fits_ink_into_the_page_at_writing_size() -> None:
    for ink, most in ((PAGE.ink, 60.0), ([(np.array([[0.0, 0.0], [1e4, 1.0]]),)], 1e9)):
        points = np.concatenate([stroke for strokes in place_symbols(ink, 800, 300) for stroke in strokes])
        assert (points >= 0).all() and (points <= [800, 300]).all()
        sizes = [np.ptp(np.concatenate(strokes), axis=0).max() for strokes in place_symbols(ink, 800, 300)]
        assert np.median(sizes) <= most + 1e-6


def test_drawings_read_respects_corrections(reader: PageReader, tmp_path: Path) -> None:
    drawings = Drawings(reader, tmp_path)
    plain = drawings.read(make_drawing())
    assert plain.transcript.text == "a(b+c)=d" and plain.heads.tolist() == PAGE.heads.tolist()
    changed = drawings.read(make_drawing(said=[{"parts": list(plain.symbols[2]), "label": "k", "head": []}]))
    assert changed.transcript.labels == ("a", "(", "k", "+", "c", ")", "=", "d")
    assert changed.heads.tolist() == [*PAGE.heads[:2], 0, *PAGE.heads[3:]]
    facts = changed.to_dict()["symbols"][2]
    assert (facts["label"], facts["read_as"], facts["head"], facts["read_head"]) == ("k", "b", 0, int(PAGE.heads[2]))


def test_drawings_read_accepts_dots_single_strokes_and_nothing(reader: PageReader, tmp_path: Path) -> None:
    drawings = Drawings(reader, tmp_path)
    assert drawings.read(parse_drawing({"parts": []})).to_dict()["symbols"] == []
    assert drawings.list_steps(parse_drawing({"parts": []}), confirmed=False) == {"steps": []}
    for stroke in ([[5, 5]], [[5, 5], [5, 5]], [[0, 0], [0, 50]]):
        facts = drawings.read(parse_drawing({"parts": [[stroke]]})).to_dict()
        assert len(facts["symbols"]) == 1 and json.dumps(facts, allow_nan=False)


def test_parse_step_costs_add_up_to_the_wrong_heads(reader: PageReader) -> None:
    """Transitions are deterministic, so Σ_t A*(s_t, a_t) is the loss for any gold tree."""
    for leaf, head in ((0, 2), (2, 2), (4, 6)):  # a, b and c have no dependents: any head gives a tree
        heads = PAGE.heads.copy()
        heads[leaf] = head
        page = replace(PAGE, heads=heads)
        steps = list_parse_steps(*reader.reads.make_parser(page), known=True)
        taken = [next(one for one in step["transitions"] if one["name"] == step["taken"]) for step in steps[:-1]]
        wrong = int((np.array(steps[-1]["heads"]) != heads).sum())
        assert sum(one["costs"] for one in taken) == wrong == 1
        assert taken[-1]["cost_to_go"] == wrong and taken[0]["cost_to_go"] - taken[0]["costs"] == 0
        for step in steps[:-1]:
            assert sum(one["probability"] for one in step["transitions"]) == pytest.approx(1, abs=1e-3)
            assert all(one["probability"] == 0 for one in step["transitions"] if not one["legal"])


def test_parse_steps_without_gold_tree_have_no_costs(reader: PageReader) -> None:
    steps = list_parse_steps(*reader.reads.make_parser(PAGE), known=False)
    assert all("costs" not in one for step in steps for one in step["transitions"])
    assert steps[0]["stack"] == [0] and steps[0]["buffer"] == 1 and steps[-1]["buffer"] == 0


def test_drawings_look_recovers_labels_and_heads_of_inkml(reader: PageReader, tmp_path: Path) -> None:
    drawings = Drawings(reader, tmp_path)
    found = drawings.import_file(to_inkml(PAGE, "a(b+c)=d"), "gold.inkml", 900, 400)
    assert found["confirmed"] and [one["label"] for one in found["said"]] == list(PAGE.symbols)
    read = drawings.read(parse_drawing(found))
    assert read.labels == PAGE.symbols and read.heads.tolist() == PAGE.heads.tolist()
    only_ink = drawings.import_file(to_inkml(PAGE, groups=False), "ink.inkml", 900, 400)
    assert not only_ink["confirmed"] and only_ink["said"] == []
    grouped = drawings.import_file(to_inkml(PAGE, labels=False), "groups.inkml", 900, 400)
    assert not grouped["confirmed"] and len(grouped["said"]) == 8


def test_drawings_keep_rejects_pages_without_a_tree(reader: PageReader, tmp_path: Path) -> None:
    drawings = Drawings(reader, tmp_path / "kept")
    two_roots = make_drawing(said=[{"parts": [0], "head": []}])
    with pytest.raises(DataError, match="depend on ROOT"):
        drawings.keep(two_roots, displayed_state(drawings, two_roots))
    with pytest.raises(DataError, match="the confirmed tree is not the displayed one"):
        drawings.keep(make_drawing(), displayed_state(drawings, two_roots))
    assert not (tmp_path / "kept").exists()


def test_drawings_keep_rejects_pages_without_labels(tmp_path: Path) -> None:
    class NamelessReader:
        """The paper's policy, without labels."""

        def read(self, pages: list[Page]) -> list[PageReading]:
            unsure = np.full(8, np.nan)
            one = PageReading(("?",) * 8, ("?",) * 8, unsure, PAGE.heads, unsure, np.nan, pages[0].boxes, ((),) * 8)
            return [one]

    drawings = Drawings(PageReader(NamelessReader()), tmp_path / "kept")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="symbol 1 has no label"):
        drawings.keep(make_drawing(), displayed_state(drawings, make_drawing()))
    corrections = [
        {"parts": list(parts), "label": name}
        for parts, name in zip(make_drawing().group_symbols(), PAGE.symbols, strict=True)
    ]
    named = make_drawing(said=corrections)
    assert drawings.keep(named, displayed_state(drawings, named))["name"] == "page-0001.inkml"
    assert b"head" not in drawings.export_inkml(make_drawing(), confirmed=False)


def test_drawings_example_gives_unlabeled_ink(reader: PageReader, tmp_path: Path) -> None:
    drawings = Drawings(reader, tmp_path)
    for seed in (0, 1, 999_999_999):
        found = drawings.make_example(seed, 800, 400)
        assert len(found["parts"]) > 3 and not found["said"] and not found["confirmed"]


def test_parse_command_prints_the_same_steps(
    reader: PageReader, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gold.inkml"
    file.write_bytes(to_inkml(PAGE))
    parsed = json.loads(said(["parse", str(file), "--steps", "--json"], capsys))
    assert len(parsed["steps"]) == 15 and parsed["steps"][0]["transitions"][0]["costs"] == 0
    lines = said(["parse", str(file), "--steps"], capsys).splitlines()
    assert (
        lines[-15].startswith("  0 shift") and "costs 0" in lines[-15] and lines[-15].endswith("ROOT | a ( b + c ) = d")
    )
    assert lines[-1].split()[:2] == ["14", "end"]


def test_draw_command_rejects_bad_ports_and_policies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert failure(["draw", "--port", "70000"], capsys)[0] == 2
    assert failure(["draw", "--policy", str(tmp_path / "nothing")], capsys)[0] in (65, 74)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, sentence = failure(["draw", "--port", str(port), "--no-browser"], capsys)
    assert code == 74 and f"port {port} of 127.0.0.1 cannot be used" in sentence and "--port" in sentence


def test_draw_command_without_uvicorn_names_the_package_to_install() -> None:
    script = "import sys; sys.modules['uvicorn'] = None; from aggrevated.cli import main; main(['draw'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "pages need uvicorn" in done.stderr
    assert "pip install './packages/reader'" in done.stderr
