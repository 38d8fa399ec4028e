"""Draw docs/images/written-pages.png, the first twelve longer pages: `python docs/make_written_pages.py`."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from aggrevated.parsing.pages.page import Page
from aggrevated_reader.pages.generated import generate_pages

IMAGE = Path(__file__).parent / "images" / "written-pages.png"
SEED = 0
ROWS = 3
COLUMNS = 4
SHORTEST = 8  # symbols
INK = "#1F2937"


def main() -> None:
    """Write the picture."""
    figure = Figure(figsize=(14, 7.5), layout="constrained")
    figure.suptitle("Generated pages to learn real handwriting from: each by another hand")
    axes = figure.subplots(ROWS, COLUMNS)
    pages = (page for page in generate_pages(100, SEED) if len(page) >= SHORTEST)
    for one, page in zip(axes.flat, pages, strict=False):
        draw(one, page)
    figure.savefig(IMAGE, dpi=100)


def draw(axes: Axes, page: Page) -> None:
    """Draw the ink of a page, as large as possible."""
    for strokes in page.ink:
        for stroke in strokes:
            axes.plot(*stroke.T, color=INK, linewidth=1.1, solid_capstyle="round")
    axes.set_aspect("equal")
    axes.invert_yaxis()
    axes.margins(0.08)
    axes.axis("off")


if __name__ == "__main__":
    main()
