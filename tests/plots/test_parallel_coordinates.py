"""The figure of a sweep: drawn whatever its trials are like, and the same file again."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from aggrevated.plots.parallel_coordinates import (
    BELOW,
    Setting,
    axis_position,
    axis_ticks,
    plot_parallel_coordinates,
    spread_equal_choices,
)

RATE = Setting("learning-rate", [1e-4, 1e-2, None, 1e-1], 1e-4, 1e-1, True, importance=0.5, best="0.01")
UPDATE = Setting("update", ["regular", "regular", "natural", "regular"], choices=("natural", "regular"), best="regular")


def test_it_is_drawn_and_the_same_again(tmp_path: Path) -> None:
    for name in ("one", "other"):
        plot_parallel_coordinates([RATE, UPDATE], [1.0, 3.0, 2.0, None], "A sweep", "return", tmp_path / name)
    for ending in ("png", "svg"):
        assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"other.{ending}").read_bytes()
    picture = np.asarray(Image.open(tmp_path / "one.png").convert("RGB"), int)
    orange = np.abs(picture - [0xD5, 0x5E, 0x00]).sum(axis=2) < 30
    assert orange.sum() > 500  # the best line is in front
    text = (tmp_path / "one.svg").read_text()
    assert all(words in text for words in ("learning-rate", "no effect", "failed", "ε²"))


@pytest.mark.parametrize("scores", [[1.0], [2.0, 2.0, 2.0], [None, -5.0], [1.0, None, None]])
def test_few_or_equal_or_failed_trials_are_drawn(tmp_path: Path, scores: list[float | None]) -> None:
    setting = Setting("alpha_start", [0.5] * len(scores), 0.0, 1.0, best="0.5")
    plot_parallel_coordinates([setting], scores, "A sweep", "return", tmp_path / "figure")
    assert (tmp_path / "figure.png").is_file()


def test_places_are_logarithmic_where_the_range_is() -> None:
    assert [round(axis_position(RATE, value), 6) for value in (1e-4, 1e-3, 1e-1)] == [0.0, 0.333333, 1.0]
    assert axis_position(RATE, None) == BELOW and axis_position(UPDATE, "regular") == 0.75
    assert [words for _, words in axis_ticks(RATE)] == ["0.0001", "0.001", "0.01", "0.1"]
    for low, high, words in ((2, 5, ["2", "5"]), (2, 50, ["2", "10", "50"]), (9.9, 200, ["9.9", "100", "200"])):
        assert [tick for _, tick in axis_ticks(Setting("x", [], low, high, True))] == words
    assert len(axis_ticks(Setting("x", [], 1e-12, 1.0, True))) == 7


def test_lines_through_one_choice_lie_side_by_side_by_score() -> None:
    places = spread_equal_choices(UPDATE, np.array([1.0, 3.0, 2.0, np.nan]))
    assert places[3] < places[0] < places[1] and abs(places[1] - places[3]) < 0.1 and places[2] == 0.25
