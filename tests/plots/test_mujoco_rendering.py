"""Pictures of robots: they show the state they are given; without a renderer there is one sentence."""

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
    """Skips where nothing can be drawn."""
    pytest.importorskip("mujoco")
    try:
        get_camera("hopper")
    except UsageError as error:
        pytest.skip(str(error))


def pixels(state, name="hopper"):
    return np.asarray(draw_state(name, state, {}), int)


@pytest.mark.parametrize("name", ["hopper", "walker"])
def test_a_picture_shows_the_state_and_nothing_else(renderer, name):
    simulator = MuJoCo(name)
    first, second = simulator.reset(np.array([0, 1]))
    shown = pixels(first, name)
    assert shown.shape == (HEIGHT, WIDTH, 3) and shown.std() > 10
    lifted = first.copy()
    lifted[2] += 0.3  # metres
    assert np.abs(pixels(lifted, name) - shown).max() > 50
    pixels(second, name)
    np.testing.assert_array_equal(pixels(first, name), shown)  # whatever was drawn in between


def test_the_camera_goes_along(renderer):
    """Four metres further on, the robot stands where it stood in the picture, and leans forward where it leans."""
    state = MuJoCo("hopper").reset(np.array([0]))[0]
    there = state.copy()
    leaning = state.copy()
    there[1] += 4.0
    leaning[3] += 0.5
    middle, moved, fallen = (brown(pixels(each)) for each in (state, there, leaning))
    np.testing.assert_allclose(moved, middle, atol=0.5)
    assert abs(middle[0] - WIDTH / 2) < 10 and abs(fallen[0] - middle[0]) > 10


def brown(shown):
    """(x, y): the middle of all that is brown, as the robot is and nothing else."""
    y, x = np.nonzero(shown[..., 0] > shown[..., 2] + 40)
    assert len(x) > 500
    return x.mean(), y.mean()


def test_to_draw_a_robot_changes_no_simulation(renderer):
    simulator = MuJoCo("hopper")
    state = simulator.reset(np.arange(3))
    action = np.full((3, 3), 0.5, np.float32)
    before = simulator.step(state, action)
    pixels(state[0])
    for found, expected in zip(simulator.step(state, action), before, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_an_animation_of_a_robot(renderer, tmp_path):
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
def test_without_a_renderer_there_is_one_sentence(monkeypatch, wanted):
    tried = []
    both = "egl: ImportError; osmesa: AttributeError"
    why = {"": both, "egl": "egl: ImportError", "osmesa": "osmesa: AttributeError", "glfw": both}

    def missing(name):
        tried.append(name)
        raise {"mujoco.egl": ImportError, "mujoco.osmesa": AttributeError}[name]("not here")

    monkeypatch.setenv("MUJOCO_GL", wanted)
    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(UsageError) as error:
        make_gl_context(10, 10)
    assert str(error.value) == (
        "a robot cannot be drawn here for want of a renderer: install EGL or OSMesa (Debian: libegl1 or libosmesa6), "
        f"and set MUJOCO_GL to egl or osmesa ({why[wanted]})"
    )
    both = ["mujoco.egl", "mujoco.osmesa"]
    assert tried == ([f"mujoco.{wanted}"] if f"mujoco.{wanted}" in both else both)
    assert mujoco_rendering.BACKENDS == ("egl", "osmesa")


def test_the_first_renderer_that_works_is_used(monkeypatch):
    class Works:
        class GLContext:
            def __init__(self, width, height):
                self.size = (width, height)
                self.current = False

            def make_current(self):
                self.current = True

    def only_software(name):
        if name == "mujoco.egl":
            raise ImportError
        return Works

    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(importlib, "import_module", only_software)
    made = make_gl_context(12, 34)
    assert made.size == (12, 34) and made.current
