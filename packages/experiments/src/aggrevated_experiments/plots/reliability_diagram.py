"""Reliability diagrams: how often a policy is right, over how sure it was."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from aggrevated.plots.learning_curves import BOUND, COLORS, save_figure, style_axes


def plot_reliability_diagram(
    groups: Mapping[str, tuple[Sequence[Sequence[float]], float]], title: str, path: Path, what: str = "arcs"
) -> None:
    """A panel for each group of pages: bins of (sureness, share that is right, how many), and its calibration error.

    What is calibrated lies on the dashed line; a dot's area is the number of arcs in its bin.
    """
    figure = Figure(figsize=(4.6 * len(groups), 4.8), layout="constrained")
    figure.suptitle(title)
    panels = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    for axes, (name, (bins, error)), colour in zip(panels, groups.items(), COLORS, strict=False):
        total = sum(count for _, _, count in bins)
        axes.plot([0, 1], [0, 1], "--", color=BOUND, linewidth=1.2)
        axes.plot([sure for sure, _, _ in bins], [right for _, right, _ in bins], color=colour, linewidth=1.6)
        for sure, right, count in bins:
            axes.plot([sure], [right], "o", color=colour, alpha=0.75, markersize=4 + 22 * (count / total) ** 0.5)
        said = f"{name}\n{total:,.0f} {what}, expected calibration error {error:.3f}"
        style_axes(axes, xlabel=f"how sure of the {what}", title=said)
        axes.set(xlim=(-0.03, 1.05), ylim=(-0.03, 1.05))
    panels[0].set_ylabel("share that is right")
    save_figure(figure, path)
