"""Drawings of one state of a simulator: flat shapes, drawn large and shrunk, so that all edges are smooth."""

from collections.abc import Callable, Mapping, Sequence
from math import atan2, copysign, cos, pi, sin

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from aggrevated.core.arrays import Array
from aggrevated.simulators.acrobot import LENGTH
from aggrevated.simulators.cartpole import ANGLE_LIMIT, HALF_LENGTH, POSITION_LIMIT
from aggrevated.simulators.mujoco import ROBOTS

Point = tuple[float, float]

WIDTH = 320
SMOOTHING = 3  # drawn pixels per final pixel in each direction
# meters, as in Gymnasium's drawing
CART_HALF_WIDTH = 0.25
CART_HEIGHT = 0.26
# Arrows of velocities: seconds, radians, then meters; BESIDE is the distance from a link's axis to its arrow.
TURN_TIME = 0.25
MOST_TURN = 5.0
SHAFT = 0.05
HEAD = 0.2
EDGE = 0.025
RIM = 0.05
BESIDE = 0.19

# Okabe and Ito's palette, which color-blind readers can distinguish, and grays.
BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
INK = "#1F2937"
MUTED = "#6B7280"
GRAY = "#9CA3AF"
FAINT = "#E5E7EB"
PAPER = "#FFFFFF"
WEDGE = "#F1F5F9"


def compute_point_on_circle(center: Point, radius: float, angle: float) -> Point:
    """Return the point at this distance from the center; angle 0 is below it and grows anticlockwise."""
    return center[0] + radius * sin(angle), center[1] - radius * cos(angle)


class Canvas:
    """A white image in meters, y upwards: `origin` is the pixel of (0, 0), `unit` the pixels per meter."""

    def __init__(self, height: int, origin: Point, unit: float) -> None:
        self.image = Image.new("RGB", (WIDTH * SMOOTHING, height * SMOOTHING), PAPER)
        self.draw = ImageDraw.Draw(self.image)
        self.origin = origin
        self.unit = unit

    def to_pixel(self, point: Point) -> Point:
        """Return the pixel of a point, before shrinking."""
        (left, top) = self.origin
        (x, y) = point
        return (left + x * self.unit) * SMOOTHING, (top - y * self.unit) * SMOOTHING

    def draw_disc(self, center: Point, radius: float, color: str) -> None:
        """Draw a disc with a radius in meters."""
        self.draw.circle(self.to_pixel(center), radius * self.unit * SMOOTHING, fill=color)

    def draw_rod(self, start: Point, end: Point, width: float, color: str) -> None:
        """Draw a bar of `width` meters with round ends."""
        # Pillow rounds the width of a line, so that it would not meet its ends: draw a polygon.
        along = atan2(end[1] - start[1], end[0] - start[0])
        x = -sin(along) * width / 2
        y = cos(along) * width / 2
        sides = [(start, 1), (end, 1), (end, -1), (start, -1)]
        self.draw.polygon([self.to_pixel((p[0] + side * x, p[1] + side * y)) for p, side in sides], fill=color)
        self.draw_disc(start, width / 2, color)
        self.draw_disc(end, width / 2, color)

    def draw_arc(self, center: Point, radius: float, angles: Point, width: float, color: str) -> None:
        """Draw a bar of `width` meters with round ends, bent round `center` from one angle to another."""
        bend = np.linspace(*angles, 50)
        outer, inner = (
            [compute_point_on_circle(center, radius + side * width / 2, angle) for angle in bend] for side in (1, -1)
        )
        self.draw.polygon([self.to_pixel(point) for point in (*outer, *inner[::-1])], fill=color)
        for angle in angles:
            self.draw_disc(compute_point_on_circle(center, radius, angle), width / 2, color)

    def shape(self, corners: Sequence[Point], rim: float, color: str) -> None:
        """Draw a polygon with a rim of this many meters around it."""
        self.draw.polygon([self.to_pixel(corner) for corner in corners], fill=color)
        for start, end in zip(corners, (*corners[1:], corners[0]), strict=True):
            self.draw_rod(start, end, 2 * rim, color)

    def draw_box(self, left_top: Point, right_bottom: Point, radius: float, color: str) -> None:
        """Draw a rectangle with round corners."""
        corners = [self.to_pixel(left_top), self.to_pixel(right_bottom)]
        self.draw.rounded_rectangle(corners, radius * self.unit * SMOOTHING, fill=color)

    def draw_label(self, point: Point, text: str, anchor: str, color: str) -> None:
        """Draw small text at `point`, aligned by Pillow's two-letter `anchor`."""
        self.draw.text(self.to_pixel(point), text, color, ImageFont.load_default(11 * SMOOTHING), anchor)

    def finish(self) -> Image.Image:
        """Return the image at its final size."""
        size = (self.image.width // SMOOTHING, self.image.height // SMOOTHING)
        return self.image.resize(size, Image.Resampling.LANCZOS)


def draw_cartpole(state: Array) -> Canvas:
    """Draw the cart, its pole and a wedge of the angles that do not end the episode; state [4]."""
    x = float(state[0])
    angle = float(state[2])
    canvas = Canvas(height=180, origin=(WIDTH / 2, 132), unit=57)
    axle = (x, CART_HEIGHT)
    length = 2 * HALF_LENGTH
    wedge = np.linspace(-ANGLE_LIMIT, ANGLE_LIMIT, 5)  # enough to draw a short arc
    edges = [(x + 1.25 * length * sin(a), CART_HEIGHT + 1.25 * length * cos(a)) for a in wedge]
    canvas.draw.polygon([canvas.to_pixel(point) for point in (axle, *edges)], fill=WEDGE)
    draw_track(canvas)
    canvas.draw_box((x - CART_HALF_WIDTH, CART_HEIGHT), (x + CART_HALF_WIDTH, 0), 0.06, INK)
    canvas.draw_rod(axle, (x + length * sin(angle), CART_HEIGHT + length * cos(angle)), 0.11, ORANGE)
    canvas.draw_disc(axle, 0.085, BLUE)
    return canvas


def draw_track(canvas: Canvas) -> None:
    """Draw the rail, with a post and a number where the episode ends, and a tick at the center."""
    canvas.draw_rod((-POSITION_LIMIT, -0.03), (POSITION_LIMIT, -0.03), 0.06, MUTED)
    for x in (-POSITION_LIMIT, POSITION_LIMIT):
        canvas.draw_rod((x, -0.25), (x, 0.19), 0.06, MUTED)
        canvas.draw_label((x, -0.36), f"{x:g}", "mt", MUTED)
    canvas.draw_rod((0, -0.03), (0, -0.17), 0.035, MUTED)
    canvas.draw_label((0, -0.36), "0", "mt", MUTED)


def draw_acrobot(state: Array) -> Canvas:
    """Draw the two links and the line that the tip must reach; state [4], where angle 0 hangs down."""
    canvas = Canvas(height=240, origin=(WIDTH / 2, 120), unit=52)
    draw_goal(canvas)
    draw_links(canvas, state)
    return canvas


def draw_links(canvas: Canvas, state: Array) -> None:
    """Draw two bars and their joints."""
    pivot, elbow, tip = compute_joint_positions(state)
    canvas.draw_rod(pivot, elbow, 0.2, BLUE)
    canvas.draw_rod(elbow, tip, 0.16, ORANGE)
    draw_joints(canvas, state)


def draw_joints(canvas: Canvas, state: Array) -> None:
    """Draw a ring at the pivot, at the elbow and at the tip."""
    for joint, radius in zip(compute_joint_positions(state), (0.13, 0.11, 0.08), strict=True):
        canvas.draw_disc(joint, radius, INK)
        canvas.draw_disc(joint, radius / 2.5, PAPER)


def compute_joint_positions(state: Array) -> tuple[Point, Point, Point]:
    """Return the pivot, the elbow and the tip, in meters."""
    pivot = (0.0, 0.0)
    elbow = compute_point_on_circle(pivot, LENGTH, float(state[0]))
    return pivot, elbow, compute_point_on_circle(elbow, LENGTH, float(state[0] + state[1]))


def draw_goal(canvas: Canvas) -> None:
    """Draw a dashed line one link's length above the pivot, and its name."""
    reach = WIDTH / 2 / canvas.unit - 0.2
    for left in np.arange(-reach, reach, 0.2):
        canvas.draw_box((float(left), LENGTH + 0.02), (float(left) + 0.12, LENGTH - 0.02), 0.0, GREEN)
    canvas.draw_label((reach, LENGTH + 0.1), "goal", "rb", GREEN)


def draw_velocities(canvas: Canvas, state: Array, seen: bool) -> None:
    """Draw an arrow from each link, through the angle it would turn in `TURN_TIME`, and a key."""
    pivot, elbow, _ = compute_joint_positions(state)
    angle1, angle2, velocity1, velocity2 = map(float, state)
    for center, radius, direction, velocity in (
        (elbow, 0.7, angle1 + angle2, velocity2),
        (pivot, 0.5, angle1, velocity1),
    ):
        turn = max(-MOST_TURN, min(velocity * TURN_TIME, MOST_TURN))
        draw_turn(canvas, center, radius, direction + copysign(BESIDE / radius, turn), turn, seen)
    # Draw the links again: arrows must not cover a joint, and hidden parts must not cover seen ones.
    (draw_joints if seen else draw_links)(canvas, state)
    draw_turn(canvas, (-2.62, -2.53), 0.55, pi + 0.5, -0.95, seen)
    canvas.draw_label((-2.25, -2.0), "velocities", "lm", INK if seen else MUTED)
    if not seen:
        canvas.draw_rod((-2.78, -2.18), (-2.5, -1.82), 0.03, MUTED)


def draw_turn(canvas: Canvas, center: Point, radius: float, start: float, turn: float, seen: bool) -> None:
    """Draw an arrow round a center, from the angle `start` on: filled if seen, hollow if hidden."""
    length = radius * abs(turn)
    size = min(1.0, length / (1.5 * HEAD))  # a short arrow is also thin
    if size < 0.45:  # a shorter arrow would not be recognizable
        return
    neck = start + turn * (1 - size * HEAD / length)
    (x, y) = compute_point_on_circle(center, radius, neck)
    tip = compute_point_on_circle(center, radius, start + turn)
    across = 0.6 * (tip[1] - y)
    along = 0.6 * (tip[0] - x)
    head = [tip, (x - across, y + along), (x + across, y - along)]
    for rim, color in ((RIM, PAPER), (EDGE, PURPLE if seen else GRAY), (0.0, PURPLE if seen else PAPER)):
        canvas.draw_arc(center, radius, (start, neck), size * (SHAFT + 2 * rim), color)
        canvas.shape(head, size * rim, color)


STATE_DRAWERS: dict[str, Callable[[Array], Canvas]] = {"cartpole": draw_cartpole, "acrobot": draw_acrobot}
# By simulator and part of its state: the function that draws this part as seen or as hidden.
PARTS: dict[tuple[str, str], Callable[[Canvas, Array, bool], None]] = {("acrobot", "velocities"): draw_velocities}


def draw_state(name: str, state: Array, parts: Mapping[str, bool]) -> Image.Image:
    """Return an image of one state of the simulator `name`.

    Args:
        name: name of the simulator.
        state: one state [S].
        parts: by name of a part of the state, whether it is seen (True) or hidden; others are not marked.
    """
    if name in ROBOTS:
        from aggrevated.plots.mujoco_rendering import get_camera

        return get_camera(name).render(state)
    canvas = STATE_DRAWERS[name](state)
    for part, seen in parts.items():
        if (name, part) in PARTS:
            PARTS[name, part](canvas, state, seen)
    return canvas.finish()
