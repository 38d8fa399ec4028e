"""Animated GIFs of trajectories next to each other: the learner and its expert from the same start."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from math import ceil
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError
from aggrevated.plots.state_drawings import FAINT, INK, MUTED, PAPER, STATE_DRAWERS, draw_state
from aggrevated.simulators.mujoco import ROBOTS
from aggrevated.storage import write_atomically

# pixels
MARGIN = 12
TITLE_HEIGHT = 30
PARTS_HEIGHT = 22
CAPTION_HEIGHT = 28
TITLE_SIZE = 15
CAPTION_SIZE = 13
# largest number of frames without a stride; milliseconds that the last frame is held
FRAMES = 125
HOLD = 1500
# colors of the palette; fewer than 256, because Pillow needs one for "as in the frame before"
FLAT = 24
BLENDS = 200


@dataclass(frozen=True)
class Panel:
    """One trajectory of T steps with its title."""

    title: str
    states: Array  # [T, ...], before each step
    costs: Array  # [T]
    parts: Mapping[str, bool] = field(
        default_factory=dict
    )  # by name of a part of the state: is it seen? Empty: all of it
    pictures: Mapping[int, Image.Image] | None = None  # by step, for environments that render themselves

    def __post_init__(self) -> None:
        shapes = self.states.shape, self.costs.shape
        assert self.costs.shape == self.states.shape[:1], shapes
        assert len(self.costs) > 0, "a panel needs at least one step"


def write_comparison_gif(
    name: str, panels: Sequence[Panel], path: Path, stride: int | None = None, fps: int = 25
) -> None:
    """Write an animated GIF of trajectories of the simulator `name`.

    Args:
        name: name of the simulator that is drawn.
        panels: the trajectories, from left to right.
        path: the GIF to write.
        stride: draw each `stride`-th step and the last; None takes the smallest with about `FRAMES` frames.
        fps: frames per second.

    Raises:
        UsageError: this simulator cannot be drawn.
    """
    assert panels and fps > 0 and (stride is None or stride > 0), (len(panels), fps, stride)
    assert len({tuple(panel.parts) for panel in panels}) == 1, "panels must name the same parts, seen or hidden"
    if name not in (*STATE_DRAWERS, *ROBOTS) and any(panel.pictures is None for panel in panels):
        raise UsageError(
            f"the simulator {name!r} cannot be drawn; those that can are {', '.join((*STATE_DRAWERS, *ROBOTS))}"
        )
    frames = [draw_frame(name, panels, t) for t in select_steps(panels, stride)]
    write_atomically(path, encode_gif(frames, [1000 // fps] * (len(frames) - 1) + [HOLD]))


def select_steps(panels: Sequence[Panel], stride: int | None = None) -> list[int]:
    """Return the steps to draw: each `stride`-th of the longest trajectory, and its last."""
    last = max(len(panel.costs) for panel in panels) - 1
    return [*range(0, last, stride or ceil((last + 1) / FRAMES)), last]


def draw_frame(name: str, panels: Sequence[Panel], t: int) -> Image.Image:
    """Return one image of all panels at step t, counted from 0."""
    pictures = [draw_panel(name, panel, t) for panel in panels]
    width, height = pictures[0].size
    frame = Image.new("RGB", (MARGIN + len(pictures) * (width + MARGIN), height + 2 * MARGIN), PAPER)
    for i, picture in enumerate(pictures):
        frame.paste(picture, (MARGIN + i * (width + MARGIN), MARGIN))
    return frame


def draw_panel(name: str, panel: Panel, t: int) -> Image.Image:
    """Draw title, visible parts, state at step t, step and return; gray if the episode ended before t."""
    steps = min(t + 1, len(panel.costs))
    ended = t >= len(panel.costs)
    pictures = panel.pictures
    picture = draw_state(name, panel.states[steps - 1], panel.parts) if pictures is None else pictures[steps - 1]
    (width, height) = picture.size
    top = TITLE_HEIGHT + (PARTS_HEIGHT if panel.parts else 0)
    image = Image.new("RGB", (width, top + height + CAPTION_HEIGHT), PAPER)
    image.paste(fade_to_gray(picture) if ended else picture, (0, top))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, top, width - 1, top + height - 1), outline=FAINT)
    color = MUTED if ended else INK
    title = ImageFont.load_default(TITLE_SIZE)
    draw.text((width / 2, TITLE_HEIGHT / 2), truncate_text(panel.title, title, width), color, title, "mm")
    middle = top + height + CAPTION_HEIGHT / 2
    caption = ImageFont.load_default(CAPTION_SIZE)
    if panel.parts:
        text = truncate_text(describe_visible_parts(panel.parts), caption, width)
        draw.text((width / 2, TITLE_HEIGHT + PARTS_HEIGHT / 2 - 4), text, MUTED, caption, "mm")
    draw.text((4, middle), f"ended at step {steps}" if ended else f"step {steps}", color, caption, "lm")
    draw.text((width - 4, middle), f"return {format_amount(-panel.costs[:steps].sum())}", color, caption, "rm")
    return image


def describe_visible_parts(parts: Mapping[str, bool]) -> str:
    """Return a line that names the visible parts of the state and any hidden ones."""
    seen, hidden = (", ".join(part for part in parts if parts[part] == is_seen) for is_seen in (True, False))
    return f"sees: {seen or 'nothing'}" + (f"; hidden: {hidden}" if hidden else "")


def fade_to_gray(image: Image.Image) -> Image.Image:
    """Return the image without its colors, half faded."""
    gray = image.convert("L").convert("RGB")
    return Image.blend(gray, Image.new("RGB", gray.size, PAPER), 0.5)


def truncate_text(text: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, width: float) -> str:
    """Return the text, shortened with an ellipsis where it is wider than `width` pixels."""
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(text + "…") > width:
        text = text[:-1]
    return text.rstrip() + "…"


def format_amount(value: float) -> str:
    """Format a number with at most one decimal and without a negative zero."""
    return f"{round(float(value), 1) + 0.0:.1f}".removesuffix(".0")


def encode_gif(frames: Sequence[Image.Image], durations: Sequence[int]) -> bytes:
    """Return the bytes of a looping GIF whose frames share one palette, which avoids flicker."""
    first, *rest = quantize_frames(frames)
    buffer = BytesIO()
    first.save(buffer, "GIF", save_all=True, append_images=rest, duration=list(durations), loop=0)
    return buffer.getvalue()


def quantize_frames(frames: Sequence[Image.Image]) -> list[Image.Image]:
    """Return the frames with each pixel as the index of the nearest color of a shared palette."""
    # `Image.quantize(palette=...)` looks colors up in steps of four and turns white into light gray.
    counts: Counter[int] = Counter()
    for image in frames:
        codes, times = np.unique(pack_rgb(image), return_counts=True)
        counts.update(dict(zip(codes.tolist(), times.tolist(), strict=True)))
    codes = np.array([code for code, _ in counts.most_common()])
    colors = np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=1)
    palette = make_shared_palette(colors)
    nearest = np.zeros(1 << 24, np.uint8)
    nearest[codes] = [np.square(palette - color).sum(axis=1).argmin() for color in colors]
    images = [Image.fromarray(nearest[pack_rgb(image)]) for image in frames]
    for image in images:
        image.putpalette(palette.astype(np.uint8).tobytes())
    return images


def pack_rgb(image: Image.Image) -> Array:
    """Return [height, width] with red, green and blue of each pixel packed into one integer."""
    red, green, blue = np.moveaxis(np.asarray(image, np.int32), 2, 0)
    code: Array = red << 16 | green << 8 | blue
    return code


def make_shared_palette(colors: Array) -> Array:
    """Return a palette [at most FLAT + BLENDS, 3] for colors [n, 3], commonest first.

    The commonest colors, of flat shapes, are exact; the rest are blends.
    """
    blends = Image.fromarray(colors[None].astype(np.uint8)).quantize(BLENDS, Image.Quantize.MAXCOVERAGE)
    return np.concatenate([colors[:FLAT], np.array(blends.getpalette()).reshape(-1, 3)[:BLENDS]])
