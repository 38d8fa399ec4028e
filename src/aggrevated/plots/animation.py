"""Trajectories next to each other, as an animated GIF: the learner beside the expert, from the same start."""

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
# how many if no stride is given; milliseconds of the last
FRAMES = 125
HOLD = 1500
# colours of the palette; below 256, which leaves Pillow one for "as in the frame before"
FLAT = 24
BLENDS = 200


@dataclass(frozen=True)
class Panel:
    """One trajectory of T steps, and what to call it."""

    title: str
    states: Array  # [T, ...], before each step
    costs: Array  # [T]
    parts: Mapping[str, bool] = field(default_factory=dict)  # of a state, by name: is it seen? Empty: all is seen
    pictures: Mapping[int, Image.Image] | None = None  # by step, where an environment draws itself

    def __post_init__(self) -> None:
        shapes = self.states.shape, self.costs.shape
        assert self.costs.shape == self.states.shape[:1], shapes
        assert len(self.costs) > 0, "a panel needs at least one step"


def write_comparison_gif(
    name: str, panels: Sequence[Panel], path: Path, stride: int | None = None, fps: int = 25
) -> None:
    """Write the GIF of trajectories of the simulator `name`: every `stride`-th step, and the last one, held.

    Without a stride it is the smallest that makes no more than about `FRAMES` frames.
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
    """Every `stride`-th step of the longest, and its last."""
    last = max(len(panel.costs) for panel in panels) - 1
    return [*range(0, last, stride or ceil((last + 1) / FRAMES)), last]


def draw_frame(name: str, panels: Sequence[Panel], t: int) -> Image.Image:
    """All panels at step t (counted from 0) in one picture."""
    pictures = [draw_panel(name, panel, t) for panel in panels]
    width, height = pictures[0].size
    whole = Image.new("RGB", (MARGIN + len(pictures) * (width + MARGIN), height + 2 * MARGIN), PAPER)
    for place, drawn in enumerate(pictures):
        whole.paste(drawn, (MARGIN + place * (width + MARGIN), MARGIN))
    return whole


def draw_panel(name: str, panel: Panel, t: int) -> Image.Image:
    """The title, what is seen, the state at step t, the step and the return so far; greyed if it ended before t."""
    steps = min(t + 1, len(panel.costs))
    ended = t >= len(panel.costs)
    own = panel.pictures
    drawn = draw_state(name, panel.states[steps - 1], panel.parts) if own is None else own[steps - 1]
    (width, height) = drawn.size
    top = TITLE_HEIGHT + (PARTS_HEIGHT if panel.parts else 0)
    image = Image.new("RGB", (width, top + height + CAPTION_HEIGHT), PAPER)
    image.paste(fade_to_gray(drawn) if ended else drawn, (0, top))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, top, width - 1, top + height - 1), outline=FAINT)
    colour = MUTED if ended else INK
    title = ImageFont.load_default(TITLE_SIZE)
    draw.text((width / 2, TITLE_HEIGHT / 2), truncate_text(panel.title, title, width), colour, title, "mm")
    middle = top + height + CAPTION_HEIGHT / 2
    caption = ImageFont.load_default(CAPTION_SIZE)
    if panel.parts:
        words = truncate_text(describe_visible_parts(panel.parts), caption, width)
        draw.text((width / 2, TITLE_HEIGHT + PARTS_HEIGHT / 2 - 4), words, MUTED, caption, "mm")
    draw.text((4, middle), f"ended at step {steps}" if ended else f"step {steps}", colour, caption, "lm")
    draw.text((width - 4, middle), f"return {format_amount(-panel.costs[:steps].sum())}", colour, caption, "rm")
    return image


def describe_visible_parts(parts: Mapping[str, bool]) -> str:
    """What is seen, and what is hidden if anything is."""
    seen, hidden = (", ".join(part for part in parts if parts[part] == is_seen) for is_seen in (True, False))
    return f"sees: {seen or 'nothing'}" + (f"; hidden: {hidden}" if hidden else "")


def fade_to_gray(drawn: Image.Image) -> Image.Image:
    """The picture without its colours, half faded."""
    grey = drawn.convert("L").convert("RGB")
    return Image.blend(grey, Image.new("RGB", grey.size, PAPER), 0.5)


def truncate_text(text: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, width: float) -> str:
    """The text, or as much of its beginning as fits in `width` pixels, with an ellipsis."""
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(text + "…") > width:
        text = text[:-1]
    return text.rstrip() + "…"


def format_amount(value: float) -> str:
    """A number with at most one decimal, and never a negative zero."""
    return f"{round(float(value), 1) + 0.0:.1f}".removesuffix(".0")


def encode_gif(frames: Sequence[Image.Image], durations: Sequence[int]) -> bytes:
    """The bytes of a GIF that loops for ever; all frames share one palette, so that nothing flickers."""
    first, *rest = quantize_frames(frames)
    buffer = BytesIO()
    first.save(buffer, "GIF", save_all=True, append_images=rest, duration=list(durations), loop=0)
    return buffer.getvalue()


def quantize_frames(frames: Sequence[Image.Image]) -> list[Image.Image]:
    """The frames, each pixel as the index of the nearest colour in the palette of them all."""
    # Not by `Image.quantize(palette=...)`: it looks colours up in steps of four, and white came out as light grey.
    counts: Counter[int] = Counter()
    for image in frames:
        codes, times = np.unique(pack_rgb(image), return_counts=True)
        counts.update(dict(zip(codes.tolist(), times.tolist(), strict=True)))
    codes = np.array([code for code, _ in counts.most_common()])
    colours = np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=1)
    palette = make_shared_palette(colours)
    nearest = np.zeros(1 << 24, np.uint8)
    nearest[codes] = [np.square(palette - colour).sum(axis=1).argmin() for colour in colours]
    images = [Image.fromarray(nearest[pack_rgb(image)]) for image in frames]
    for image in images:
        image.putpalette(palette.astype(np.uint8).tobytes())
    return images


def pack_rgb(image: Image.Image) -> Array:
    """[height, width] with red, green and blue of a pixel in one number."""
    red, green, blue = np.moveaxis(np.asarray(image, np.int32), 2, 0)
    code: Array = red << 16 | green << 8 | blue
    return code


def make_shared_palette(colours: Array) -> Array:
    """[at most FLAT + BLENDS, 3] for colours [n, 3], commonest first: those of the flat shapes exactly, then blends."""
    blends = Image.fromarray(colours[None].astype(np.uint8)).quantize(BLENDS, Image.Quantize.MAXCOVERAGE)
    return np.concatenate([colours[:FLAT], np.array(blends.getpalette()).reshape(-1, 3)[:BLENDS]])
