"""The pictures show the state they are given, and the GIF shows every trajectory to its end."""

from collections.abc import Callable
from math import pi
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageColor, ImageFont

from aggrevated.arrays import Array
from aggrevated.errors import UsageError
from aggrevated.plots.animation import (
    CAPTION_HEIGHT,
    FRAMES,
    HOLD,
    MARGIN,
    TITLE_HEIGHT,
    TITLE_SIZE,
    Panel,
    amount,
    draw_panel,
    fitted,
    greyed,
    side_by_side,
)
from aggrevated.plots.drawings import BLUE, DRAWINGS, GREEN, ORANGE, WIDTH, acrobot, cartpole
from aggrevated.simulators import Simulator
from aggrevated.simulators.acrobot import Acrobot
from aggrevated.simulators.cartpole import CartPole


def panel(steps: int, title: str = "learner", name: str = "cartpole") -> Panel:
    """A trajectory through the simulator that takes action 1 all the time, done or not."""
    simulators: dict[str, Simulator] = {"cartpole": CartPole(), "acrobot": Acrobot()}
    simulator = simulators[name]
    state, states, costs = simulator.initial(np.array([0])), [], []
    for _ in range(steps):
        states.append(state[0])
        state, cost, _ = simulator.step(state, np.array([1]))
        costs.append(cost[0])
    return Panel(title, np.array(states), np.array(costs))


def places(image: Image.Image, colour: str) -> Array:
    """[n, 2]: x and y of the pixels of this colour, or so near to it that shrinking explains it."""
    away = np.abs(np.asarray(image, int) - ImageColor.getrgb(colour))
    rows, columns = np.nonzero((away <= 12).all(axis=2))
    return np.stack([columns, rows], axis=1)


def frames_of(path: Path) -> list[Image.Image]:
    """The frames of a GIF, as they are shown."""
    with Image.open(path) as gif:
        frames = []
        for index in range(gif.n_frames):  # type: ignore[attr-defined]
            gif.seek(index)
            frames.append(gif.convert("RGB"))
        return frames


@pytest.mark.parametrize(("angle", "side"), [(0.2, 1), (-0.2, -1)])
def test_the_pole_leans_to_the_side_of_its_angle(angle: float, side: int) -> None:
    image = cartpole(np.array([0.0, 0.0, angle, 0.0]))
    pole = places(image, ORANGE)
    top = pole[pole[:, 1].argmin()]
    assert np.sign(top[0] - WIDTH / 2) == side
    # Half-way up the pole: 0.5 m from the axle, which is 0.26 m above the track.
    middle = (round(160 + 57 * 0.5 * np.sin(angle)), round(132 - 57 * (0.26 + 0.5 * np.cos(angle))))
    assert middle in map(tuple, pole)


@pytest.mark.parametrize("x", [-2.4, 0.0, 1.7, 2.4])
def test_the_cart_is_where_the_state_says_and_wholly_in_the_picture(x: float) -> None:
    axle = places(cartpole(np.array([x, 0.0, 0.0, 0.0])), BLUE)
    assert axle[:, 0].mean() == pytest.approx(160 + 57 * x, abs=1)
    assert WIDTH / 2 > 57 * (2.4 + 0.25)


@pytest.mark.parametrize(
    ("angles", "tip"),
    [
        ((0, 0), (0, -2)),
        ((pi, 0), (0, 2)),
        ((pi / 2, 0), (2, 0)),
        ((pi / 2, pi / 2), (1, 1)),
        ((pi / 2, -pi / 2), (1, -1)),
    ],
)
def test_the_links_of_the_acrobot_end_where_its_angles_say(angles: tuple[float, float], tip: tuple[int, int]) -> None:
    image = acrobot(np.array([*angles, 0.0, 0.0]))
    assert image.getpixel((160 + 52 * tip[0], 120 - 52 * tip[1])) == (255, 255, 255)  # the white of the last joint
    first, second = places(image, BLUE).mean(axis=0), places(image, ORANGE).mean(axis=0)
    elbow = np.array([np.sin(angles[0]), -np.cos(angles[0])])
    np.testing.assert_allclose(first, [160 + 26 * elbow[0], 120 - 26 * elbow[1]], atol=2)
    np.testing.assert_allclose(second, [160 + 26 * (elbow[0] + tip[0]), 120 - 26 * (elbow[1] + tip[1])], atol=2)


def test_the_goal_line_is_one_metre_above_the_pivot() -> None:
    image = acrobot(np.zeros(4))
    line = places(image.crop((0, 60, 280, 80)), GREEN)  # to the left of the word
    assert set(line[:, 1] + 60) <= {67, 68}
    assert line[:, 0].min() < 15 and line[:, 0].max() > 270


@pytest.mark.parametrize("name", list(DRAWINGS))
def test_the_gif_has_the_frames_asked_for_loops_and_holds_the_last(name: str, tmp_path: Path) -> None:
    path = tmp_path / "watch.gif"
    side_by_side(name, [panel(10, name=name), panel(8, "expert", name)], path, stride=3, fps=20)
    width, height = DRAWINGS[name](np.zeros(4)).size
    with Image.open(path) as gif:
        assert gif.size == (3 * MARGIN + 2 * width, 2 * MARGIN + TITLE_HEIGHT + height + CAPTION_HEIGHT)
        assert gif.n_frames == 4  # type: ignore[attr-defined]  # steps 0, 3, 6 and 9
        assert gif.info["loop"] == 0 and gif.info["duration"] == 50
        gif.seek(3)
        assert gif.info["duration"] == HOLD
    assert [file.name for file in tmp_path.iterdir()] == ["watch.gif"]


@pytest.mark.parametrize(
    ("steps", "count"), [(1, 1), (2, 2), (FRAMES, FRAMES), (FRAMES + 1, 64), (4 * FRAMES, FRAMES + 1)]
)
def test_the_default_stride_keeps_the_number_of_frames_down(
    steps: int, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dot(state: Array) -> Image.Image:
        return Image.new("RGB", (100, 4), "white")

    monkeypatch.setitem(DRAWINGS, "dot", dot)
    side_by_side("dot", [Panel("p", np.zeros((steps, 4)), np.ones(steps))], tmp_path / "watch.gif")
    assert len(frames_of(tmp_path / "watch.gif")) == count


def test_a_shorter_trajectory_stays_at_its_last_state_greyed(tmp_path: Path) -> None:
    short, long = panel(3), panel(9, "expert")
    side_by_side("cartpole", [short, long], tmp_path / "watch.gif", stride=2)
    left = [frame.crop((0, 0, MARGIN + WIDTH, frame.height)) for frame in frames_of(tmp_path / "watch.gif")]
    assert len(places(left[1], ORANGE)) > 0, "at step 3 of 3 it has not ended yet"
    assert not any(len(places(image, ORANGE)) for image in left[2:])
    assert all(image.tobytes() == left[2].tobytes() for image in left[3:])


def test_an_ended_panel_says_so_and_shows_the_return_it_got(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def overheard(self: object, place: object, text: str, *rest: object) -> None:
        said.append(text)

    monkeypatch.setattr("PIL.ImageDraw.ImageDraw.text", overheard)
    blank: Callable[[Array], Image.Image] = lambda state: Image.new("RGB", (100, 10))  # noqa: E731
    trajectory = Panel("learner", np.zeros((3, 4)), np.array([1.0, 0.5, 0.0]))
    for t in (0, 2, 3):
        draw_panel(blank, trajectory, t)
    assert said[:3] == ["learner", "step 1", "return -1"]
    assert said[3:6] == ["learner", "step 3", "return -1.5"]
    assert said[6:] == ["learner", "ended at step 3", "return -1.5"]


def test_a_greyed_picture_has_no_colours_left() -> None:
    pixels = np.asarray(greyed(cartpole(np.zeros(4))))
    assert (pixels == pixels[..., :1]).all() and pixels.min() >= 127


def test_white_and_the_flat_colours_survive_the_palette(tmp_path: Path) -> None:
    side_by_side("acrobot", [panel(6, name="acrobot")], tmp_path / "watch.gif")
    for image in frames_of(tmp_path / "watch.gif"):
        assert image.getpixel((0, 0)) == (255, 255, 255)
        assert all(len(places(image, colour)) > 100 for colour in (BLUE, ORANGE, GREEN))


def test_a_long_title_is_shortened_to_its_panel() -> None:
    font = ImageFont.load_default(TITLE_SIZE)
    assert fitted("expert", font, WIDTH) == "expert"
    short = fitted("a policy with a very long name " * 4, font, WIDTH)
    assert short.startswith("a policy") and short.endswith("…") and font.getlength(short) <= WIDTH


@pytest.mark.parametrize(("value", "text"), [(-0.0, "0"), (-0.04, "0"), (500.0, "500"), (-81, "-81"), (1.26, "1.3")])
def test_amounts(value: float, text: str) -> None:
    assert amount(value) == text


def test_an_unknown_simulator_is_named_with_those_that_can_be_drawn(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'walker' cannot be drawn; those that can are cartpole, acrobot"):
        side_by_side("walker", [panel(2)], tmp_path / "watch.gif")
    assert not list(tmp_path.iterdir())
