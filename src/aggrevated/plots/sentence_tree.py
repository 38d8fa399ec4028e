"""A parsed sentence: its words in a row, their tags below, and above them an arc from every head to its dependents.

An arc has the name of its relation; the more it is expected to be wrong, the redder and thinner it is. All lengths are
inches, y downwards from the top of the figure, so that nothing can run into anything else.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.text import Text
from matplotlib.textpath import text_to_path

from aggrevated.arrays import Array
from aggrevated.plots.dependency_arcs import ARC, WRONG, draw_arrow, exit_of, levels_of, pairs_of
from aggrevated.plots.learning_curves import save
from aggrevated.plots.parse_tree import INK, MARGIN, NUMBER, canvas

if TYPE_CHECKING:
    from aggrevated.text.reading import ParsedSentence

WORD, TAG, LABEL = 12.0, 7.5, 8.5  # the sizes of letters, in points
LONGEST = 24  # letters of a word that are shown
LEVEL = 0.21  # by which an arc goes higher than those inside it
STEM = 0.34  # how wide a word is for the arcs that leave it, at least
BETWEEN, CORNER = 0.13, 0.09  # two words; a name and the corners of its arc
TITLE, ROOT, ROW, TAGS, LEGEND = 0.42, 0.34, 0.24, 0.17, 0.42  # high
NARROWEST = 3.2
DOUBT = LinearSegmentedColormap.from_list("doubt", [ARC, "#A07A8F", WRONG], N=64)
USUAL = "DejaVu Sans"  # which comes with matplotlib


def draw_sentence(parsed: ParsedSentence, path: Path) -> None:
    """Write path.png and path.svg."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a letter that no font has is a box
        save(_figure(parsed), path)


def _figure(parsed: ParsedSentence) -> Figure:
    row = Row.of(parsed)
    top = TITLE + ROOT + LEVEL * max(levels_of(parsed.heads).values(), default=0)
    height = top + ROW + TAGS + LEGEND
    figure, axes = canvas(row.width, height)
    title = f"expected loss {parsed.expected_loss:.2f} of {len(row.words)} word{'s' * (len(row.words) != 1)}"
    axes.text(row.width / 2, TITLE / 2, title, ha="center", va="center", fontsize=11, color=INK)
    for x, word, tag in zip(row.centres, row.words, row.tags, strict=True):
        row.write(axes, x, top + ROW - 0.05, word, WORD, INK)
        row.write(axes, x, top + ROW + TAGS - 0.05, tag, TAG, NUMBER)
    _draw_relations(axes, parsed.heads, 1 - parsed.arc_right, row, top)
    _draw_legend(figure, row.width, height)
    return figure


@dataclass(frozen=True)
class Row:
    """Where everything stands, from left to right."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    labels: tuple[str, ...]
    fonts: tuple[str, ...]
    centres: Array  # [n], of the words
    stems: Array  # [n]: how wide each is for the arcs that leave it
    width: float  # of the figure

    @classmethod
    def of(cls, parsed: ParsedSentence) -> Row:
        """With as little room as words, tags and names need."""
        words, tags, labels = (tuple(map(shown, own)) for own in (parsed.sentence.words, parsed.tags, parsed.labels))
        fonts = fonts_for(frozenset("".join((*words, *tags, *labels))))
        widths = np.maximum(widths_of(words, WORD, fonts), widths_of(tags, TAG, fonts))
        stems = stems_of(parsed.heads)
        centres = placed(parsed.heads, np.maximum(widths, stems), widths_of(labels, LABEL, fonts), stems)
        across = float(centres[-1] + widths[-1] / 2)
        width = max(across + 2 * MARGIN, NARROWEST)
        return cls(words, tags, labels, fonts, centres + (width - across) / 2, stems, width)

    def write(self, axes: Axes, x: float, y: float, text: str, size: float, colour: str) -> Text:
        """A text in the middle of x, on the line y."""
        families = list(self.fonts)
        return axes.text(
            x, y, text, ha="center", va="baseline", fontsize=size, color=colour, family=families, parse_math=False
        )


def shown(text: str) -> str:
    """What is drawn of a text: neither what cannot be seen, nor all of one that is very long."""
    seen = "".join(letter for letter in text if letter.isprintable())
    return seen if len(seen) <= LONGEST else f"{seen[: LONGEST - 1]}…"


@lru_cache(maxsize=256)
def fonts_for(letters: frozenset[str]) -> tuple[str, ...]:
    """The usual font, and after it those of the installed ones that have letters which it lacks."""
    missing = {ord(letter) for letter in letters} - get_font(findfont(USUAL)).get_charmap().keys()
    found = [USUAL]
    for font in fontManager.ttflist if missing else ():
        with suppress(OSError, RuntimeError):  # it may be gone
            has = missing & get_font(font.fname).get_charmap().keys()
            if has and not font.name.startswith("Last Resort"):  # which has boxes for all letters
                found.append(font.name)
                missing -= has
    return tuple(found)


def widths_of(texts: Sequence[str], size: float, fonts: tuple[str, ...]) -> Array:
    """How wide each of the texts is."""
    font = FontProperties(family=list(fonts), size=size)
    points = [text_to_path.get_text_width_height_descent(text or " ", font, ismath=False)[0] for text in texts]
    return np.array(points) / 72


def stems_of(heads: Array) -> Array:
    """How wide each word is for the arcs that leave it: those of one side are to be told apart."""
    stems = np.full(len(heads), STEM)
    for n, head in pairs_of(heads):
        siblings = sum(other == head and (one > head) == (n > head) for one, other in pairs_of(heads))
        stems[head - 1] = max(stems[head - 1], 0.15 * siblings)
    return stems


def placed(heads: Array, widths: Array, names: Array, stems: Array) -> Array:
    """The centres [n] of words, the first at half its width: no word runs into the next, nor a name out of its arc."""
    spans: dict[int, list[tuple[int, float]]] = {}  # by its right end: (left end, how far away that has to be)
    for n, head in pairs_of(heads):
        room = names[n - 1] + 2 * CORNER + stems[head - 1] * abs(exit_of(heads, n, head))
        spans.setdefault(max(n, head) - 1, []).append((min(n, head) - 1, room))
    centres = [float(widths[0]) / 2]
    for place in range(1, len(heads)):
        beside = centres[-1] + (widths[place - 1] + widths[place]) / 2 + BETWEEN
        centres.append(max(beside, *(centres[left] + room for left, room in spans.get(place, [])), 0.0))
    return np.array(centres)


def _draw_relations(axes: Axes, heads: Array, doubts: Array, row: Row, top: float) -> None:
    """The arcs above `top`, with their names; that of the root comes from above all others."""
    levels, foot = levels_of(heads), top - 0.04
    highest = top - LEVEL * max(levels.values(), default=0) - ROOT + 0.1
    for n, (head, doubt) in enumerate(zip(heads.tolist(), doubts.tolist(), strict=True), 1):
        colour, width, end = to_hex(DOUBT(doubt)), 1.8 - doubt, float(row.centres[n - 1])
        y = foot - LEVEL * levels.get(n, 0) if head else highest
        start = float(row.centres[head - 1] + row.stems[head - 1] * exit_of(heads, n, head)) if head else end
        way = [(start, foot), (start, y), (end, y), (end, foot)] if head else [(end, y + 0.08), (end, foot)]
        draw_arrow(axes, way, colour, width)
        name = row.write(axes, (start + end) / 2, y + 0.04, row.labels[n - 1], LABEL, colour)
        name.set_bbox({"color": "white", "pad": 0.8})  # its arc is not seen behind it


def _draw_legend(figure: Figure, width: float, height: float) -> None:
    """What the colours mean, below everything on the right."""
    axes = figure.add_axes((1 - (MARGIN + 0.9) / width, 0.2 / height, 0.8 / width, 0.07 / height))
    bar = figure.colorbar(ScalarMappable(cmap=DOUBT), cax=axes, orientation="horizontal", ticks=[0, 1])
    bar.outline.set_visible(False)
    axes.tick_params(length=0, pad=1, labelsize=TAG, labelcolor=NUMBER)
    figure.text(
        1 - (MARGIN + 1.0) / width, 0.235 / height, "expected loss", ha="right", va="center", fontsize=TAG, color=NUMBER
    )
