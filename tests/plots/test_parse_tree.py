"""The drawing of a tree has every arc, every number and all ink, all inside the picture."""

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageColor

from aggrevated.core.errors import UsageError
from aggrevated.parsing.pages.handwriting import write_page
from aggrevated.parsing.pages.page import Page
from aggrevated.plots.parse_tree import (
    ARC,
    BUFFER,
    ROOT,
    STACK,
    WRONG,
    Frame,
    compute_arc_levels,
    compute_arcs_height,
    draw_growth,
    draw_tree,
)

SHORT = write_page(["x=3+a"], writer=3, seed=5)
LONG = write_page(["10(x+2)=a+b-4(y-7)", "10x+20=a+b-4y+28", "x=(a+b-4y+8)/10"], writer=7, seed=3)


def count_pixels(path: Path, colour: str) -> int:
    """Return the number of pixels of path.png with this color."""
    picture = np.asarray(Image.open(path.with_name(f"{path.name}.png")).convert("RGB"), int)
    return int((np.abs(picture - ImageColor.getrgb(colour)).max(axis=-1) < 8).sum())


def count_arrows(path: Path, colour: str) -> int:
    """Return the number of arrow heads of this color in path.svg, which are filled."""
    svg = path.with_name(f"{path.name}.svg").read_text()
    return len(re.findall(rf'fill: {colour.lower()};[^"]*stroke: {colour.lower()}; stroke-width: 1.2', svg))


def count_border_pixels(path: Path) -> int:
    """Return the number of pixels of the border, two pixels wide, that are not white."""
    picture = np.asarray(Image.open(path.with_name(f"{path.name}.png")).convert("L"))
    inside = picture[2:-2, 2:-2]
    return int((picture < 250).sum() - (inside < 250).sum())


@pytest.mark.parametrize("page", [SHORT, LONG], ids=["short", "long"])
def test_draw_tree_draws_every_arc_inside_the_picture(tmp_path: Path, page: object) -> None:
    assert isinstance(page, type(SHORT))
    path = tmp_path / "tree"
    draw_tree(page, page.heads, path, title="a rather long title that must be made to fit into the width of the figure")
    assert count_arrows(path, ARC) == len(page) - 1 and count_arrows(path, ROOT) == 1 and count_arrows(path, WRONG) == 0
    assert count_border_pixels(path) == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["tree.png", "tree.svg"]


def test_draw_tree_colors_and_counts_arcs_that_differ_from_gold(tmp_path: Path) -> None:
    wrong = LONG.heads.copy()
    wrong[[5, 20, 30]] = [2, 25, 33]
    differ = int((wrong != LONG.heads).sum())
    assert differ == 3
    draw_tree(LONG, wrong, tmp_path / "tree", gold=LONG.heads)
    assert count_arrows(tmp_path / "tree", WRONG) == differ and count_border_pixels(tmp_path / "tree") == 0
    draw_tree(LONG, LONG.heads, tmp_path / "same", gold=LONG.heads)
    assert count_arrows(tmp_path / "same", WRONG) == 0 and count_pixels(tmp_path / "same", WRONG) > 0  # in the legend


def test_draw_tree_writes_identical_files_for_identical_trees(tmp_path: Path) -> None:
    for name in ("one", "two"):
        draw_tree(SHORT, SHORT.heads, tmp_path / name)
    for ending in ("png", "svg"):
        assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()


def test_arc_levels_nest_and_arcs_of_one_level_do_not_overlap() -> None:
    levels = compute_arc_levels(LONG.heads)
    spans = {n: sorted((n, int(LONG.heads[n - 1]))) for n in levels}
    for level in Counter(levels.values()):
        same = sorted(spans[n] for n in levels if levels[n] == level)
        assert all(left[1] <= right[0] for left, right in pairwise(same))
    assert compute_arc_levels(np.array([2, 0, 2])) == {1: 1, 3: 1} and compute_arc_levels(np.array([3, 1, 0])) == {
        2: 1,
        1: 2,
    }
    assert (
        compute_arcs_height(np.array([-1, -1]))
        < compute_arcs_height(np.array([2, -1]))
        < compute_arcs_height(np.array([2, 0]))
    )


def test_draw_tree_draws_crossing_arcs_and_several_roots(tmp_path: Path) -> None:
    heads = np.array([3, 4, 0, 0, 2])
    levels = compute_arc_levels(heads)
    assert len({levels[1], levels[2], levels[5]}) == 3
    draw_tree(SHORT, heads, tmp_path / "tree", gold=SHORT.heads)
    assert count_border_pixels(tmp_path / "tree") == 0


def make_unlabeled_page(name: str, ink: list[tuple[np.ndarray, ...]]) -> Page:
    """Return a page of which only the ink is known."""
    return Page(name, "", ("?",) * len(ink), np.zeros(len(ink), np.int64), tuple(ink))


def test_draw_tree_draws_dots_lines_and_empty_pages(tmp_path: Path) -> None:
    dot = (np.array([[5.0, 5.0]]),)
    line = (np.array([[0.0, 0.0], [0.0, 9.0]]), np.array([[0.0, 9.0], [0.0, 10.0]]))
    draw_tree(make_unlabeled_page("dots", [line, dot]), np.array([0, 1]), tmp_path / "with")
    draw_tree(make_unlabeled_page("line", [line, line]), np.array([0, 1]), tmp_path / "without")
    assert count_pixels(tmp_path / "with", "#1F2937") > 20
    draw_tree(make_unlabeled_page("empty", []), np.zeros(0, int), tmp_path / "empty")


def make_frames() -> list[Frame]:
    none = np.full(5, -1)
    first = none.copy()
    last = SHORT.heads.copy()
    first[0] = 2
    return [
        (none, [0], 1, "begin"),
        (none, [0, 1], 2, "shift"),
        (first, [0], 2, "left"),
        (first, [0, 2, 3], 4, "shift"),
        (last, [0], 6, "right"),
    ]


def test_draw_growth_shows_stack_buffer_and_arcs_of_each_frame(tmp_path: Path) -> None:
    draw_growth(SHORT, make_frames(), tmp_path / "growth", title="x = 3 + a")
    assert count_arrows(tmp_path / "growth", ARC) == 0 + 0 + 1 + 1 + 4 and count_arrows(tmp_path / "growth", ROOT) == 1
    svg = (tmp_path / "growth.svg").read_text()
    tints = Counter(re.findall(r"fill: (#[0-9a-f]{6})", svg))
    assert tints[STACK.lower()] == 1 + 2 + 1 and tints[BUFFER.lower()] == 5 + 4 + 4 + 2 + 1  # one each in the legend
    assert count_border_pixels(tmp_path / "growth") == 0


def test_draw_growth_draws_long_pages_in_one_column(tmp_path: Path) -> None:
    none = np.full(len(LONG), -1)
    draw_growth(LONG, [(none, [0], 1, "begin"), (LONG.heads, [0], len(LONG) + 1, "right")], tmp_path / "growth")
    with Image.open(tmp_path / "growth.png") as picture:
        width, tall = picture.size
    assert width > 2 * tall and count_border_pixels(tmp_path / "growth") == 0


def test_draw_tree_and_draw_growth_refuse_heads_that_do_not_fit_the_page(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"pass 5 heads, one per symbol, each from 0 to 5"):
        draw_tree(SHORT, LONG.heads, tmp_path / "tree")
    with pytest.raises(UsageError, match=r"pass 5 heads"):
        draw_tree(SHORT, SHORT.heads, tmp_path / "tree", gold=np.array([9, 0, 0, 0, 0]))
    with pytest.raises(UsageError, match=r"there are no frames to draw: pass at least one configuration"):
        draw_growth(SHORT, [], tmp_path / "growth")
