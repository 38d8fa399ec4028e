"""Pictures of robots show the state they are given; without a renderer there is a one-sentence error."""

import importlib

import numpy as np
import pytest
from PIL import Image

from aggrevated.core.errors import UsageError
from aggrevated.plots import mujoco_rendering
from aggrevated.plots.animation import Panel, write_comparison_gif
from aggrevated.plots.mujoco_rendering import HEIGHT, WIDTH, get_camera, make_gl_context
from aggrevated.plots.state_drawings import draw_state
from aggrevated.simulators.mujoco import MuJoCo


@pytest.fixture
def renderer():
    """Skip the test if no renderer is available."""
    pytest.importorskip("mujoco")
    try:
        get_camera("hopper")
    except UsageError as error:
        pytest.skip(str(error))


def draw_pixels(state, name="hopper"):
    return np.asarray(draw_state(name, state, {}), int)


@pytest.mark.parametrize("name", ["hopper", "walker"])
def test_mujoco_picture_depends_on_the_state_alone(renderer, name):
    simulator = MuJoCo(name)
    first, second = simulator.reset(np.array([0, 1]))
    pixels = draw_pixels(first, name)
    assert pixels.shape == (HEIGHT, WIDTH, 3) and pixels.std() > 10
    lifted = first.copy()
    lifted[2] += 0.3  # meters
    assert np.abs(draw_pixels(lifted, name) - pixels).max() > 50
    draw_pixels(second, name)
    np.testing.assert_array_equal(draw_pixels(first, name), pixels)  # independent of pictures drawn in between


def test_mujoco_camera_follows_the_robot(renderer):
    """Four meters further on, the robot stands at the same place in the picture, and leans forward where it leans."""
    state = MuJoCo("hopper").reset(np.array([0]))[0]
    there = state.copy()
    leaning = state.copy()
    there[1] += 4.0
    leaning[3] += 0.5
    middle, moved, fallen = (find_robot(draw_pixels(each)) for each in (state, there, leaning))
    np.testing.assert_allclose(moved, middle, atol=0.5)
    assert abs(middle[0] - WIDTH / 2) < 10 and abs(fallen[0] - middle[0]) > 10


def find_robot(pixels):
    """Return (x, y), the center of all brown pixels, which only the robot has."""
    y, x = np.nonzero(pixels[..., 0] > pixels[..., 2] + 40)
    assert len(x) > 500
    return x.mean(), y.mean()


def test_mujoco_drawing_does_not_change_the_simulation(renderer):
    simulator = MuJoCo("hopper")
    state = simulator.reset(np.arange(3))
    action = np.full((3, 3), 0.5, np.float32)
    before = simulator.step(state, action)
    draw_pixels(state[0])
    for found, expected in zip(simulator.step(state, action), before, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_comparison_gif_of_a_mujoco_robot_has_all_frames(renderer, tmp_path):
    simulator = MuJoCo("hopper")
    state = simulator.reset(np.array([0]))
    states = []
    for _ in range(3):
        states.append(state[0])
        state, _, _ = simulator.step(state, np.ones((1, 3), np.float32))
    write_comparison_gif("hopper", [Panel("learner", np.array(states), -np.ones(3))], tmp_path / "hopper.gif", 1, 10)
    with Image.open(tmp_path / "hopper.gif") as gif:
        assert gif.n_frames == 3 and gif.width >= WIDTH


@pytest.mark.parametrize("wanted", ["", "egl", "osmesa", "glfw"])
def test_make_gl_context_without_a_renderer_raises_one_sentence(monkeypatch, wanted):
    tried = []
    both = "egl: ImportError; osmesa: AttributeError"
    why = {"": both, "egl": "egl: ImportError", "osmesa": "osmesa: AttributeError", "glfw": both}

    def raise_missing(name):
        tried.append(name)
        raise {"mujoco.egl": ImportError, "mujoco.osmesa": AttributeError}[name]("not here")

    monkeypatch.setenv("MUJOCO_GL", wanted)
    monkeypatch.setattr(importlib, "import_module", raise_missing)
    with pytest.raises(UsageError) as error:
        make_gl_context(10, 10)
    assert str(error.value) == (
        "robots cannot be drawn without a renderer: install EGL or OSMesa (Debian: libegl1 or libosmesa6), "
        f"and set MUJOCO_GL to egl or osmesa ({why[wanted]})"
    )
    both = ["mujoco.egl", "mujoco.osmesa"]
    assert tried == ([f"mujoco.{wanted}"] if f"mujoco.{wanted}" in both else both)
    assert mujoco_rendering.BACKENDS == ("egl", "osmesa")


def test_make_gl_context_uses_the_first_backend_that_works(monkeypatch):
    class Works:
        class GLContext:
            def __init__(self, width, height):
                self.size = (width, height)
                self.current = False

            def make_current(self):
                self.current = True

    def import_osmesa_only(name):
        if name == "mujoco.egl":
            raise ImportError
        return Works

    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(importlib, "import_module", import_osmesa_only)
    made = make_gl_context(12, 34)
    assert made.size == (12, 34) and made.current
