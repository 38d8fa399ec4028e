"""Parallel coordinates: every trial of a sweep as a line through its settings to its score, and what explains scores.

An axis for each setting, and one for the score, whose colours the lines have; the best trial lies in front.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Line
from matplotlib.ticker import MaxNLocator

from aggrevated.core.arrays import Array
from aggrevated.plots.learning_curves import COLORS, save_figure

BEST = COLORS[2]
FAILED = "#9CA3AF"
WHITE = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.8}
BELOW = -0.14  # the place of what is not on an axis: no effect, or failed
FAN = 0.05  # how far lines through the same choice lie apart, at most
LINES = "a line is a trial, coloured by its place among all; thick: the best"
EXPLAINED = """share of the variance of the ranks of
the trials it has an effect on that lies
between its choices, or fifths of its range,
less what chance would explain (ε²)"""


@dataclass(frozen=True)
class Setting:
    """One axis: a value for each trial, None where it has no effect."""

    label: str
    values: Sequence[float | str | None]
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    choices: tuple[str, ...] = ()  # instead of a range
    importance: float | None = None  # None: too few trials to say
    best: str = ""  # its value in the best trial, in words


def plot_parallel_coordinates(
    settings: Sequence[Setting], scores: Sequence[float | None], title: str, measured: str, path: Path
) -> None:
    """The figure; a score of None is of a trial that failed."""
    known = np.array([np.nan if score is None else score for score in scores])
    width = max(5.6, 1.8 * (len(settings) + 1))
    figure = Figure(figsize=(width + 3.8, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[width, 2.6])
    figure.suptitle(title)
    draw_lines(left, settings, known)
    for place, setting in enumerate(settings):
        idle = any(value is None for value in setting.values)
        draw_axis(left, place, setting.label, axis_ticks(setting), setting.best, "no effect" if idle else "")
    low, high = score_range(known)
    ticks = [
        (relative_position(value, low, high), format_tick(value)) for value in MaxNLocator(6).tick_values(low, high)
    ]
    best = f"best: {format_tick(np.nanmax(known))}"
    draw_axis(left, len(settings), measured, ticks, best, "failed" if np.isnan(known).any() else "")
    draw_scale(left, len(settings), known)
    left.text(len(settings) / 2, BELOW - 0.19, LINES, ha="center", va="top", fontsize=8.5)
    left.set(xlim=(-0.35, len(settings) + 0.25), ylim=(BELOW - 0.2, 1.12))
    left.axis("off")
    draw_importance(right, settings)
    save_figure(figure, path)


def draw_lines(axes: Axes, settings: Sequence[Setting], scores: Array) -> None:
    """A line for each trial, the better in front of the worse; those that failed are dashed and grey, behind all."""
    low, high = score_range(scores)
    order = np.argsort(np.where(np.isnan(scores), -np.inf, scores), kind="stable")
    places = [spread_equal_choices(setting, scores) for setting in settings]
    places.append(np.array([BELOW if np.isnan(score) else relative_position(score, low, high) for score in scores]))
    front = int(np.nanargmax(scores))
    for trial in [*order[order != front], front]:
        line = smooth_line([place[trial] for place in places])
        axes.add_patch(PathPatch(line, facecolor="none", **line_style(trial, front, scores)))


def line_style(trial: int, front: int, scores: Array) -> dict[str, Any]:
    """How the line of a trial is drawn."""
    if trial == front:
        return {"edgecolor": BEST, "linewidth": 2.8}
    if np.isnan(scores[trial]):
        return {"edgecolor": FAILED, "linewidth": 0.9, "linestyle": "--", "alpha": 0.7}
    return {"edgecolor": score_color(scores[trial], scores), "linewidth": 1.2, "alpha": 0.75}


def draw_axis(axes: Axes, x: int, label: str, ticks: Sequence[tuple[float, str]], best: str, below: str) -> None:
    """One axis with its name above, its numbers to the left, and what the best trial has below."""
    axes.plot([x, x], [0, 1], color="black", linewidth=1.1, zorder=3)
    axes.text(x, 1.045, label, ha="center", va="bottom", fontsize=10, fontweight="bold")
    for place, words in [
        *(tick for tick in ticks if -1e-9 <= tick[0] <= 1 + 1e-9),
        *([(BELOW, below)] if below else []),
    ]:
        colour = "#6B7280" if place < 0 else "black"
        axes.plot([x - 0.02, x], [place, place], color=colour, linewidth=1, zorder=3)
        axes.text(x - 0.035, place, words, ha="right", va="center", fontsize=8.5, color=colour, zorder=4, bbox=WHITE)
    axes.text(x, BELOW - 0.06, best, ha="center", va="top", fontsize=9, color=BEST, fontweight="bold")


def draw_scale(axes: Axes, x: int, scores: Array) -> None:
    """The colours of the scores, along their axis."""
    shades = np.array([score_color(score, scores) for score in np.linspace(*score_range(scores), 256)])
    axes.imshow(shades[:, None], extent=(x, x + 0.09, 0, 1), origin="lower", aspect="auto", zorder=2)


def draw_importance(axes: Axes, settings: Sequence[Setting]) -> None:
    """A bar for each setting: what it explains of the differences between trials."""
    places = np.arange(len(settings))
    shares = [setting.importance or 0.0 for setting in settings]
    axes.barh(places, shares, color=COLORS[0], height=0.5)
    for place, setting in enumerate(settings):
        words = "too few trials" if setting.importance is None else f"{100 * setting.importance:.0f} %"
        axes.text(shares[place] + 0.02, place, words, va="center", fontsize=9)
    axes.set_yticks(places, [setting.label for setting in settings], fontsize=9)
    rows = max(len(settings), 4)  # so that a single bar is not as high as the figure
    axes.set(xlim=(0, 1.25), ylim=(rows - 0.4, -0.6), xticks=[0, 0.5, 1], xticklabels=["0", "50 %", "100 %"])
    axes.set_title("what each setting explains alone", fontsize=10)
    axes.set_xlabel(EXPLAINED, fontsize=8.5)
    axes.spines[["top", "right"]].set_visible(False)


def spread_equal_choices(setting: Setting, scores: Array) -> Array:
    """The place of each trial on an axis, [trials]; lines through the same choice lie side by side, by score."""
    places = np.array([axis_position(setting, value) for value in setting.values])
    for place in np.unique(places) if setting.choices else [BELOW]:
        own = np.flatnonzero(places == place)[::-1]  # of equal ones the earlier on top
        by_score = own[np.argsort(np.nan_to_num(scores[own], nan=-np.inf), kind="stable")]
        width = min(FAN, 0.35 / max(len(setting.choices), 1), 0.004 * len(own))
        places[by_score] += np.linspace(-width, width, len(own)) if len(own) > 1 else 0.0
    return places


def axis_position(setting: Setting, value: float | str | None) -> float:
    """Where on the axis a value is, from 0 at the bottom to 1."""
    if value is None:
        return BELOW
    if setting.choices:
        return (setting.choices.index(str(value)) + 0.5) / len(setting.choices)
    low = setting.low
    high = setting.high
    number = float(value)
    return relative_position(*np.log([number, low, high])) if setting.log else relative_position(number, low, high)


def axis_ticks(setting: Setting) -> list[tuple[float, str]]:
    """(place, words) of what is written beside an axis."""
    if setting.choices:
        return [(axis_position(setting, choice), choice) for choice in setting.choices]
    low = setting.low
    high = setting.high
    values = powers_of_ten(low, high) if setting.log else MaxNLocator(6).tick_values(low, high)
    return [(axis_position(setting, value), format_tick(value)) for value in values if low <= value <= high]


def powers_of_ten(low: float, high: float) -> list[float]:
    """The ends, and between them those that are not too near to one; every second, third … where they are many."""
    first, last = (round(np.log10(end), 9) for end in (low, high))
    every = max(1, round((last - first) / 6))
    near = 0.06 * (last - first)
    inside = [power for power in range(int(np.ceil(first)), int(last) + 1) if first + near < power < last - near]
    return [low, *(10.0**power for power in inside[::-1][every - 1 :: every][::-1]), high]


def smooth_line(places: Sequence[float]) -> Line:
    """A line through the axes that meets each of them at a right angle."""
    points = [(0.0, places[0])]
    codes = [Line.MOVETO]
    for x, (here, there) in enumerate(pairwise(places)):
        points += [(x + 0.4, here), (x + 0.6, there), (x + 1.0, there)]
        codes += [Line.CURVE4] * 3
    return Line(points, codes)


def score_range(scores: Array) -> tuple[float, float]:
    """The ends of the axis of scores."""
    low = float(np.nanmin(scores))
    high = float(np.nanmax(scores))
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def relative_position(value: float, low: float, high: float) -> float:
    """0 at the low end, 1 at the high one."""
    return float((value - low) / (high - low))


def score_color(score: float, scores: Array) -> tuple[float, float, float, float]:
    """By the share of scores below it, so that one very bad trial leaves colours for the others; dark is good."""
    known = np.sort(scores[~np.isnan(scores)])
    red, green, blue, strength = colormaps["viridis_r"](np.interp(score, known, np.linspace(0, 1, len(known))))
    return red, green, blue, strength


def format_tick(number: float) -> str:
    """A number for an axis."""
    return f"{number:.4g}"
