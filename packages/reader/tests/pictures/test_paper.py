"""Paper with ruled lines, tables, stains and tilts, each alone and with a known answer; and doubts."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from aggrevated.parsing.pages.handwriting import write_page
from aggrevated_reader.pictures.binarization import extract_ink
from aggrevated_reader.pictures.deskew import estimate_tilt, make_deskew_matrix, rotate_strokes
from aggrevated_reader.pictures.page_crop import flatten_sheet
from aggrevated_reader.pictures.ruled_lines import estimate_line_tilt, remove_ruled_lines
from aggrevated_reader.pictures.segmentation import segment_page
from aggrevated_reader.pictures.thresholds import compute_ink_depth, compute_ink_mask, is_inverted
from aggrevated_reader.pictures.warnings import find_warnings


def draw_lines(
    *lines: tuple[tuple[int, int], tuple[int, int]], size: tuple[int, int] = (600, 400), wide: int = 3
) -> Image.Image:
    picture = Image.new("L", size, 255)
    pen = ImageDraw.Draw(picture)
    for line in lines:
        pen.line(list(line), 0, wide)
    return picture


STROKE = ((300, 60), (310, 340))
RULES = tuple(((0, y), (599, y)) for y in range(50, 400, 60))


def test_remove_ruled_lines_keeps_a_stroke_that_crosses_them() -> None:
    ink = np.asarray(draw_lines(STROKE, *RULES)) < 128
    alone = np.asarray(draw_lines(STROKE)) < 128
    left, count = remove_ruled_lines(ink, ink * 255.0)
    assert count == len(RULES) and (left & ~alone).sum() < 30 and (alone & ~left).sum() < 30


def test_remove_ruled_lines_removes_squared_paper() -> None:
    down = tuple(((x, 0), (x, 399)) for x in range(40, 600, 60))
    ink = np.asarray(draw_lines(((330, 100), (420, 300)), *RULES, *down)) < 128
    left, count = remove_ruled_lines(ink, ink * 255.0)
    assert count == len(RULES) + len(down) and 300 < left.sum() < 1_000


def test_remove_ruled_lines_restores_a_darker_stroke_along_a_line() -> None:
    picture = draw_lines(*RULES)
    depth = np.where(np.asarray(picture) < 128, 90.0, 0.0)
    stroke = np.asarray(draw_lines(((200, 110), (300, 110)), ((220, 150), (280, 240)))) < 128
    depth[stroke] = 220.0
    left, _ = remove_ruled_lines(depth > 40, depth)
    assert (left == stroke).mean() > 0.999


def test_remove_ruled_lines_keeps_fraction_bars() -> None:
    ink = np.asarray(draw_lines(((60, 200), (540, 200)), ((300, 60), (300, 150)), ((300, 250), (300, 340)))) < 128
    left, count = remove_ruled_lines(ink, ink * 255.0)
    assert count == 0 and (left == ink).all()


def test_estimate_line_tilt_finds_the_tilt_of_ruled_paper() -> None:
    for degrees in (-25.0, -3.0, 8.0):
        ink = np.asarray(draw_lines(STROKE, *RULES).rotate(-degrees, Image.Resampling.BICUBIC, fillcolor=255)) < 128
        assert estimate_line_tilt(ink) == pytest.approx(degrees, abs=0.3)
    assert estimate_line_tilt(np.asarray(draw_lines(STROKE)) < 128) == 0.0


def test_ink_depth_ignores_shadow_edges_and_keeps_thin_ink() -> None:
    level = np.asarray(draw_lines(((50, 200), (550, 230)), wide=1)).astype(float) * 0.9
    level[:, 300:] *= 0.4
    depth = compute_ink_depth(level.astype(np.uint8))
    ink = compute_ink_mask(depth, 200.0)
    assert ink[:190].sum() == 0 and ink[240:].sum() == 0 and (ink.any(axis=0)[52:548]).all()


def test_is_inverted_distinguishes_dark_paper_from_shadow() -> None:
    level = np.asarray(draw_lines(*((((60 * k, 50)), (60 * k + 20, 350)) for k in range(1, 9)), wide=6))
    assert not is_inverted(level) and is_inverted(255 - level) and not is_inverted((level * 0.4).astype(np.uint8))


def test_flatten_sheet_rectifies_a_sheet_and_maps_points_back() -> None:
    picture = Image.new("L", (800, 600), 40)
    corners = [(150, 90), (650, 130), (690, 520), (110, 480)]
    pen = ImageDraw.Draw(picture)
    pen.polygon(corners, 230)
    pen.ellipse((390, 290, 400, 300), fill=0)
    flat, matrix = flatten_sheet(picture)
    assert np.asarray(flat).min() < 60 and (np.asarray(flat) > 200).mean() > 0.99
    y, x = np.argwhere(np.asarray(flat) < 60).mean(axis=0)
    back = matrix @ (x, y, 1)
    assert back[:2] / back[2] == pytest.approx([395, 295], abs=2)
    plain = draw_lines(STROKE)
    assert flatten_sheet(plain)[0] is plain


@pytest.mark.parametrize("degrees", [-28.0, 15.0, 30.0])
def test_estimate_tilt_finds_the_tilt_of_writing(degrees: float) -> None:
    page = write_page(["10(x+2)=a+b", "c×d=e/4"], writer=4, seed=1)
    assert estimate_tilt(page.ink) == 0.0
    tilted = rotate_strokes(page.ink, make_deskew_matrix(-degrees))
    assert estimate_tilt(tilted) == pytest.approx(degrees, abs=2)


def test_segment_page_maps_points_to_picture_coordinates(tmp_path: Path) -> None:
    picture = draw_lines(
        *((((70 * k, 100 + 20 * k)), (70 * k + 10, 160 + 20 * k)) for k in range(1, 8)), size=(700, 500)
    )
    picture.save(tmp_path / "page.png")
    seen = segment_page(tmp_path / "page.png")
    first = seen.map_to_picture(np.concatenate(seen.page.ink[0]))
    assert seen.doubts == () and len(seen.page) == 7
    assert first.min(axis=0) == pytest.approx([70, 120], abs=3) and first.max(axis=0) == pytest.approx([80, 180], abs=3)


def test_extract_ink_leaves_out_blots_and_specks_with_a_warning() -> None:
    picture = draw_lines(((100, 60), (100, 160)), ((200, 60), (230, 160)), ((300, 60), (280, 160)))
    pen = ImageDraw.Draw(picture)
    pen.ellipse((400, 60, 430, 90), fill=0)
    for k in range(20):
        pen.rectangle((30 * k, 250, 30 * k + 2, 252), fill=0)
    found = extract_ink(picture)
    assert len(found.parts) == 3
    assert found.doubts == ("1 blots were left out", "20 specks were left out")


def test_find_warnings_reports_text_sizes_and_wide_symbols() -> None:
    def make_square(left: float, top: float, wide: float, high: float) -> tuple[np.ndarray, ...]:
        return (np.array([[left, top], [left + wide, top], [left, top + high], [left + wide, top + high]]),)

    row = [make_square(60.0 * k, 0, 40, 50) for k in range(30)]
    assert find_warnings(row[:6]) == ()
    assert "it looks like text" in find_warnings(row)[0]
    assert "far more than a page of algebra" in find_warnings(row * 6)[0]
    assert "may be several that touch" in find_warnings([*row[:6], make_square(400, 0, 150, 80)])[0]
    sizes = [make_square(400.0 * k, 0, 40 * 3.0**k, 50 * 3.0**k) for k in range(5)]
    assert any("very different sizes" in doubt for doubt in find_warnings(sizes))
