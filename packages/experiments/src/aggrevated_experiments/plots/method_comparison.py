"""Charts of methods over a varied setting: one panel per measure, with marks for what was never reached."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from aggrevated.core.arrays import Array
from aggrevated.plots.learning_curves import BOUND, COLORS, save_figure, style_axes

MARKERS = ("o", "s", "D", "v", "P", "X", "h", "<")
NEVER_MARKER = "^"  # marks what was not reached within the budget
# label of the expert's line; styles of the lines of theory
EXPERT_LABEL = "expert"
THEORY_STYLES = ("-.", ":")
METHOD_OFFSET = 0.012  # between two methods at the same case, as a share of the axis
MAX_THEORY_RATIO = 300.0  # lines of theory end at this multiple of the largest measured number


@dataclass(frozen=True)
class Series:
    """One method in one panel; arrays have one entry per case, NaN where nothing is drawn."""

    label: str
    value: Array  # infinite: not reached
    low: Array
    high: Array
    trials: Array  # [cases, trials]; infinite: not reached
    dotted: bool = False


@dataclass(frozen=True)
class Panel:
    """One measure of all methods."""

    ylabel: str
    series: Sequence[Series]
    log: bool = False
    limit: Array | None = None  # [cases]: height of the marks of what was not reached
    lines: Mapping[str, Array] = field(default_factory=dict)  # of theory or the expert, by their labels
    apart: Array | None = None  # [cases] bool: cases without a line to them; None for none


def plot_method_comparison(
    panels: Sequence[Panel], x: Array, labels: Sequence[str], xlabel: str, title: str, path: Path
) -> None:
    """Plot all panels into path.png and path.svg; `x` [cases] are positions on the axis with `labels`."""
    figure = Figure(figsize=(5.4 * len(panels) if len(panels) > 1 else 7.2, 5.2), layout="constrained")
    axes = list(figure.subplots(1, len(panels), squeeze=False)[0])
    figure.suptitle(title)
    for panel_axes, panel in zip(axes, panels, strict=True):
        plot_panel(panel_axes, panel, x)
        panel_axes.xaxis.set_major_locator(FixedLocator(list(x)))
        panel_axes.xaxis.set_minor_locator(NullLocator())
        panel_axes.set_xticklabels(labels)
        style_axes(panel_axes, xlabel=xlabel, ylabel=panel.ylabel)
    add_shared_legend(figure, axes)
    save_figure(figure, path)


def add_shared_legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """Add one legend of all panels below them, with each line once."""
    entries = [pair for panel_axes in axes for pair in zip(*panel_axes.get_legend_handles_labels(), strict=True)]
    handles = {label: handle for handle, label in reversed(entries)}
    order = list(dict.fromkeys(label for _, label in entries))
    columns = 2 if max(map(len, order)) > 40 or len(axes) == 1 else 3
    ordered = [handles[label] for label in order]
    figure.legend(handles=ordered, labels=order, frameon=False, loc="outside lower center", ncols=columns)


def plot_panel(axes: Axes, panel: Panel, x: Array) -> None:
    """Plot all methods and lines of one panel."""
    if panel.log:
        axes.set_yscale("log")
    span = float(x.max() - x.min()) or 1.0
    middle = (len(panel.series) - 1) / 2
    never = False
    for number, series in enumerate(panel.series):
        shifted = x + (number - middle) * METHOD_OFFSET * span
        never |= plot_series(axes, series, shifted, panel, number)
    if never:
        axes.plot([], [], NEVER_MARKER, color="#6B7280", linestyle="none", label="not reached within the budget")
    for number, (label, y) in enumerate(panel.lines.items()):
        style = "--" if label == EXPERT_LABEL else THEORY_STYLES[number % len(THEORY_STYLES)]
        axes.plot(x, mask_theory_line(y, panel), style, color=BOUND, linewidth=1.4, label=label, zorder=1)


def plot_series(axes: Axes, series: Series, x: Array, panel: Panel, number: int) -> bool:
    """Plot one method: line, intervals and trials. Return whether something was not reached."""
    color = COLORS[number % len(COLORS)]
    marker = MARKERS[number % len(MARKERS)]
    top = np.full(len(x), np.nan) if panel.limit is None else panel.limit
    apart = np.zeros(len(x), bool) if panel.apart is None else panel.apart
    reached = np.isfinite(series.value)
    line = np.where(reached, series.value, np.nan)
    low, high = (np.where(np.isfinite(end), end, top) for end in (series.low, series.high))
    below, above = (np.where(reached, np.abs(end - line), np.nan) for end in (low, high))
    style = ":" if series.dotted else "-"
    axes.errorbar(x, line, [below, above], color=color, fmt="none", elinewidth=1.2, capsize=2, alpha=0.7)
    together = np.where(apart, np.nan, line)
    axes.plot(x, together, style, color=color, marker=marker, markersize=5, linewidth=1.8, label=series.label)
    axes.plot(x[apart], line[apart], marker, color=color, markersize=5)
    never = np.isinf(series.value)
    axes.plot(
        x[never], top[never], NEVER_MARKER, color=color, markersize=8, markerfacecolor="none", markeredgewidth=1.6
    )
    for trial in series.trials.T:
        is_finite = np.isfinite(trial)
        axes.plot(x[is_finite], trial[is_finite], ".", color=color, markersize=3, alpha=0.5)
        missed = np.isinf(trial) & reached
        axes.plot(x[missed], top[missed], NEVER_MARKER, color=color, markersize=4, alpha=0.6)
    return bool(np.isinf(series.trials).any() or never.any())


def mask_theory_line(y: Array, panel: Panel) -> Array:
    """Return a line of theory without the part far above the measured numbers, which would flatten them."""
    if not panel.log:
        return y
    tops = [panel.limit] if panel.limit is not None else [series.high for series in panel.series]
    finite = np.concatenate([top[np.isfinite(top)] for top in tops])
    return np.where(y <= MAX_THEORY_RATIO * finite.max(), y, np.nan) if len(finite) else y
