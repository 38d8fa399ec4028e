"""Regret over episodes beside its bound, and how it grows with N and S."""

from itertools import cycle
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from aggrevated.plots.learning_curves import BOUND, COLOURS, legend_below, save, tidy
from aggrevated.theory.study import Growth, Study


def regret_curves(study: Study, path: Path) -> None:
    """One figure: the curves with the range over trials, and a panel for each of N and S."""
    quantities = [of for of in ("N", "S") if any(growth.of == of for growth in study.growths)]
    figure = Figure(figsize=(6.0 + 4.0 * len(quantities), 5.2), layout="constrained")
    axes = figure.subplots(1, 1 + len(quantities), squeeze=False, width_ratios=[1.35] + [1.0] * len(quantities))[0]
    figure.suptitle(study.title)
    colours = dict(zip([regret.label for regret in study.regrets], cycle(COLOURS), strict=False))
    draw_curves(axes[0], study, colours)
    for panel, of in zip(axes[1:], quantities, strict=True):
        draw_growth(panel, study, of, colours)
    legend_below(figure, axes[0], columns=2)
    save(figure, path)


def draw_curves(axes: Axes, study: Study, colours: dict[str, str]) -> None:
    """Regret over episodes: the mean, and all that lies between the least and the most of the trials."""
    for regret in study.regrets:
        style, colour = "-" if regret.learns_from_expert else ":", colours[regret.label]
        axes.plot(study.episodes, regret.curve.mean(axis=0), style, color=colour, linewidth=2, label=regret.label)
        low, high = regret.curve.min(axis=0), regret.curve.max(axis=0)
        axes.fill_between(study.episodes, low, high, color=colour, alpha=0.18, linewidth=0)
    axes.plot(study.episodes, study.bound, "--", color=BOUND, linewidth=1.4, label=study.bound_label)
    if study.lower is not None:
        axes.plot(study.episodes, study.lower, "-.", color=BOUND, linewidth=1.4, label=study.lower_label)
    if study.random_play is not None:
        axes.plot(study.episodes, study.random_play, color="#9CA3AF", linewidth=1, label="playing at random", zorder=1)
    least = min(float(regret.curve[:, -1].mean()) for regret in study.regrets)
    if float(study.bound[-1]) > 20 * max(least, 1e-9) or least * 20 < max(r.curve[:, -1].mean() for r in study.regrets):
        axes.set_yscale("log")
    tidy(axes, xlabel="episodes", ylabel="cumulative regret $R_n$")


def draw_growth(axes: Axes, study: Study, of: str, colours: dict[str, str]) -> None:
    """Regret at the end over N or S, both logarithmic, with the fitted exponents."""
    for growth in study.growths:
        if growth.of == of:
            axes.loglog(growth.x, np.maximum(growth.regret, 1e-12), "o-", color=colours[growth.label], markersize=4)
            below = any(is_just_above(other, growth) for other in study.growths if other.of == of)
            place, shift = (growth.x[-1], growth.regret[-1]), (6, -12 if below else -3)
            text, colour = f"{growth.exponent:.2f}", colours[growth.label]
            axes.annotate(text, place, shift, textcoords="offset points", fontsize=9, color=colour)
            axes.set_xticks(growth.x, [short(x) for x in growth.x])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.margins(x=0.16)
    axes.set_title("numbers: fitted exponents", fontsize=9)
    tidy(axes, xlabel="episodes $N$" if of == "N" else "states $S$", ylabel="$R_N$")


def is_just_above(other: Growth, growth: Growth) -> bool:
    """Whether the other ends where this one's number would be written over its own."""
    return bool(other is not growth and 1.0 <= other.regret[-1] / max(growth.regret[-1], 1e-12) < 1.6)


def short(number: float) -> str:
    """8192 as 8.19k, for an axis."""
    return f"{number:.0f}" if number < 1000 else f"{number / 1000:.3g}k"
