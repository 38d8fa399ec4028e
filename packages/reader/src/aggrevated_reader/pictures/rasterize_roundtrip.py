"""Simulation of photographed pen strokes: drawn, blurred, binarized, thinned and traced.

Training pages then have ink as `read_image` extracts it.
"""

from dataclasses import dataclass, replace

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from aggrevated.core.arrays import Array
from aggrevated.parsing.pages.page import Page, Strokes
from aggrevated_reader.pictures.symbol_grouping import compute_median_symbol_size
from aggrevated_reader.pictures.thinning import skeletonize
from aggrevated_reader.pictures.thresholds import compute_ink_mask
from aggrevated_reader.pictures.tracing import trace_strokes

SIZES = 40.0, 80.0  # size of a symbol in pixels
PENS = 1.0, 9.0  # width of lines in pixels; 1 to 3 is as likely as 3 to 9
BLURS = 0.0, 1.2  # radius in pixels
NOISE = 0.06  # maximum standard deviation, relative to the contrast between ink and paper
WIDEST = 6.0  # pixels: with a wider pen the page is drawn smaller, as a picture of it would be shrunk
LARGEST = 800.0  # maximum size of a symbol in pixels
FINE = 2  # pixels of the drawing for one of the picture, for antialiasing
ROW = 1_500  # width of a row of symbols in pixels


def rasterize_and_trace(page: Page, generator: np.random.Generator) -> Page:
    """Return the page with the ink of each symbol as if read from a picture.

    Size, pen, blur and noise are random for the page. Each symbol is drawn alone, so that symbols that touch
    on the page stay separate.
    """
    if not len(page):
        return page
    pen = float(np.exp(generator.uniform(*np.log(PENS))))
    largest = float(np.ptp(page.boxes.reshape(-1, 2, 2), axis=1).max())
    size = generator.uniform(*SIZES) * min(1.0, WIDEST / pen)
    sheet = _Sheet.of(
        page, min(size / compute_median_symbol_size(page.ink), LARGEST / max(largest, 1e-9)), int(min(pen, WIDEST)) + 4
    )
    skeleton = skeletonize(_simulate_photograph(sheet.render(min(pen, WIDEST)), generator))
    visible = np.unique(sheet.owners[skeleton])
    ink = list(page.ink)  # symbols that are too faint keep their ink
    for number, strokes in zip(visible, trace_strokes(skeleton, sheet.owners, visible), strict=True):
        if number:
            ink[number - 1] = sheet.to_page_coordinates(number - 1, strokes)
    return replace(page, ink=tuple(ink))


@dataclass(frozen=True)
class _Sheet:
    """Symbols of a page next to each other, without contact, in pixels."""

    ink: tuple[Strokes, ...]
    scale: float  # pixels per unit of the page
    shifts: Array  # [n, 2]: shift of each symbol in pixels
    owners: Array  # int [height, width]: number of the symbol of each pixel, from 1

    @classmethod
    def of(cls, page: Page, scale: float, margin: int) -> "_Sheet":
        boxes = page.boxes * scale
        sizes = np.ceil(boxes[:, 2:] - boxes[:, :2]).astype(int) + 2 * margin
        cells = np.zeros((len(page), 2), int)
        left = top = high = 0
        for number, (width, height) in enumerate(sizes.tolist()):
            if left and left + width > ROW:
                left = 0
                top = top + high
                high = 0
            cells[number] = left, top
            left = left + width
            high = max(high, height)
        right, bottom = (cells + sizes).max(axis=0)
        owners = np.zeros((bottom, right), np.int32)
        for number, ((x, y), (width, height)) in enumerate(zip(cells, sizes, strict=True), 1):
            owners[y : y + height, x : x + width] = number
        shifts = cells + margin - boxes[:, :2]
        ink = tuple(
            tuple(stroke * scale + shift for stroke in strokes) for strokes, shift in zip(page.ink, shifts, strict=True)
        )
        return cls(ink, scale, shifts, owners)

    def to_page_coordinates(self, symbol: int, strokes: Strokes) -> Strokes:
        """Return strokes of a symbol in the page's own coordinates."""
        return tuple((stroke - self.shifts[symbol]) / self.scale for stroke in strokes)

    def render(self, pen: float) -> Image.Image:
        """Return a picture of white ink on black, with lines `pen` pixels wide."""
        height, width = self.owners.shape
        picture = Image.new("L", (width * FINE, height * FINE))
        draw = ImageDraw.Draw(picture)
        for stroke in (stroke for strokes in self.ink for stroke in strokes):
            _draw_line(draw, (stroke + 0.5) * FINE - 0.5, pen * FINE)
        return picture.reduce(FINE)


def _draw_line(draw: ImageDraw.ImageDraw, stroke: Array, pen: float) -> None:
    """Draw one stroke with round ends and joints."""
    points = list(map(tuple, stroke.tolist()))
    if len(points) > 1:
        draw.line(points, 255, max(round(pen), 1))
    if pen < 3 and len(points) > 1:
        return
    has_joint = np.zeros(len(points), bool)  # one joint for each half of a pen's width
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(stroke, axis=0).T))]) // (pen / 2)
    has_joint[0] = True
    has_joint[1:] = np.diff(along) > 0
    has_joint[-1] = True
    for x, y in stroke[has_joint].tolist():
        draw.ellipse((x - pen / 2 + 0.5, y - pen / 2 + 0.5, x + pen / 2 - 0.5, y + pen / 2 - 0.5), 255)


def _simulate_photograph(picture: Image.Image, generator: np.random.Generator) -> Array:
    """Return where a photograph with blur and noise has ink, bool [height, width]."""
    blurred = np.asarray(picture.filter(ImageFilter.BoxBlur(float(generator.uniform(*BLURS)))), np.float32)
    contrast = float(np.median(blurred[blurred > blurred.max() / 2]))  # thin lines fade more than thick ones
    noise = generator.standard_normal(blurred.shape, np.float32) * np.float32(generator.uniform(0, NOISE) * contrast)
    return compute_ink_mask(blurred + noise, contrast)
