"""Draw docs/images/page.png, and the tree of the builtin reader: parse-tree.png and parse-growth.png.

`python docs/make_parse_pictures.py`. The reader was trained on neither the hand nor the page.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from aggrevated.parsing.pages.algebra import Fraction
from aggrevated.parsing.pages.page import Page
from aggrevated.plots.parse_tree import draw_growth, draw_tree
from aggrevated_reader import load_reader
from aggrevated_reader.pages.batched_rng import BatchedRng
from aggrevated_reader.pages.generated import synthesize_page
from aggrevated_reader.pages.writers import sample_writer
from aggrevated_reader.pages_report import list_frames, select_frames

IMAGES = Path(__file__).parent / "images"
SEED = 2_000_001  # in no training set
LINES = [[*"3(x+2)=21"], ["x", "+", "2", "=", Fraction(["2", "1"], ["3"])], [*"x=5"]]
SHORT = [["3", "x", "+", "2", "=", "8"], ["x", "=", "2"]]


def main() -> None:
    """Write the pictures."""
    reader = load_reader()
    with TemporaryDirectory() as folder:
        for lines, name in ((LINES, "parse-tree"), (SHORT, "parse-growth")):
            file = IMAGES / "page.png" if name == "parse-tree" else Path(folder) / "page.png"
            photographed(in_a_hand(lines), file)
            parsed = reader.parse(file)
            print(name, repr(parsed.text), parsed.latex, parsed.doubts)
            if name == "parse-tree":
                labels = {"names": parsed.reading.labels, "lines": parsed.reading.lines}
                draw_tree(
                    parsed.page, parsed.reading.heads, IMAGES / name, "aggrevated parse page.png --draw", **labels
                )
            else:
                frames = select_frames(list_frames(*reader.reads.make_parser(parsed.seen.page)))
                draw_growth(parsed.page, frames, IMAGES / name)
            (IMAGES / f"{name}.svg").unlink()


def in_a_hand(lines: list[list[object]]) -> Page:
    """Return the lines in a generated hand."""
    draw = np.random.default_rng(SEED)
    return synthesize_page(lines, sample_writer(BatchedRng(draw)), draw)  # type: ignore[arg-type]


def photographed(page: Page, path: Path) -> None:
    """Write a picture of the page: a pen of 5 pixels, light from one side, slightly blurred."""
    boxes = page.boxes
    scale = 70 / float(np.median((boxes[:, 2:] - boxes[:, :2]).max(axis=1)))
    corner = boxes[:, :2].min(axis=0) * scale - 90
    width, height = (boxes[:, 2:].max(axis=0) * scale - corner + 90).astype(int).tolist()
    picture = Image.new("L", (width, height), 255)
    for stroke in (stroke for strokes in page.ink for stroke in strokes):
        ImageDraw.Draw(picture).line([tuple(point) for point in stroke * scale - corner], 40, 5, joint="curve")
    light = 150 + 90 * np.linspace(0, 1, width) + np.random.default_rng(0).normal(0, 3, (height, width))
    grey = np.asarray(picture.filter(ImageFilter.GaussianBlur(1.0))) / 255 * light
    Image.fromarray(grey.clip(0, 255).astype(np.uint8)).save(path)


if __name__ == "__main__":
    main()
