"""Images of robots by MuJoCo's renderer without a window: EGL, or OSMesa in software."""

import importlib
import os
from functools import cache
from typing import Any

import numpy as np
from PIL import Image

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError
from aggrevated.simulators.mujoco import MuJoCo

WIDTH = 320
HEIGHT = 240
EYES = 0.72  # meters above the ground
SMOOTHING = 2  # rendered pixels per final pixel in each direction
BACKENDS = ("egl", "osmesa")


class Camera:
    """A camera that films a robot from the side and moves along with it."""

    def __init__(self, simulator: MuJoCo) -> None:
        physics = simulator.physics
        self.mujoco = physics.mujoco
        self.model = physics.model
        self.whole = physics.whole
        mujoco = self.mujoco
        size = (WIDTH * SMOOTHING, HEIGHT * SMOOTHING)
        self.model.vis.global_.offwidth, self.model.vis.global_.offheight = size
        self.data = mujoco.MjData(self.model)
        self.context = make_gl_context(*size)
        self.target = mujoco.MjrContext(self.model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self.target)
        self.scene = mujoco.MjvScene(self.model, maxgeom=1000)
        self.options = mujoco.MjvOption()
        self.view = mujoco.MjvCamera()
        self.view.azimuth = 90.0
        self.view.elevation = -8.0
        self.view.distance = 2.4

    def render(self, state: Array) -> Image.Image:
        """Return an image of the robot in this state [S]."""
        mujoco = self.mujoco
        mujoco.mj_setState(self.model, self.data, state, self.whole)
        mujoco.mj_forward(self.model, self.data)
        self.view.lookat[:] = self.data.qpos[0], 0.0, EYES
        categories = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(self.model, self.data, self.options, None, self.view, categories, self.scene)
        pixels = np.empty((HEIGHT * SMOOTHING, WIDTH * SMOOTHING, 3), np.uint8)
        area = mujoco.MjrRect(0, 0, pixels.shape[1], pixels.shape[0])
        mujoco.mjr_render(area, self.scene, self.target)
        mujoco.mjr_readPixels(pixels, None, area, self.target)
        return Image.fromarray(np.ascontiguousarray(pixels[::-1])).resize((WIDTH, HEIGHT), Image.Resampling.BOX)


@cache
def get_camera(name: str) -> Camera:
    """Return this process's camera for a robot."""
    return Camera(MuJoCo(name, threads=1))


def make_gl_context(width: int, height: int) -> Any:
    """Return an OpenGL context without a window, made current: MUJOCO_GL's, or the first that works.

    Raises:
        UsageError: no backend works.
    """
    requested = os.environ.get("MUJOCO_GL", "").lower()
    failures = []
    for backend in (requested,) if requested in BACKENDS else BACKENDS:
        try:
            context = importlib.import_module(f"mujoco.{backend}").GLContext(width, height)
            context.make_current()
            return context
        except Exception as error:  # backends fail with errors from ImportError to AttributeError
            failures.append(f"{backend}: {type(error).__name__}")
    raise UsageError(
        "robots cannot be drawn without a renderer: install EGL or OSMesa (Debian: libegl1 or libosmesa6), "
        f"and set MUJOCO_GL to egl or osmesa ({'; '.join(failures)})"
    )
