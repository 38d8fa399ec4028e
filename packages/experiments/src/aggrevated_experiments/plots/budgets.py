"""Learning curves over all costs of learning: episodes, simulator steps, queries, CPU seconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from aggrevated.core.arrays import Array
from aggrevated.core.statistics import bootstrap_interval, compute_interquartile_mean
from aggrevated.plots.learning_curves import BOUND, COLORS, draw_legend_below, save_figure, style_axes

AXIS_LABELS = {
    "episodes": "episodes rolled in",
    "simulator_steps": "simulator steps of start, roll-ins and oracle",
    "oracle_queries": "questions to the oracle",
    "cpu_seconds": "CPU seconds, validation among them",
}
N_GRID_POINTS = 160
LINE_STYLES = ("-", "--", "-.")


@dataclass(frozen=True)
class MethodCurves:
    """Cost curves of all trials of one method."""

    label: str
    trials: Sequence[Mapping[str, Sequence[float]]]
    dotted: bool = False


def plot_budgets(
    methods: Sequence[MethodCurves], expert: float, title: str, path: Path, validation: str, measured: str
) -> None:
    """Plot one panel per kind of cost into path.png and path.svg.

    Args:
        methods: the curves of each method.
        expert: the expert's return.
        title: title of the figure.
        path: path of the figure without its ending.
        validation: sentence on the cost of validation, which only the axis of CPU seconds includes.
        measured: name of what the y axis shows.
    """
    figure = Figure(figsize=(10.8, 8.4), layout="constrained")
    panels = figure.subplots(2, 2, sharey=True).ravel()
    figure.suptitle(f"{title}\n{validation}", fontsize=11)
    for panel, (name, axis) in zip(panels, AXIS_LABELS.items(), strict=True):
        style_axes(panel, xlabel=axis)
        panel.set(xscale="linear" if name == "episodes" else "log")
        for number, method in enumerate(methods):
            plot_method(panel, method, name, COLORS[number % len(COLORS)], LINE_STYLES[number // len(COLORS)])
        panel.axhline(expert, color=BOUND, linestyle=(0, (5, 2)), linewidth=1.2, label=f"expert ({expert:.4g})")
    for panel in panels[::2]:
        panel.set(ylabel=f"{measured} of the best policy so far")
    longest = max(len(method.label) for method in methods)
    draw_legend_below(figure, panels[0], columns=3 if longest < 44 else 2)
    save_figure(figure, path)


def plot_method(panel: Axes, method: MethodCurves, name: str, color: str, style: str) -> None:
    """Plot one method in one panel, unless it has no such cost."""
    total = max(trial[name][-1] for trial in method.trials)
    if not total:
        return
    grid = make_grid(method, name, total)
    values = np.array([resample_returns(grid, trial[name], trial["best_return"]) for trial in method.trials])
    width = 2.2 if method.label.startswith("AggreVaTeD") else 1.3
    line = ":" if method.dotted else style
    panel.plot(grid, compute_interquartile_mean(values), line, color=color, linewidth=width, label=method.label)
    if len(values) > 1:
        low, high = bootstrap_interval(values)
        panel.fill_between(grid, low, high, color=color, alpha=0.12, linewidth=0)


def make_grid(method: MethodCurves, name: str, total: float) -> Array:
    """Return where the curve is drawn: evenly over episodes, else geometrically from the first cost on."""
    if name == "episodes":
        return np.linspace(0.0, total, N_GRID_POINTS)
    first = min(value for trial in method.trials for value in trial[name] if value > 0)
    return np.geomspace(first, total, N_GRID_POINTS)


def resample_returns(grid: Array, costs: Sequence[float], returns: Sequence[float]) -> Array:
    """Return the best return so far at each cost; before the first policy is known, its return."""
    indices = np.searchsorted(np.array(costs), grid * (1 + 1e-12), side="right") - 1
    return np.asarray(np.array(returns)[np.maximum(indices, 0)])
