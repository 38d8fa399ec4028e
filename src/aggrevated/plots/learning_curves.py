"""Learning curves: the return of the best policy so far over episodes or simulator steps."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from aggrevated.core.arrays import Array
from aggrevated.core.statistics import bootstrap_interval, compute_interquartile_mean
from aggrevated.storage import write_atomically

# Okabe and Ito's palette, which color-blind readers can distinguish.
COLORS = ("#0072B2", "#009E73", "#D55E00", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
BOUND = "#B00020"  # for the expert and for theoretical bounds

MOST_PIXELS = 8000  # on a figure's longer side


@dataclass(frozen=True)
class Curve:
    """Returns of all trials of one method at the same numbers of episodes."""

    label: str
    episodes: Array  # [points]
    returns: Array  # [trials, points]
    dotted: bool = False
    steps: Array | None = None  # [points − 1]: of start, roll-ins and oracle, after each iteration
    validation_steps: float = 0.0  # simulator steps of all validations, not counted in `steps`


def plot_learning_curves(
    curves: Sequence[Curve], expert: float | None, title: str, path: Path, measured: str = "return"
) -> None:
    """Plot the interquartile mean over trials of each curve with its 95 % band into path.png and path.svg.

    A second panel over simulator steps is added where all curves have them.

    Args:
        curves: one curve per method.
        expert: the expert's return, drawn as a line; None draws none.
        title: title of the figure.
        path: path of the figure without its ending.
        measured: name of what the y axis shows.
    """
    has_steps = all(curve.steps is not None for curve in curves)
    figure, axes = make_figure(title, f"{measured} of the best policy so far", panels=2 if has_steps else 1)
    for curve, color in zip(curves, cycle(COLORS), strict=False):
        plot_curve(axes[0], curve, curve.episodes, curve.returns, color)
        if has_steps and curve.steps is not None:
            plot_curve(axes[1], curve, curve.steps, curve.returns[:, 1:], color)
    if has_steps:
        axes[1].set(
            xlabel=f"simulator steps of start, roll-ins and oracle\n{describe_validation_cost(curves)}", xscale="log"
        )
    finish_figure(figure, axes, expert, path)


def describe_validation_cost(curves: Sequence[Curve]) -> str:
    """Return how many simulator steps validation took on top of those on the axis."""
    steps = [curve.validation_steps / 1000 for curve in curves]
    ends = dict.fromkeys(f"{end:,.0f} k" for end in (min(steps), max(steps)))
    return f"(and {' to '.join(ends)} of validation)"


def plot_run_curve(
    episodes: Sequence[int],
    current: Sequence[float],
    best: Sequence[float],
    expert: float,
    title: str,
    path: Path,
    measured: str = "return",
    expert_label: str = "expert",
) -> None:
    """Plot the current policy thin, the best so far thick and the expert dashed, into path.png and path.svg.

    `expert_label` is the label of the expert's line: it has to mention other episodes of measurement.
    """
    figure, axes = make_figure(title, f"{measured} on validation episodes")
    axes[0].plot(episodes, current, color="#56B4E9", linewidth=1, label="current policy")
    axes[0].plot(episodes, best, color="#0072B2", linewidth=2.2, label="best so far")
    finish_figure(figure, axes, expert, path, expert_label)


def plot_curve(axes: Axes, curve: Curve, x: Array, returns: Array, color: str) -> None:
    """Add one curve to the axes."""
    style = ":" if curve.dotted else "-"
    mean = compute_interquartile_mean(returns)
    axes.plot(x, mean, style, color=color, linewidth=2, label=curve.label)
    if len(returns) > 1:
        low, high = bootstrap_interval(returns)
        axes.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0)


def make_figure(title: str, measured: str, panels: int = 1) -> tuple[Figure, list[Axes]]:
    """Return an empty figure over episodes and its axes; all panels share the y axis."""
    figure = Figure(figsize=(7.2 if panels == 1 else 10.8, 4.8), layout="constrained")
    axes = list(figure.subplots(1, panels, sharey=True, squeeze=False)[0])
    figure.suptitle(title)
    for panel in axes:
        style_axes(panel)
    axes[0].set(xlabel="episodes", ylabel=measured)
    return figure, axes


def finish_figure(
    figure: Figure, axes: Sequence[Axes], expert: float | None, path: Path, expert_label: str = "expert"
) -> None:
    """Add the expert's line and the legend, and write the figure."""
    if expert is not None:
        label = f"{expert_label} ({expert:.3g})" if expert < 100 else f"{expert_label} ({expert:.0f})"
        for panel in axes:
            panel.axhline(expert, color=BOUND, linestyle="--", linewidth=1.4, label=label)
    longest = max(len(str(line.get_label())) for line in axes[0].get_lines())
    draw_legend_below(figure, axes[0], columns=3 if longest < 22 else 2)
    save_figure(figure, path)


def draw_legend_below(figure: Figure, axes: Axes, columns: int) -> None:
    """Draw the legend of these axes below them."""
    handles, _ = axes.get_legend_handles_labels()
    figure.legend(handles=handles, frameon=False, loc="outside lower center", ncols=columns)


def style_axes(axes: Axes, **labels: str) -> None:
    """Set labels and a grid, and remove the top and right of the frame."""
    axes.set(**labels)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure as PNG and SVG, each atomically."""
    FigureCanvasAgg(figure)
    dpi = min(120.0, MOST_PIXELS / max(figure.get_size_inches()))
    for ending in ("png", "svg"):
        buffer = io.BytesIO()
        with rc_context({"svg.hashsalt": "aggrevated"}):  # makes the files reproducible
            figure.savefig(buffer, format=ending, dpi=dpi, metadata={"Date": None} if ending == "svg" else None)
        write_atomically(path.with_name(f"{path.name}.{ending}"), buffer.getvalue())


def pad_curves(values: Sequence[Sequence[float]]) -> Array:
    """Return trials of different lengths as one array: curves that ended early keep their last value."""
    longest = max(len(trial) for trial in values)
    return np.array([[*trial, *[trial[-1]] * (longest - len(trial))] for trial in values])
