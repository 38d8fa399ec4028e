"""Writing algebra on the page in the browser with mouse events."""

from collections.abc import Iterator, Sequence

import numpy as np
from playwright.sync_api import Page as Tab

from aggrevated.core.arrays import Array
from aggrevated.parsing.pages.page import Page
from aggrevated_reader.pages.batched_rng import BatchedRng
from aggrevated_reader.pages.generated import synthesize_page
from aggrevated_reader.pages.writers import sample_writer
from aggrevated_reader.web.ink import place_symbols


def write_lines(*lines: str, hand: int = 3) -> Page:
    """Return the lines in one of many generated hands, one sign per symbol, with the gold tree."""
    draw = np.random.default_rng(hand)
    return synthesize_page([list(line) for line in lines], sample_writer(BatchedRng(draw)), draw)


def place_strokes(tab: Tab, page: Page) -> list[Array]:
    """Return the strokes of the page scaled to the paper, in pixels of the window."""
    box = tab.locator("#paper").bounding_box()
    assert box is not None
    corner = np.array([box["x"], box["y"]])
    ink = place_symbols(page.ink, box["width"], box["height"])
    return [thin_stroke(stroke) + corner for strokes in ink for stroke in strokes]


def thin_stroke(stroke: Array, most: int = 12) -> Array:
    """Return the stroke with at most `most` points, as a fast mouse sends it."""
    return stroke[np.linspace(0, len(stroke) - 1, min(len(stroke), most)).round().astype(int)]


def draw_strokes(tab: Tab, strokes: Sequence[Array]) -> Iterator[None]:
    """Draw stroke by stroke; the caller can inspect the page after each."""
    for stroke in strokes:
        points = stroke.tolist()
        tab.mouse.move(*points[0])
        tab.mouse.down()
        for x, y in points[1:]:
            tab.mouse.move(x, y)
        tab.mouse.up()
        yield


def write_on(tab: Tab, page: Page) -> None:
    """Write the page and wait until it is read completely."""
    strokes = place_strokes(tab, page)
    for _ in draw_strokes(tab, strokes):
        pass
    wait_until_read(tab, len(strokes))


def wait_until_read(tab: Tab, parts: int) -> None:
    """Wait until the displayed reading has `parts` parts."""
    inked = "document.querySelectorAll('#paper .stroke').length"
    counted = f"count => {inked} === count && document.body.dataset.read == count"
    tab.wait_for_function(counted, arg=parts)


def read_heads(tab: Tab) -> list[int]:
    """Return the head of each symbol, from the arcs of the tree."""
    found = tab.evaluate(
        "[...document.querySelectorAll('#tree .arc')].map(a => [+a.dataset.dependent, +a.dataset.head])"
    )
    return [head for _, head in sorted(found)]


def read_labels(tab: Tab) -> list[str]:
    """Return the label of each symbol, from the tree."""
    return [str(name) for name in tab.locator("#tree .symbol:not(.root) .name").all_text_contents()]
