"""Report of a diagnosis as text, and as an HTML page with a figure."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from aggrevated.core.arrays import Array
from aggrevated.doctor.diagnosis import Diagnosis
from aggrevated.doctor.figure_data import FigureData
from aggrevated.doctor.findings import Verdict
from aggrevated.plots.learning_curves import BOUND, COLORS, save_figure, style_axes
from aggrevated.storage import reraise_storage_errors, write_atomically, write_json

EXPERT = COLORS[0]
FIRST = COLORS[4]
RANDOM = "#9CA3AF"
MAX_PERCENTILE = 99.0  # of the advantages, beyond which the axes end


def plot_diagnosis(diagnosis: Diagnosis, path: Path) -> None:
    """Save the figure of a diagnosis as PNG and SVG."""
    assert diagnosis.views is not None
    views = diagnosis.views
    figure = Figure(figsize=(13.2, 7.6), layout="constrained")
    panels = figure.subplots(2, 3).ravel()
    figure.suptitle(f"{diagnosis.task}: the expert {diagnosis.expert}")
    plot_returns(panels[0], views)
    plot_predicted_vs_rollout(panels[1], views)
    plot_advantages(panels[2], views)
    plot_costs_over_time(panels[3], views)
    plot_action_gaps(panels[4], views)
    plot_verdicts(panels[5], diagnosis)
    save_figure(figure, path)


def plot_returns(axes: Axes, views: FigureData) -> None:
    """Plot the return of each episode, and the means."""
    style_axes(axes, title="returns", ylabel="return of an episode")
    rng = np.random.default_rng(0)
    for x, ((_, values), color) in enumerate(zip(views.returns.items(), (EXPERT, FIRST, RANDOM), strict=True)):
        axes.plot(x + rng.uniform(-0.2, 0.2, len(values)), values, ".", color=color, alpha=0.35, markersize=4)
        axes.plot([x - 0.3, x + 0.3], [values.mean()] * 2, color=color, linewidth=2.5)
        position = (x, values.mean())
        axes.annotate(f"{values.mean():.4g}", position, (26, 4), textcoords="offset points", fontsize=9)
    axes.set_xticks(range(len(views.returns)), list(views.returns))
    axes.set_xlim(-0.5, len(views.returns) - 0.25)


def plot_predicted_vs_rollout(axes: Axes, views: FigureData) -> None:
    """Plot predicted cost against rollout cost of each probe."""
    title = "cost-to-go of following the expert"
    style_axes(axes, title=title, xlabel="rollout cost", ylabel="predicted by the expert")
    if not len(views.predicted_costs):
        return mark_empty(axes)
    x = views.first_policy_rollout_costs
    y = views.first_policy_predicted_costs
    axes.plot(x, y, ".", color=FIRST, alpha=0.6, label="states of the first policy")
    axes.plot(views.rollout_costs, views.predicted_costs, ".", color=EXPERT, alpha=0.6, label="states of the expert")
    plot_diagonal(axes, np.concatenate([views.rollout_costs, x, views.predicted_costs, y]))
    axes.legend(frameon=False, fontsize=8)
    return None


def plot_advantages(axes: Axes, views: FigureData) -> None:
    """Plot predicted cost against rollout cost of each action, less the mean of its state."""
    title = "cost of an action, less the mean of its state"
    style_axes(axes, title=title, xlabel="rollout cost", ylabel="predicted by the expert")
    if not len(views.predicted_advantages):
        return mark_empty(axes)
    x = views.rollout_advantages
    y = views.predicted_advantages
    axes.plot(x, y, ".", color=EXPERT, alpha=0.5)
    for values, set_limits in ((x, axes.set_xlim), (y, axes.set_ylim)):
        end = float(np.percentile(abs(values), MAX_PERCENTILE)) or 1.0
        set_limits(-1.15 * end, 1.15 * end)
    low, high = axes.get_xlim()
    axes.axline((0, 0), slope=1, color=BOUND, linestyle="--", linewidth=1.2)
    axes.set_xlim(low, high)
    return None


def plot_costs_over_time(axes: Axes, views: FigureData) -> None:
    """Plot predicted and actual cost-to-go along the expert's episodes."""
    t, predicted, actual = views.by_time
    style_axes(axes, title="cost-to-go over an episode", xlabel="step", ylabel="mean over episodes")
    axes.plot(t, actual, color=RANDOM, linewidth=2, label="actual cost until the end")
    if len(predicted):
        axes.plot(t, predicted, color=EXPERT, linewidth=2, label="predicted by the expert")
    axes.legend(frameon=False, fontsize=8)


def plot_action_gaps(axes: Axes, views: FigureData) -> None:
    """Plot how much cost the best single action saves, over the expert's states."""
    style_axes(
        axes, title="saved by the best single action", xlabel="states of the expert, sorted", ylabel="cost saved"
    )
    values = np.sort(views.action_gaps)[::-1]
    axes.fill_between(np.arange(len(values)) / max(len(values), 1), values, step="post", color=EXPERT, alpha=0.5)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")


def plot_verdicts(axes: Axes, diagnosis: Diagnosis) -> None:
    """List the checks and their verdicts in a column."""
    axes.axis("off")
    axes.set_title("checks")
    colors = {"fine": COLORS[1], "warning": COLORS[4], "fault": BOUND, "unknown": RANDOM}
    for row, one in enumerate(diagnosis.findings):
        y = 0.97 - row * 0.066
        axes.text(0.2, y, one.check, transform=axes.transAxes, fontsize=10, va="top")
        color = colors[one.verdict]
        axes.text(0.6, y, one.verdict, transform=axes.transAxes, fontsize=10, va="top", color=color, weight="bold")


def mark_empty(axes: Axes) -> None:
    """Mark a panel that shows nothing, since the expert returns no costs."""
    axes.text(0.5, 0.5, "the expert returns no costs", transform=axes.transAxes, ha="center", va="center", color=RANDOM)
    axes.set_xticks([])
    axes.set_yticks([])


def plot_diagonal(axes: Axes, values: Array) -> None:
    """Plot the diagonal, and set both axes to the range of the values."""
    low = float(values.min())
    high = float(values.max())
    margin = 0.05 * (high - low) or 1.0
    axes.axline((low, low), slope=1, color=BOUND, linestyle="--", linewidth=1.2)
    axes.set(xlim=(low - margin, high + margin), ylim=(low - margin, high + margin))


VERDICT_MARKS: dict[Verdict, str] = {"fine": "ok", "warning": "??", "fault": "XX", "unknown": "--"}
VERDICT_COLORS: dict[Verdict, str] = {"fine": "#00704F", "warning": "#8A5A00", "fault": "#B00020", "unknown": "#6B7280"}
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62em; margin: 2em auto; padding: 0 1em; color: #1F2937 }
table { border-collapse: collapse } td { padding: .35em .8em .35em 0; vertical-align: top }
td.verdict { font-weight: 600; white-space: nowrap } .remedy { color: #374151; font-style: italic }
img { width: 100% } pre { background: #F1F5F9; padding: .8em 1em; overflow-x: auto }
"""


def report_lines(diagnosis: Diagnosis) -> list[str]:
    """Return the report as lines: the findings with their marks, the remedies, and the recommended command."""
    width = max(len(finding.check) for finding in diagnosis.findings)
    lines = [f"{VERDICT_MARKS[one.verdict]}  {one.check:<{width}}  {one.sentence}" for one in diagnosis.findings]
    remedies = [f"- {finding.check}: {finding.remedy}" for finding in diagnosis.findings if finding.remedy]
    if remedies:
        lines += ["", "What to do:", *remedies]
    return [*lines, "", describe_verdict(diagnosis), *format_recommendation_lines(diagnosis)]


def format_recommendation_lines(diagnosis: Diagnosis) -> list[str]:
    """Return the recommended command, the reason and the estimated cost as lines."""
    recommendation = diagnosis.recommendation
    if recommendation is None:
        return []
    prefix = "after that: " if diagnosis.faults else ""
    minutes = format_minutes(recommendation.minutes)
    cost = f"about {recommendation.steps:,} simulator steps, {minutes} of simulation at the pace measured here"
    return [f"{prefix}{recommendation.command}", f"  because {recommendation.why}", f"  {cost}"]


def format_minutes(value: float) -> str:
    """Return a number of minutes in words."""
    return "less than a minute" if value < 1 else f"{value:.0f} minutes" if value < 120 else f"{value / 60:.1f} hours"


def describe_verdict(diagnosis: Diagnosis) -> str:
    """Return the number of faults and warnings as a line."""
    number = {verdict: sum(finding.verdict == verdict for finding in diagnosis.findings) for verdict in VERDICT_MARKS}
    if number["fault"]:
        counts = f"{format_count(number['fault'], 'fault')}, {format_count(number['warning'], 'warning')}"
        return f"{counts}: fix them before training."
    if number["warning"]:
        return f"No fault, {format_count(number['warning'], 'warning')}."
    return "No fault was found."


def format_count(number: int, noun: str) -> str:
    """Return a number with a noun in singular or plural."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def write_report(diagnosis: Diagnosis, folder: Path) -> Path:
    """Write report.html, report.json and doctor.png to a folder, and return the path of report.html."""
    with reraise_storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if diagnosis.views is not None:
        plot_diagnosis(diagnosis, folder / "doctor")
    write_json(folder / "report.json", diagnosis.to_dict())
    page = folder / "report.html"
    write_atomically(page, render_html(diagnosis, folder / "doctor.png").encode())
    return page


def render_html(diagnosis: Diagnosis, picture: Path) -> str:
    """Return the HTML page, with the figure in it."""
    title = escape(f"{diagnosis.task}: the expert {diagnosis.expert}")
    rows = "\n".join(
        '<tr><td class="verdict" '
        f'style="color:{VERDICT_COLORS[finding.verdict]}">{finding.verdict}</td><td>{escape(finding.check)}</td>'
        f'<td>{escape(finding.sentence)}<br><span class="remedy">{escape(finding.remedy)}</span></td></tr>'
        for finding in diagnosis.findings
    )
    image = ""
    if diagnosis.views is not None:
        data = base64.b64encode(picture.read_bytes()).decode()
        image = f'<img alt="returns, predicted and rollout costs, headroom" src="data:image/png;base64,{data}">'
    recommendation = escape("\n".join(format_recommendation_lines(diagnosis)))
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        f"<style>{STYLE}</style></head><body>",
        f"<h1>{title}</h1><p>{escape(describe_verdict(diagnosis))}</p><table>{rows}</table>",
        f"<h2>What to run</h2><pre>{recommendation}</pre>" if recommendation else "",
        image,
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"
