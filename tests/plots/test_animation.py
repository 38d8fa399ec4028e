"""Pictures show the state they are given, and the GIF shows every trajectory to its end."""

from math import pi
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageColor, ImageFont

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError
from aggrevated.plots.animation import (
    CAPTION_HEIGHT,
    FRAMES,
    HOLD,
    MARGIN,
    PARTS_HEIGHT,
    TITLE_HEIGHT,
    TITLE_SIZE,
    Panel,
    describe_visible_parts,
    draw_frame,
    draw_panel,
    fade_to_gray,
    format_amount,
    quantize_frames,
    truncate_text,
    write_comparison_gif,
)
from aggrevated.plots.state_drawings import BLUE, GRAY, GREEN, ORANGE, PURPLE, STATE_DRAWERS, WIDTH, Canvas, draw_state
from aggrevated.reports.replay import find_drawable_simulator
from aggrevated.simulators import Simulator
from aggrevated.simulators.acrobot import Acrobot
from aggrevated.simulators.cartpole import CartPole
from aggrevated.tasks.acrobot_partial import make_partial_acrobot


def draw_cartpole(state: Array) -> Image.Image:
    return draw_state("cartpole", state, {})


def draw_acrobot(state: Array) -> Image.Image:
    return draw_state("acrobot", state, {})


def make_panel(steps: int, title: str = "learner", name: str = "cartpole") -> Panel:
    """Return a trajectory of the simulator that takes action 1 at every step, also after the end."""
    simulators: dict[str, Simulator] = {"cartpole": CartPole(), "acrobot": Acrobot()}
    simulator = simulators[name]
    state = simulator.reset(np.array([0]))
    states = []
    costs = []
    for _ in range(steps):
        states.append(state[0])
        state, cost, _ = simulator.step(state, np.array([1]))
        costs.append(cost[0])
    return Panel(title, np.array(states), np.array(costs))


def find_pixels(image: Image.Image, colour: str) -> Array:
    """Return x and y, [n, 2], of the pixels of this color, within the tolerance of shrinking."""
    away = np.abs(np.asarray(image, int) - ImageColor.getrgb(colour))
    rows, columns = np.nonzero((away <= 12).all(axis=2))
    return np.stack([columns, rows], axis=1)


def read_frames(path: Path) -> list[Image.Image]:
    """Return the displayed frames of a GIF."""
    with Image.open(path) as gif:
        frames = []
        for index in range(gif.n_frames):  # type: ignore[attr-defined]
            gif.seek(index)
            frames.append(gif.convert("RGB"))
        return frames


@pytest.mark.parametrize(("angle", "side"), [(0.2, 1), (-0.2, -1)])
def test_cartpole_drawing_leans_the_pole_to_the_side_of_its_angle(angle: float, side: int) -> None:
    image = draw_cartpole(np.array([0.0, 0.0, angle, 0.0]))
    pole = find_pixels(image, ORANGE)
    top = pole[pole[:, 1].argmin()]
    assert np.sign(top[0] - WIDTH / 2) == side
    # Half-way up the pole: 0.5 m from the axle, which is 0.26 m above the track.
    middle = (round(160 + 57 * 0.5 * np.sin(angle)), round(132 - 57 * (0.26 + 0.5 * np.cos(angle))))
    assert middle in map(tuple, pole)


@pytest.mark.parametrize("x", [-2.4, 0.0, 1.7, 2.4])
def test_cartpole_drawing_places_the_cart_inside_the_picture(x: float) -> None:
    axle = find_pixels(draw_cartpole(np.array([x, 0.0, 0.0, 0.0])), BLUE)
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
def test_acrobot_drawing_ends_links_where_the_angles_say(angles: tuple[float, float], tip: tuple[int, int]) -> None:
    image = draw_acrobot(np.array([*angles, 0.0, 0.0]))
    assert image.getpixel((160 + 52 * tip[0], 120 - 52 * tip[1])) == (
        255,
        255,
        255,
    )  # the white center of the last joint
    first = find_pixels(image, BLUE).mean(axis=0)
    second = find_pixels(image, ORANGE).mean(axis=0)
    elbow = np.array([np.sin(angles[0]), -np.cos(angles[0])])
    np.testing.assert_allclose(first, [160 + 26 * elbow[0], 120 - 26 * elbow[1]], atol=2)
    np.testing.assert_allclose(second, [160 + 26 * (elbow[0] + tip[0]), 120 - 26 * (elbow[1] + tip[1])], atol=2)


def test_acrobot_drawing_has_the_goal_line_one_meter_above_the_pivot() -> None:
    image = draw_acrobot(np.zeros(4))
    line = find_pixels(image.crop((0, 60, 280, 80)), GREEN)  # to the left of the label
    assert set(line[:, 1] + 60) <= {67, 68}
    assert line[:, 0].min() < 15 and line[:, 0].max() > 270


@pytest.mark.parametrize("name", list(STATE_DRAWERS))
def test_comparison_gif_has_requested_frames_loops_and_holds_the_last(name: str, tmp_path: Path) -> None:
    path = tmp_path / "watch.gif"
    write_comparison_gif(name, [make_panel(10, name=name), make_panel(8, "expert", name)], path, stride=3, fps=20)
    width, height = draw_state(name, np.zeros(4), {}).size
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
def test_comparison_gif_default_stride_limits_the_number_of_frames(
    steps: int, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(STATE_DRAWERS, "blank", lambda state: Canvas(height=4, origin=(0, 0), unit=1))
    write_comparison_gif("blank", [Panel("p", np.zeros((steps, 4)), np.ones(steps))], tmp_path / "watch.gif")
    assert len(read_frames(tmp_path / "watch.gif")) == count


def test_comparison_gif_shows_the_last_state_of_a_shorter_trajectory_in_gray(tmp_path: Path) -> None:
    shorter = make_panel(3)
    longer = make_panel(9, "expert")
    write_comparison_gif("cartpole", [shorter, longer], tmp_path / "watch.gif", stride=2)
    left = [frame.crop((0, 0, MARGIN + WIDTH, frame.height)) for frame in read_frames(tmp_path / "watch.gif")]
    assert len(find_pixels(left[1], ORANGE)) > 0, "at step 3 of 3 it has not ended yet"
    assert not any(len(find_pixels(image, ORANGE)) for image in left[2:])
    assert all(image.tobytes() == left[2].tobytes() for image in left[3:])


@pytest.fixture
def drawn_texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of texts drawn from now on."""
    texts: list[str] = []

    def record_text(self: object, place: object, text: str, *rest: object) -> None:
        texts.append(text)

    monkeypatch.setattr("PIL.ImageDraw.ImageDraw.text", record_text)
    return texts


def test_panel_of_an_ended_trajectory_says_so_and_shows_its_return(
    drawn_texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(STATE_DRAWERS, "blank", lambda state: Canvas(height=4, origin=(0, 0), unit=1))
    trajectory = Panel("learner", np.zeros((3, 4)), np.array([1.0, 0.5, 0.0]))
    for t in (0, 2, 3):
        draw_panel("blank", trajectory, t)
    assert drawn_texts[:3] == ["learner", "step 1", "return -1"]
    assert drawn_texts[3:6] == ["learner", "step 3", "return -1.5"]
    assert drawn_texts[6:] == ["learner", "ended at step 3", "return -1.5"]


def test_fade_to_gray_leaves_no_colors() -> None:
    pixels = np.asarray(fade_to_gray(draw_cartpole(np.zeros(4))))
    assert (pixels == pixels[..., :1]).all() and pixels.min() >= 127


def test_comparison_gif_palette_keeps_white_and_flat_colors(tmp_path: Path) -> None:
    write_comparison_gif("acrobot", [make_panel(6, name="acrobot")], tmp_path / "watch.gif")
    for image in read_frames(tmp_path / "watch.gif"):
        assert image.getpixel((0, 0)) == (255, 255, 255)
        assert all(len(find_pixels(image, colour)) > 100 for colour in (BLUE, ORANGE, GREEN))


def test_quantize_frames_keeps_colors_close_to_the_drawing() -> None:
    states = np.linspace([-1.5, 2.6, 5.0, -12.0], [2.8, -2.0, -13.0, 29.0], 12)
    panels = [Panel("p", states, np.ones(12), {"velocities": seen}) for seen in (True, False)]
    frames = [draw_frame("acrobot", panels, t) for t in range(12)]
    for drawn_frame, image in zip(frames, quantize_frames(frames), strict=True):
        assert np.abs(np.asarray(drawn_frame, int) - np.asarray(image.convert("RGB"), int)).max() <= 20


def test_truncate_text_fits_a_long_title_into_its_panel() -> None:
    font = ImageFont.load_default(TITLE_SIZE)
    assert truncate_text("expert", font, WIDTH) == "expert"
    short = truncate_text("a policy with a very long name " * 4, font, WIDTH)
    assert short.startswith("a policy") and short.endswith("…") and font.getlength(short) <= WIDTH


@pytest.mark.parametrize(("value", "text"), [(-0.0, "0"), (-0.04, "0"), (500.0, "500"), (-81, "-81"), (1.26, "1.3")])
def test_format_amount_rounds_to_one_decimal_without_negative_zero(value: float, text: str) -> None:
    assert format_amount(value) == text


def test_comparison_gif_refuses_an_unknown_simulator_and_lists_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'ant' cannot be drawn; those that can are cartpole, acrobot, hopper"):
        write_comparison_gif("ant", [make_panel(2)], tmp_path / "watch.gif")
    assert not list(tmp_path.iterdir())


SEEN = {"angles": True, "velocities": True}
HIDDEN = {"angles": True, "velocities": False}


def changed_pixels(state: tuple[float, ...], parts: dict[str, bool]) -> Array:
    """Return x and y, [n, 2], of the pixels that these parts change in the picture of an acrobot."""
    plain, complete = (
        np.asarray(draw_state("acrobot", np.array(state), drawn_parts), int) for drawn_parts in ({}, parts)
    )
    rows, columns = np.nonzero((np.abs(plain - complete) > 12).any(axis=2))
    return np.stack([columns, rows], axis=1)


def arrow_pixels(velocities: tuple[float, float], parts: dict[str, bool]) -> Array:
    """Return the pixels added to an acrobot that hangs, without the legend in the corner below."""
    pixels = changed_pixels((0.0, 0.0, *velocities), parts)
    return pixels[pixels[:, 1] < 205]


@pytest.mark.parametrize("parts", [SEEN, HIDDEN])
def test_acrobot_drawing_at_rest_has_no_arrow_except_the_legend(parts: dict[str, bool]) -> None:
    key = changed_pixels((0.0, 0.0, 0.0, 0.0), parts)
    assert len(key) > 100 and key[:, 1].min() > 205 and key[:, 0].min() > 0 and key[:, 0].max() < 110
    filled = len(find_pixels(draw_state("acrobot", np.zeros(4), parts), PURPLE))
    assert filled > 50 if parts["velocities"] else filled == 0


@pytest.mark.parametrize("parts", [SEEN, HIDDEN])
@pytest.mark.parametrize("side", [1, -1])
def test_acrobot_arrow_points_where_its_link_turns_and_grows_with_velocity(side: int, parts: dict[str, bool]) -> None:
    first = arrow_pixels((4.0 * side, 0.0), parts)
    second = arrow_pixels((0.0, 4.0 * side), parts)
    # Around the pivot at 0.5 m, and around the elbow, 1 m below it, at 0.7 m; half of the head is 8 pixels wide.
    for arrow, centre, radius in ((first, (160, 120), 26), (second, (160, 172), 36.4)):
        assert len(arrow) > 50 and (np.sign(arrow[:, 0] - 160) == side).all()
        assert np.abs(np.linalg.norm(arrow - centre, axis=1) - radius).max() < 11
    assert len(arrow_pixels((2.0 * side, 0.0), parts)) < len(first) < len(arrow_pixels((8.0 * side, 0.0), parts))


def test_acrobot_arrows_are_filled_if_observed_and_hollow_if_hidden() -> None:
    seen, hidden = (draw_state("acrobot", np.array([0.0, 0.0, 8.0, 0.0]), parts) for parts in (SEEN, HIDDEN))
    on_shaft = round(160 + 26 * np.sin(0.9)), round(120 + 26 * np.cos(0.9))
    assert on_shaft in map(tuple, find_pixels(seen, PURPLE))
    assert len(find_pixels(hidden, PURPLE)) == 0
    assert np.asarray(hidden)[on_shaft[::-1]].min() > max(ImageColor.getrgb(GRAY)) + 30


EXTREME = [(0.3, 0.0, 4.0, 9.0), (0.0, 0.0, 4 * pi, 9 * pi), (2.8, -2.0, -13.0, 29.0), (-1.5, 2.6, 5.0, -12.0)]


@pytest.mark.parametrize("state", EXTREME)
def test_acrobot_hollow_arrows_do_not_cover_the_links(state: tuple[float, ...]) -> None:
    plain, complete = (draw_state("acrobot", np.array(state), parts) for parts in ({}, HIDDEN))
    for colour in (BLUE, ORANGE):
        link, left = ({tuple(place) for place in find_pixels(image, colour)} for image in (plain, complete))
        assert len(link) > 100 and len(link - left) < 0.1 * len(link)  # edges blend with the background


@pytest.mark.parametrize("parts", [SEEN, HIDDEN])
@pytest.mark.parametrize("state", EXTREME)
def test_acrobot_arrows_stay_inside_the_picture(state: tuple[float, ...], parts: dict[str, bool]) -> None:
    x, y = changed_pixels(state, parts).T
    assert x.min() > 2 and x.max() < WIDTH - 3 and y.min() > 2 and y.max() < 240 - 3


def test_panel_only_names_parts_that_have_no_drawing(drawn_texts: list[str]) -> None:
    states = np.zeros((1, 4))
    plain, partly = (draw_panel("cartpole", Panel("p", states, np.ones(1), parts), 0) for parts in ({}, HIDDEN))
    assert [text for text in drawn_texts if "sees" in text] == ["sees: angles; hidden: velocities"]
    assert partly.height == plain.height + PARTS_HEIGHT


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (SEEN, "sees: angles, velocities"),
        (HIDDEN, "sees: angles; hidden: velocities"),
        ({"map": False, "walls": True, "goal": False}, "sees: walls; hidden: map, goal"),
        ({"card": False}, "sees: nothing; hidden: card"),
    ],
)
def test_describe_visible_parts_lists_visible_and_hidden_parts(parts: dict[str, bool], words: str) -> None:
    assert describe_visible_parts(parts) == words


def test_comparison_gif_refuses_panels_with_different_parts(tmp_path: Path) -> None:
    panels = [Panel("p", np.zeros((1, 4)), np.ones(1), parts) for parts in (SEEN, {})]
    with pytest.raises(AssertionError, match="same parts"):
        write_comparison_gif("acrobot", panels, tmp_path / "watch.gif")


def test_comparison_gif_of_partial_acrobot_hides_velocities_of_the_learner_only(tmp_path: Path) -> None:
    name, parts = find_drawable_simulator(make_partial_acrobot(horizon=5))
    assert (name, parts) == ("acrobot", HIDDEN) and find_drawable_simulator(Acrobot()) == ("acrobot", {})
    state = np.array([[0.5, 0.2, 1.0, 4.0]])
    panels = [Panel(title, state, np.ones(1), frame) for title, frame in (("learner", parts), ("expert", SEEN))]
    write_comparison_gif(name, panels, tmp_path / "watch.gif")
    (frame,) = read_frames(tmp_path / "watch.gif")
    learner = frame.crop((0, 0, MARGIN + WIDTH, frame.height))
    expert = frame.crop((MARGIN + WIDTH, 0, *frame.size))
    assert len(find_pixels(learner, PURPLE)) == 0 and len(find_pixels(expert, PURPLE)) > 100
