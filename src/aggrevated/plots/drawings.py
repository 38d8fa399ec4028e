"""One state of a simulator as a picture: flat shapes, drawn large and shrunk, so that every edge is smooth."""

from collections.abc import Callable
from math import atan2, cos, sin

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from aggrevated.arrays import Array
from aggrevated.simulators.acrobot import LENGTH
from aggrevated.simulators.cartpole import ANGLE_LIMIT, HALF_LENGTH, POSITION_LIMIT

Point = tuple[float, float]

WIDTH = 320
SMOOTHING = 3  # pixels drawn, each way, for one that is kept
CART_HALF_WIDTH, CART_HEIGHT = 0.25, 0.26  # metres, as in Gymnasium's drawing

# Okabe and Ito's palette, which colour-blind readers can tell apart, and greys.
BLUE, ORANGE, GREEN = "#0072B2", "#E69F00", "#009E73"
INK, MUTED, FAINT, PAPER = "#1F2937", "#6B7280", "#E5E7EB", "#FFFFFF"
WEDGE = "#F1F5F9"


class Canvas:
    """A white picture in metres, y upwards: `origin` is the pixel of (0, 0), `unit` the pixels of one metre."""

    def __init__(self, height: int, origin: Point, unit: float) -> None:
        self.image = Image.new("RGB", (WIDTH * SMOOTHING, height * SMOOTHING), PAPER)
        self.draw = ImageDraw.Draw(self.image)
        self.origin, self.unit = origin, unit

    def at(self, point: Point) -> Point:
        """The pixel of a point, before shrinking."""
        (left, top), (x, y) = self.origin, point
        return (left + x * self.unit) * SMOOTHING, (top - y * self.unit) * SMOOTHING

    def disc(self, centre: Point, radius: float, colour: str) -> None:
        """A disc; its radius is in metres."""
        self.draw.circle(self.at(centre), radius * self.unit * SMOOTHING, fill=colour)

    def rod(self, start: Point, end: Point, width: float, colour: str) -> None:
        """A bar of `width` metres with round ends."""
        # A polygon, because Pillow rounds the width of a line, and the bar would not meet its ends.
        along = atan2(end[1] - start[1], end[0] - start[0])
        x, y = -sin(along) * width / 2, cos(along) * width / 2
        sides = [(start, 1), (end, 1), (end, -1), (start, -1)]
        self.draw.polygon([self.at((p[0] + side * x, p[1] + side * y)) for p, side in sides], fill=colour)
        self.disc(start, width / 2, colour)
        self.disc(end, width / 2, colour)

    def box(self, left_top: Point, right_bottom: Point, radius: float, colour: str) -> None:
        """A rectangle with round corners."""
        corners = [self.at(left_top), self.at(right_bottom)]
        self.draw.rounded_rectangle(corners, radius * self.unit * SMOOTHING, fill=colour)

    def label(self, point: Point, text: str, anchor: str, colour: str) -> None:
        """Small text, held at `point` by Pillow's two-letter `anchor`."""
        self.draw.text(self.at(point), text, colour, ImageFont.load_default(11 * SMOOTHING), anchor)

    def finished(self) -> Image.Image:
        """The picture at its final size."""
        size = (self.image.width // SMOOTHING, self.image.height // SMOOTHING)
        return self.image.resize(size, Image.Resampling.LANCZOS)


def cartpole(state: Array) -> Image.Image:
    """The cart on its track, and its pole over a wedge of the angles at which the episode goes on; state [4]."""
    x, angle = float(state[0]), float(state[2])
    canvas = Canvas(height=180, origin=(WIDTH / 2, 132), unit=57)
    axle, length = (x, CART_HEIGHT), 2 * HALF_LENGTH
    edges = [(x + 1.25 * length * sin(a), CART_HEIGHT + 1.25 * length * cos(a)) for a in limits(ANGLE_LIMIT)]
    canvas.draw.polygon([canvas.at(point) for point in (axle, *edges)], fill=WEDGE)
    draw_track(canvas)
    canvas.box((x - CART_HALF_WIDTH, CART_HEIGHT), (x + CART_HALF_WIDTH, 0), 0.06, INK)
    canvas.rod(axle, (x + length * sin(angle), CART_HEIGHT + length * cos(angle)), 0.11, ORANGE)
    canvas.disc(axle, 0.085, BLUE)
    return canvas.finished()


def limits(limit: float) -> list[float]:
    """Five angles from −limit to limit: enough to draw a short arc."""
    return [float(angle) for angle in np.linspace(-limit, limit, 5)]


def draw_track(canvas: Canvas) -> None:
    """The rail, with a post and a number where the episode ends, and a tick at the centre."""
    canvas.rod((-POSITION_LIMIT, -0.03), (POSITION_LIMIT, -0.03), 0.06, MUTED)
    for x in (-POSITION_LIMIT, POSITION_LIMIT):
        canvas.rod((x, -0.25), (x, 0.19), 0.06, MUTED)
        canvas.label((x, -0.36), f"{x:g}", "mt", MUTED)
    canvas.rod((0, -0.03), (0, -0.17), 0.035, MUTED)
    canvas.label((0, -0.36), "0", "mt", MUTED)


def acrobot(state: Array) -> Image.Image:
    """The two links below, at or above the line that the tip must reach; state [4], where angle 0 hangs down."""
    first, second = float(state[0]), float(state[0] + state[1])
    canvas = Canvas(height=240, origin=(WIDTH / 2, 120), unit=52)
    pivot = (0.0, 0.0)
    elbow = (LENGTH * sin(first), -LENGTH * cos(first))
    tip = (elbow[0] + LENGTH * sin(second), elbow[1] - LENGTH * cos(second))
    draw_goal(canvas)
    canvas.rod(pivot, elbow, 0.2, BLUE)
    canvas.rod(elbow, tip, 0.16, ORANGE)
    for joint, radius in ((pivot, 0.13), (elbow, 0.11), (tip, 0.08)):
        canvas.disc(joint, radius, INK)
        canvas.disc(joint, radius / 2.5, PAPER)
    return canvas.finished()


def draw_goal(canvas: Canvas) -> None:
    """A dashed line one link's length above the pivot, and its name."""
    reach = WIDTH / 2 / canvas.unit - 0.2
    for left in np.arange(-reach, reach, 0.2):
        canvas.box((float(left), LENGTH + 0.02), (float(left) + 0.12, LENGTH - 0.02), 0.0, GREEN)
    canvas.label((reach, LENGTH + 0.1), "goal", "rb", GREEN)


DRAWINGS: dict[str, Callable[[Array], Image.Image]] = {"cartpole": cartpole, "acrobot": acrobot}
