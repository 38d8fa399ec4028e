"""Thirty pages from other material than the generator's, and how many of them are read right.

`python packages/reader/tests/thirty_pages.py FOLDER` writes the pictures to FOLDER and prints one line for each;
test_thirty_pages.py counts them. Symbols are glyphs of matplotlib's fonts, or strokes defined here. Their positions are
known from the drawing, through all later transformations of the picture.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.mathtext import MathTextParser
from PIL import Image, ImageDraw, ImageFont
from scipy import ndimage

from aggrevated.core.errors import DataError
from aggrevated_reader.pictures.segmentation import segment_page

FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
MARGIN = 90  # pixels around the ink
SCALE = 8  # pixels per point of matplotlib


@dataclass(frozen=True)
class Picture:
    """A picture and the positions of its symbols in reading order, or None if it shows no algebra."""

    image: Image.Image
    middles: np.ndarray | None  # [n, 2] pixels
    size: float  # size of a symbol in pixels
    ending: str = "png"
    options: tuple[tuple[str, int], ...] = ()


# Expressions: a row is a list of glyphs and of structures.


@dataclass(frozen=True)
class Up:
    row: tuple


@dataclass(frozen=True)
class Over:
    above: tuple
    below: tuple


@dataclass(frozen=True)
class Under:
    """A root."""

    row: tuple


class Pen:
    """Draws glyph by glyph and records their positions."""

    def __init__(self, font: str = "DejaVuSans.ttf", size: int = 64) -> None:
        self.font = font
        self.size = size
        self.ink = Image.new("L", (2600, 1700), 255)
        self.draw = ImageDraw.Draw(self.ink)
        self.boxes: list[tuple[float, float, float, float]] = []

    def face(self, size: float) -> ImageFont.FreeTypeFont:
        return ImageFont.truetype(str(FONTS / self.font), round(size))

    def row(self, row: tuple | str, x: float, y: float, size: float) -> float:
        """Draw the row with its baseline at y; return where it ends."""
        for item in row:
            if isinstance(item, Up):
                x = self.row(item.row, x + 0.04 * size, y - 0.45 * size, 0.62 * size) + 0.1 * size
            elif isinstance(item, Over):
                x = self.fraction(item, x + 0.1 * size, y, size) + 0.15 * size
            elif isinstance(item, Under):
                x = self.root(item, x, y, size)
            else:
                x = self.glyph(item, x, y, size)
        return x

    def glyph(self, glyph: str, x: float, y: float, size: float) -> float:
        face = self.face(size)
        left, top, right, bottom = self.draw.textbbox((x, y), glyph, font=face, anchor="ls")
        self.draw.text((x, y), glyph, 25, font=face, anchor="ls")
        self.boxes.append((left, top, right, bottom))
        return max(right, x + face.getlength(glyph)) + 0.14 * size

    def width(self, row: tuple | str, size: float) -> float:
        other = Pen(self.font, self.size)
        return other.row(row, 0.0, 900.0, size)

    def fraction(self, item: Over, x: float, y: float, size: float) -> float:
        wide = max(self.width(part, 0.8 * size) for part in (item.above, item.below)) + 0.15 * size
        axis = y - 0.32 * size
        self.row(item.above, x + (wide - self.width(item.above, 0.8 * size)) / 2, axis - 0.28 * size, 0.8 * size)
        self.line((x, axis), (x + wide, axis))
        self.row(item.below, x + (wide - self.width(item.below, 0.8 * size)) / 2, axis + 0.9 * size, 0.8 * size)
        return x + wide

    def root(self, item: Under, x: float, y: float, size: float) -> float:
        wide = self.width(item.row, size)
        top = y - 1.05 * size
        wide_pen = max(2, round(size / 13))
        hook = [(x, y - 0.4 * size), (x + 0.15 * size, y - 0.5 * size), (x + 0.35 * size, y + 0.15 * size)]
        points = [*hook, (x + 0.6 * size, top), (x + 0.7 * size + wide, top)]
        self.draw.line(points, 25, wide_pen, joint="curve")
        self.boxes.append((x, top, x + 0.7 * size + wide, y + 0.15 * size))
        return self.row(item.row, x + 0.75 * size, y, size) + 0.1 * size

    def line(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        self.draw.line([start, end], 25, max(2, round(self.size / 14)))
        self.boxes.append((*start, *end))

    def picture(self) -> Picture:
        boxes = np.array(self.boxes)
        left, top, right, bottom = *(boxes[:, :2].min(axis=0) - MARGIN), *(boxes[:, 2:].max(axis=0) + MARGIN)
        image = self.ink.crop((int(left), int(top), int(right), int(bottom)))
        return Picture(image, (boxes[:, :2] + boxes[:, 2:]) / 2 - (int(left), int(top)), 0.7 * self.size)


def draw_rows(*rows: tuple | str, font: str = "DejaVuSans.ttf", size: int = 64, left: int = 200) -> Picture:
    pen = Pen(font, size)
    for place, row in enumerate(rows):
        pen.row(row, left, 300 + 2.2 * size * place, size)
    return pen.picture()


def draw_columns(one: tuple[str, ...], two: tuple[str, ...]) -> Picture:
    pen = Pen()
    for left, rows in ((200, one), (1100, two)):
        for place, row in enumerate(rows):
            pen.row(row, left, 300 + 140 * place, 64)
    return pen.picture()


def typeset(formula: str, fontset: str, bar: int) -> Picture:
    """Return a formula as matplotlib typesets it; `bar` is the index of the fraction bar among the symbols."""
    with matplotlib.rc_context({"mathtext.fontset": fontset}):
        drawn = MathTextParser("agg").parse(f"${formula}$", dpi=72 * SCALE)
        layout = MathTextParser("path").parse(f"${formula}$", dpi=72)
    ink = 255 - np.asarray(drawn.image)
    image = Image.fromarray(np.pad(ink.astype(np.uint8), MARGIN, constant_values=255))
    base = len(ink) - drawn.depth + MARGIN  # the baseline
    middles = [(x + 0.28 * size, y + 0.25 * size) for _, size, *_, x, y in layout.glyphs]
    for x, y, wide, high in layout.rects:
        middles.insert(bar, (x + wide / 2, y + high / 2))
    return Picture(image, np.array(middles) * (SCALE, -SCALE) + (MARGIN, base), 7.0 * SCALE)


STROKES = {  # on a grid of 4 by 6, y downwards
    "0": "1,0 0,2 0,4 1,6 3,6 4,4 4,2 3,0 1,0", "1": "1,1 2,0 2,6", "2": "0,1 1,0 3,0 4,1 4,2 0,6 4,6",
    "3": "0,0 4,0 2,2 4,4 3,6 1,6 0,5", "4": "3,0 0,4 4,4|3,2 3,6", "5": "4,0 1,0 0,3 3,3 4,4 3,6 0,6",
    "7": "0,0 4,0 1,6", "8": "2,3 0,1 2,0 4,1 2,3 0,5 2,6 4,5 2,3", "x": "0,2 4,6|4,2 0,6", "y": "0,2 2,4|4,2 1,8",
    "+": "0,3 4,3|2,1 2,5", "-": "0,3 4,3", "=": "0,2 4,2|0,4 4,4", "(": "2,-1 1,1 1,5 2,7", ")": "1,-1 2,1 2,5 1,7",
    "a": "4,2 1,2 0,4 1,6 3,6 4,3|4,2 4,6", "b": "0,0 0,6 3,6 4,4 3,3 0,3",
}  # fmt: skip


def draw_strokes(rows: tuple[str, ...], pen: float, size: float = 60.0) -> Picture:
    """Draw rows of antialiased strokes with a pen that is `pen` pixels wide."""
    fine = 4
    unit = size / 6
    width = int(max(map(len, rows)) * size * 1.05) + 2 * MARGIN
    height = int(len(rows) * size * 2.2) + 2 * MARGIN
    image = Image.new("L", (width * fine, height * fine), 255)
    middles = []
    draw = ImageDraw.Draw(image)
    for number, row in enumerate(rows):
        for place, symbol in enumerate(row):
            corner = np.array([MARGIN + place * size * 1.05, MARGIN + number * size * 2.2])
            ways = [
                np.array([[float(v) for v in p.split(",")] for p in way.split()]) for way in STROKES[symbol].split("|")
            ]
            for way in ways:
                points = (way * unit + corner + 0.37) * fine
                draw.line([tuple(p) for p in points], 25, max(round(pen * fine), 1))
                for x, y in points:
                    r = pen * fine / 2
                    draw.ellipse((x - r, y - r, x + r, y + r), 25)
            every = np.concatenate(ways) * unit + corner
            middles.append((every.min(axis=0) + every.max(axis=0)) / 2)
    return Picture(image.reduce(fine), np.array(middles), size)


# Transformations of pictures.


def change_shades(picture: Picture, change: Callable[[np.ndarray], np.ndarray]) -> Picture:
    """Return the picture with changed shades, float [height, width]."""
    level = np.clip(change(np.asarray(picture.image, float)), 0, 255).astype(np.uint8)
    return Picture(Image.fromarray(level), picture.middles, picture.size, picture.ending, picture.options)


def draw_under_ink(picture: Picture, drawing: Callable[[ImageDraw.ImageDraw, int, int], None]) -> Picture:
    """Draw lines below the ink: where both are, the darker one counts."""
    paper = Image.new("L", picture.image.size, 255)
    drawing(ImageDraw.Draw(paper), *picture.image.size)
    return change_shades(picture, lambda level: np.minimum(level, np.asarray(paper, float)))


def rule_lines(
    step: int, shade: int, wide: int = 2, squared: bool = False
) -> Callable[[ImageDraw.ImageDraw, int, int], None]:
    def drawing(draw: ImageDraw.ImageDraw, width: int, height: int) -> None:
        for y in range(step // 2, height, step):
            draw.line([(0, y), (width, y)], shade, wide)
        for x in range(step // 2, width if squared else 0, step):
            draw.line([(x, 0), (x, height)], shade, wide)

    return drawing


def rotate(picture: Picture, degrees: float) -> Picture:
    image = picture.image.rotate(degrees, Image.Resampling.BICUBIC, expand=True, fillcolor=255)
    c = np.cos(np.radians(degrees))
    s = np.sin(np.radians(degrees))
    assert picture.middles is not None
    middles = (picture.middles - np.array(picture.image.size) / 2) @ np.array([[c, -s], [s, c]])
    return Picture(image, middles + np.array(image.size) / 2, picture.size)


def put_on_table(picture: Picture, corners: list[tuple[float, float]], table: int) -> Picture:
    """Put the sheet with these corners (clockwise from the top left) on a wooden table."""
    size = (1400, 900)
    (width, height) = picture.image.size
    rows = []
    values = []
    for (u, v), (x, y) in zip([(0, 0), (width, 0), (width, height), (0, height)], corners, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    matrix = np.append(np.linalg.solve(np.array(rows, float), np.array(values, float)), 1).reshape(3, 3)
    paper = picture.image.point(lambda level: round(level * 0.86))
    data = tuple(matrix.ravel()[:8])
    flat = paper.transform(size, Image.Transform.PERSPECTIVE, data, Image.Resampling.BICUBIC)
    mask = Image.new("L", picture.image.size, 255).transform(size, Image.Transform.PERSPECTIVE, data)
    grain = np.random.default_rng(3).normal(table, 8, (size[1], 1)) + np.random.default_rng(4).normal(0, 4, size[::-1])
    wood = Image.fromarray(np.clip(grain, 0, 255).astype(np.uint8))
    wood.paste(flat, (0, 0), mask)
    assert picture.middles is not None
    back = np.column_stack([picture.middles, np.ones(len(picture.middles))]) @ np.linalg.inv(matrix).T
    return Picture(wood, back[:, :2] / back[:, 2:], picture.size)


def enlarge(picture: Picture, megapixels: float, ending: str) -> Picture:
    factor = (megapixels * 1e6 / (picture.image.width * picture.image.height)) ** 0.5
    size = (int(picture.image.width * factor), int(picture.image.height * factor))
    assert picture.middles is not None
    return Picture(
        picture.image.resize(size, Image.Resampling.BICUBIC), picture.middles * factor, picture.size * factor, ending
    )


def with_file_format(picture: Picture, ending: str, **options: int) -> Picture:
    return Picture(picture.image, picture.middles, picture.size, ending, tuple(options.items()))


def add_noise(strength: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda level: level + np.random.default_rng(5).normal(0, strength, level.shape)


def add_side_light(level: np.ndarray) -> np.ndarray:
    return level * np.linspace(1.0, 0.35, level.shape[1])


def add_hard_shadow(level: np.ndarray) -> np.ndarray:
    y, x = np.mgrid[: level.shape[0], : level.shape[1]]
    return np.where(x + 0.4 * y > 0.55 * level.shape[1], 0.45, 0.95) * level


def add_coffee_stain(level: np.ndarray) -> np.ndarray:
    y, x = np.mgrid[: level.shape[0], : level.shape[1]]
    away = np.hypot(x - 0.7 * level.shape[1], y - 0.45 * level.shape[0])
    ring = np.exp(-(((away - 150) / 7) ** 2))
    return level * (1 - 0.28 * ring) - 8 * (away < 150)


def invert_paper(level: np.ndarray) -> np.ndarray:
    return 40 + (255 - level) * 0.75


def blots(draw: ImageDraw.ImageDraw, width: int, height: int) -> None:
    draw.ellipse((width - 85, 12, width - 25, 70), 30)
    draw.ellipse((30, height - 75, 85, height - 28), 30)


def frame(draw: ImageDraw.ImageDraw, width: int, height: int) -> None:
    draw.rectangle((22, 22, width - 22, height - 22), outline=30, width=4)


def margin(draw: ImageDraw.ImageDraw, width: int, height: int) -> None:
    draw.line([(55, 0), (52, height)], 90, 3)


def add_specks(level: np.ndarray) -> np.ndarray:
    chance = np.random.default_rng(6)
    level = level.copy()
    for y, x in zip(
        chance.integers(5, level.shape[0] - 5, 80), chance.integers(5, level.shape[1] - 5, 80), strict=True
    ):
        level[y : y + 2, x : x + 2] = 60
    return level


def draw_text_page() -> Picture:
    words = (
        "The quick brown fox jumps over the lazy dog while it", "rains in the valley. Nobody knows what it is that",
        "brought them here, so late in summer, or why they", "stay until the leaves fall. We asked and were told",
        "nothing, as always, by those who should know.",
    )  # fmt: skip
    image = Image.new("L", (1500, 620), 255)
    draw = ImageDraw.Draw(image)
    for place, row in enumerate(words):
        draw.text((80, 80 + 95 * place), row, 20, font=ImageFont.truetype(str(FONTS / "DejaVuSerif.ttf"), 48))
    return Picture(image, None, 40)


def draw_clouds() -> Picture:
    """Return a photograph of clouds."""
    clouds = np.random.default_rng(7).normal(0, 1, (300, 400))
    soft = sum(ndimage.gaussian_filter(clouds, s) * s for s in (2, 5, 12, 30))
    level = 128 + 50 * soft / soft.std()
    return Picture(Image.fromarray(np.clip(level, 0, 255).astype(np.uint8)).resize((1600, 1200)), None, 40)


def draw_empty_sheet() -> Picture:
    return change_shades(
        Picture(Image.new("L", (1200, 900), 235), None, 40), lambda level: add_noise(4)(add_side_light(level))
    )


SQUARE = ("x", Up(("2",)), *"+3x-4=0")
HALVES = ("y", "=", Over(tuple("a+b"), tuple("2c")), *"-1")
ROOT = ("z", "=", Under(("x", Up(("2",)), *"+y")), *"+5")
TWO = ("2x+5=11", "2x=6")
THREE = ("3(x-2)=y+4", "x=7-2y", "y=(8+x)/3")

PAGES: dict[str, Callable[[], Picture]] = {
    "DejaVu": lambda: draw_rows(*THREE),
    "STIX": lambda: draw_rows(*THREE, font="STIXGeneral.ttf"),
    "Computer Modern": lambda: draw_rows(*THREE, font="cmr10.ttf"),
    "DejaVu Serif, bold": lambda: draw_rows(*TWO, font="DejaVuSerif-Bold.ttf"),
    "matplotlib's own fraction": lambda: typeset(r"x=\frac{a+b}{2c}-7", "cm", 5),
    "matplotlib's own exponents": lambda: typeset(r"x^{2}+y^{2}=r^{2}", "stix", 99),
    "exponents": lambda: draw_rows(SQUARE, "x=1"),
    "a fraction": lambda: draw_rows(HALVES, "c≠0"),
    "a root": lambda: draw_rows(ROOT),
    "i, j, ÷ and ≤": lambda: draw_rows("i÷j≤8", "k≥7±2"),
    "two columns": lambda: draw_columns(("2x+5=11", "2x=6", "x=3"), ("y+7=9", "y=2")),
    "turned by 30°": lambda: rotate(draw_rows(*THREE), 30),
    "turned by -20°": lambda: rotate(draw_rows(*TWO, "x=3"), -20),
    "on a dark table": lambda: put_on_table(draw_rows(*THREE), [(160, 130), (1250, 90), (1300, 800), (120, 760)], 60),
    "in perspective": lambda: put_on_table(draw_rows(*TWO), [(300, 100), (1100, 140), (1310, 800), (90, 740)], 40),
    "a hard shadow": lambda: change_shades(draw_rows(*THREE), add_hard_shadow),
    "light from one side": lambda: change_shades(change_shades(draw_rows(*THREE), add_side_light), add_noise(5)),
    "ruled, light": lambda: draw_under_ink(draw_rows(*THREE), rule_lines(70, 190)),
    "ruled, dark": lambda: draw_under_ink(draw_rows(*THREE), rule_lines(47, 60)),
    "squared": lambda: draw_under_ink(draw_rows(*TWO, size=80), rule_lines(36, 150, squared=True)),
    "a margin line": lambda: draw_under_ink(draw_rows(*THREE), margin),
    "a frame": lambda: draw_under_ink(draw_rows(*THREE), frame),
    "dark paper": lambda: change_shades(draw_rows(*THREE), invert_paper),
    "a coffee ring": lambda: change_shades(draw_rows(*THREE), add_coffee_stain),
    "blots and specks": lambda: change_shades(draw_under_ink(draw_rows(*THREE), blots), add_specks),
    "JPEG, 24 megapixels, noise": lambda: with_file_format(
        change_shades(enlarge(draw_rows(*TWO), 24, "jpg"), add_noise(9)), "jpg", quality=40
    ),
    "WebP, 1 pixel": lambda: with_file_format(draw_strokes(("2(x+4)=70", "x+4=35-8"), 1.0), "webp", lossless=1),
    "50 megapixels, 9 pixels": lambda: enlarge(draw_strokes(("2(x+4)=70", "x+4=35-8"), 9.0), 50, "png"),
    "a paragraph of text": draw_text_page,
    "clouds": draw_clouds,
    "an empty sheet": draw_empty_sheet,
}  # fmt: skip


def judge_page(picture: Picture, folder: Path, name: str) -> tuple[str, str]:
    """Return ("right", "wrong", "doubted" or "refused", message) of one page."""
    path = folder / f"{name.replace(' ', '-').replace('/', '')}.{picture.ending}"
    picture.image.save(path, **dict(picture.options), **({"compress_level": 1} if picture.ending == "png" else {}))
    try:
        seen = segment_page(path)
    except DataError as error:
        return ("right" if picture.middles is None else "refused"), str(error).split(": ", 1)[1]
    message = "; ".join(seen.doubts)
    boxes = seen.page.boxes
    middles = seen.map_to_picture((boxes[:, :2] + boxes[:, 2:]) / 2)
    if picture.middles is None:
        return ("right" if message else "wrong"), message
    near = len(middles) == len(picture.middles) and bool(
        (np.hypot(*(middles - picture.middles).T) < 0.45 * picture.size).all()
    )
    return (
        "right" if near else "doubted" if message else "wrong"
    ), f"{len(middles)} of {len(picture.middles)} {message}"


def main(folder: Path) -> dict[str, str]:
    """Judge every page and return the outcomes by name."""
    answers = {}
    for name, make in PAGES.items():
        picture = make()
        began = time.process_time()
        answers[name], message = judge_page(picture, folder, name)
        print(f"{answers[name]:8} {time.process_time() - began:5.2f} s  {name}: {message}")
    return answers


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
