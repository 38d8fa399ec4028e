"""Reliability diagrams: how often a policy is right, over its confidence."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from aggrevated.plots.learning_curves import BOUND, COLORS, save_figure, style_axes


def plot_reliability_diagram(
    groups: Mapping[str, tuple[Sequence[Sequence[float]], float]], title: str, path: Path, noun: str = "arcs"
) -> None:
    """Plot a panel per group of pages into path.png and path.svg: share of right decisions over confidence.

    Calibrated policies are on the dashed line; a dot's area is proportional to the count of its bin.

    Args:
        groups: by title, the bins as (confidence, share that is right, count) and the calibration error.
        title: title of the figure.
        path: path of the figure without its ending.
        noun: name of the decisions.
    """
    figure = Figure(figsize=(4.6 * len(groups), 4.8), layout="constrained")
    figure.suptitle(title)
    panels = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    for axes, (name, (bins, error)), color in zip(panels, groups.items(), COLORS, strict=False):
        total = sum(count for _, _, count in bins)
        axes.plot([0, 1], [0, 1], "--", color=BOUND, linewidth=1.2)
        axes.plot(
            [confidence for confidence, _, _ in bins], [right for _, right, _ in bins], color=color, linewidth=1.6
        )
        for confidence, right, count in bins:
            axes.plot([confidence], [right], "o", color=color, alpha=0.75, markersize=4 + 22 * (count / total) ** 0.5)
        panel_title = f"{name}\n{total:,.0f} {noun}, expected calibration error {error:.3f}"
        style_axes(axes, xlabel=f"how sure of the {noun}", title=panel_title)
        axes.set(xlim=(-0.03, 1.05), ylim=(-0.03, 1.05))
    panels[0].set_ylabel("share that is right")
    save_figure(figure, path)
