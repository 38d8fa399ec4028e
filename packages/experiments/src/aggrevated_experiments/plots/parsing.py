"""Figures of parsers: UAS of many methods, and UAS over the pages seen."""

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


def plot_scores(
    rows: Sequence[dict[str, Any]], trial_scores: Sequence[Sequence[float]], title: str, path: Path
) -> None:
    """Plot UAS of each row: bars with intervals, dots for trials, hollow diamonds for the paper's numbers."""
    figure = Figure(figsize=(8.6, 1.1 + 0.3 * len(rows)), layout="constrained")
    axes = figure.subplots()
    positions = range(len(rows))
    axes.barh(positions, [row["uas_micro"] for row in rows], color=COLORS[5], height=0.62, alpha=0.55)
    for y, row in enumerate(rows):
        if "uas_micro_low" in row:
            axes.plot([row["uas_micro_low"], row["uas_micro_high"]], [y, y], color=BOUND, linewidth=1.4)
    for y, scores in enumerate(trial_scores):
        axes.plot(scores, [y] * len(scores), "o", color=COLORS[0], markersize=4)
    paper_values = [(row["paper"], y) for y, row in enumerate(rows) if row["paper"] is not None]
    if paper_values:
        label = "the paper, on other data"
        axes.plot(*zip(*paper_values, strict=True), "D", color=COLORS[2], fillstyle="none", markersize=6, label=label)
        figure.legend(frameon=False, loc="outside lower center")
    for y, row in enumerate(rows):
        axes.text(1.01, y, f"{row['uas_micro']:.3f}", va="center", fontsize=9)
    axes.set(
        xlim=(0, 1),
        xlabel="UAS on the test pages (bars: interquartile mean, lines: its 95 % interval, dots: trials)",
        title=title,
    )
    axes.set_yticks(positions, [row["label"] for row in rows], fontsize=9)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    save_figure(figure, path)


def plot_validation_and_test_curves(panels: Sequence[Sequence[Curve]], path: Path) -> None:
    """Plot validation curves on the left and test curves on the right; the expert is the dashed line."""
    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    both = figure.subplots(1, 2, sharey=True)
    for axes, curves, title in zip(both, panels, ("validation", "test"), strict=True):
        for curve, color in zip(curves, cycle(COLORS), strict=False):
            plot_curve(axes, curve, curve.episodes, curve.returns, color)
        axes.axhline(1.0, color=BOUND, linestyle="--", linewidth=1.4, label="expert")
        style_axes(axes, title=f"{title} pages", xlabel="pages seen, with the start")
    both[0].set_ylabel("UAS of the current policy")
    draw_legend_below(figure, both[0], columns=3)
    save_figure(figure, path)
