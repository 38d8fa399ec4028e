"""Charts of regret over episodes with its bound, and of its growth with N and S."""

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from aggrevated.core.arrays import Array
from aggrevated.plots.learning_curves import BOUND, COLORS, draw_legend_below, save_figure, style_axes
from aggrevated_experiments.theory.study import Growth, Study

LABEL_SIZE = 9  # points


def plot_regret_curves(study: Study, path: Path) -> None:
    """Plot the curves with the range over trials, and one panel for each of N and S."""
    quantities = [quantity for quantity in ("N", "S") if any(growth.quantity == quantity for growth in study.growths)]
    figure = Figure(figsize=(6.0 + 4.0 * len(quantities), 5.2), layout="constrained")
    axes = figure.subplots(1, 1 + len(quantities), squeeze=False, width_ratios=[1.35] + [1.0] * len(quantities))[0]
    figure.suptitle(study.title)
    colors = dict(zip([regret.label for regret in study.regrets], cycle(COLORS), strict=False))
    plot_curves(axes[0], study, colors)
    for panel, quantity in zip(axes[1:], quantities, strict=True):
        plot_growth(panel, study, quantity, colors)
    draw_legend_below(figure, axes[0], columns=2)
    figure.draw_without_rendering()  # fixes the distances between the ends
    for panel, quantity in zip(axes[1:], quantities, strict=True):
        add_exponent_labels(panel, [growth for growth in study.growths if growth.quantity == quantity], colors)
    save_figure(figure, path)


def plot_curves(axes: Axes, study: Study, colors: dict[str, str]) -> None:
    """Plot the mean regret over episodes, and the range from the smallest to the largest trial."""
    for regret in study.regrets:
        style = "-" if regret.learns_from_expert else ":"
        color = colors[regret.label]
        axes.plot(study.episodes, regret.curve.mean(axis=0), style, color=color, linewidth=2, label=regret.label)
        low = regret.curve.min(axis=0)
        high = regret.curve.max(axis=0)
        axes.fill_between(study.episodes, low, high, color=color, alpha=0.18, linewidth=0)
    axes.plot(study.episodes, study.bound, "--", color=BOUND, linewidth=1.4, label=study.bound_label)
    if study.lower is not None:
        axes.plot(study.episodes, study.lower, "-.", color=BOUND, linewidth=1.4, label=study.lower_label)
    if study.random_play is not None:
        axes.plot(study.episodes, study.random_play, color="#9CA3AF", linewidth=1, label="playing at random", zorder=1)
    least = min(float(regret.curve[:, -1].mean()) for regret in study.regrets)
    if float(study.bound[-1]) > 20 * max(least, 1e-9) or least * 20 < max(r.curve[:, -1].mean() for r in study.regrets):
        axes.set_yscale("log")
    style_axes(axes, xlabel="episodes", ylabel="cumulative regret $R_n$")


def plot_growth(axes: Axes, study: Study, of: str, colors: dict[str, str]) -> None:
    """Plot the regret at the end over N or S on logarithmic axes, with exponents of a fit."""
    for growth in study.growths:
        if growth.quantity == of:
            axes.loglog(growth.x, np.maximum(growth.regret, 1e-12), "o-", color=colors[growth.label], markersize=4)
            axes.set_xticks(growth.x, [format_tick(x) for x in growth.x])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.margins(x=0.16)
    axes.set_title("numbers: fitted exponents", fontsize=9)
    style_axes(axes, xlabel="episodes $N$" if of == "N" else "states $S$", ylabel="$R_N$")


def add_exponent_labels(axes: Axes, growths: Sequence[Growth], colors: dict[str, str]) -> None:
    """Add the exponent behind the end of each line, moved where labels would overlap."""
    ends = [(float(growth.x[-1]), max(float(growth.regret[-1]), 1e-12)) for growth in growths]
    dots_per_point = axes.figure.dpi / 72
    heights = axes.transData.transform(ends)[:, 1] / dots_per_point
    for growth, end, moved, height in zip(growths, ends, heights, move_apart(heights, LABEL_SIZE * 1.25), strict=True):
        shift = (6, height - moved)
        color = colors[growth.label]
        text = f"{growth.exponent:.2f}"
        axes.annotate(text, end, shift, textcoords="offset points", fontsize=LABEL_SIZE, color=color, va="center")


def move_apart(heights: Array, gap: float) -> Array:
    """Return positions at least a gap apart, in the order of `heights` and as near to them as possible.

    The least-squares solution: minus the gaps, it is the isotonic regression of the heights.
    """
    order = np.argsort(heights, kind="stable")
    pools: list[list[float]] = []  # positions that touch each other
    for rank, height in enumerate(heights[order]):
        pools.append([float(height) - rank * gap])
        while len(pools) > 1 and np.mean(pools[-2]) >= np.mean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    positions = np.empty(len(heights))
    rising = np.repeat([np.mean(pool) for pool in pools], [len(pool) for pool in pools])
    positions[order] = rising + gap * np.arange(len(order))
    return positions


def format_tick(number: float) -> str:
    """Format a number for an axis: 8192 as 8.19k."""
    return f"{number:.0f}" if number < 1000 else f"{number / 1000:.3g}k"
