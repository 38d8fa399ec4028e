"""Figures of parsers: UAS of many methods side by side, and over the pages seen."""

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from aggrevated.plots.learning_curves import (
    BOUND,
    COLORS,
    Curve,
    draw_legend_below,
    plot_curve,
    save_figure,
    style_axes,
)


def plot_scores(rows: Sequence[dict[str, Any]], each: Sequence[Sequence[float]], title: str, path: Path) -> None:
    """A line for each row: UAS as a bar with its interval, every trial a dot, the paper's number a hollow diamond."""
    figure = Figure(figsize=(8.6, 1.1 + 0.3 * len(rows)), layout="constrained")
    axes = figure.subplots()
    places = range(len(rows))
    axes.barh(places, [row["uas_micro"] for row in rows], color=COLORS[5], height=0.62, alpha=0.55)
    for place, row in enumerate(rows):
        if "uas_micro_low" in row:
            axes.plot([row["uas_micro_low"], row["uas_micro_high"]], [place, place], color=BOUND, linewidth=1.4)
    for place, scores in enumerate(each):
        axes.plot(scores, [place] * len(scores), "o", color=COLORS[0], markersize=4)
    known = [(row["paper"], place) for place, row in enumerate(rows) if row["paper"] is not None]
    if known:
        label = "the paper, on other data"
        axes.plot(*zip(*known, strict=True), "D", color=COLORS[2], fillstyle="none", markersize=6, label=label)
        figure.legend(frameon=False, loc="outside lower center")
    for place, row in enumerate(rows):
        axes.text(1.01, place, f"{row['uas_micro']:.3f}", va="center", fontsize=9)
    axes.set(
        xlim=(0, 1),
        xlabel="UAS on the test pages (bars: interquartile mean, lines: its 95 % interval, dots: trials)",
        title=title,
    )
    axes.set_yticks(places, [row["label"] for row in rows], fontsize=9)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    save_figure(figure, path)


def plot_validation_and_test_curves(panels: Sequence[Sequence[Curve]], path: Path) -> None:
    """Validation on the left, test on the right; the expert is the dashed line."""
    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    both = figure.subplots(1, 2, sharey=True)
    for axes, curves, title in zip(both, panels, ("validation", "test"), strict=True):
        for curve, colour in zip(curves, cycle(COLORS), strict=False):
            plot_curve(axes, curve, curve.episodes, curve.returns, colour)
        axes.axhline(1.0, color=BOUND, linestyle="--", linewidth=1.4, label="expert")
        style_axes(axes, title=f"{title} pages", xlabel="pages seen, with the start")
    both[0].set_ylabel("UAS of the current policy")
    draw_legend_below(figure, both[0], columns=3)
    save_figure(figure, path)
