"""The diagnosis for people: lines of text, and a page that needs nothing beside it."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path

from aggrevated.doctor.diagnosis import Diagnosis
from aggrevated.doctor.figure import plot_diagnosis
from aggrevated.doctor.findings import Verdict
from aggrevated.storage import reraise_storage_errors, write_atomically, write_json

VERDICT_MARKS: dict[Verdict, str] = {"fine": "ok", "warning": "??", "fault": "XX", "unknown": "--"}
VERDICT_COLORS: dict[Verdict, str] = {"fine": "#00704F", "warning": "#8A5A00", "fault": "#B00020", "unknown": "#6B7280"}
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62em; margin: 2em auto; padding: 0 1em; color: #1F2937 }
table { border-collapse: collapse } td { padding: .35em .8em .35em 0; vertical-align: top }
td.verdict { font-weight: 600; white-space: nowrap } .remedy { color: #374151; font-style: italic }
img { width: 100% } pre { background: #F1F5F9; padding: .8em 1em; overflow-x: auto }
"""


def report_lines(diagnosis: Diagnosis) -> list[str]:
    """Each finding a line with its mark; then what to do; then the command."""
    width = max(len(one.check) for one in diagnosis.findings)
    found = [f"{VERDICT_MARKS[one.verdict]}  {one.check:<{width}}  {one.sentence}" for one in diagnosis.findings]
    remedies = [f"- {one.check}: {one.remedy}" for one in diagnosis.findings if one.remedy]
    if remedies:
        found += ["", "What to do:", *remedies]
    return [*found, "", describe_verdict(diagnosis), *recommendation_lines(diagnosis)]


def recommendation_lines(diagnosis: Diagnosis) -> list[str]:
    """The command, why, and what it will take."""
    one = diagnosis.recommendation
    if one is None:
        return []
    after = "after that: " if diagnosis.faults else ""
    takes = (
        f"about {one.steps:,} simulator steps, {format_minutes(one.minutes)} of simulation at the pace measured here"
    )
    return [f"{after}{one.command}", f"  because {one.why}", f"  {takes}"]


def format_minutes(value: float) -> str:
    """For people."""
    return "less than a minute" if value < 1 else f"{value:.0f} minutes" if value < 120 else f"{value / 60:.1f} hours"


def describe_verdict(diagnosis: Diagnosis) -> str:
    """The whole in a line."""
    number = {verdict: sum(one.verdict == verdict for one in diagnosis.findings) for verdict in VERDICT_MARKS}
    if number["fault"]:
        return f"{format_count(number['fault'], 'fault')}, {format_count(number['warning'], 'warning')}: mend this before training."
    if number["warning"]:
        return f"No fault, {format_count(number['warning'], 'warning')}."
    return "No fault was found."


def format_count(number: int, what: str) -> str:
    """In words that fit."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def write_report(diagnosis: Diagnosis, folder: Path) -> Path:
    """report.html, report.json and doctor.png in a folder; the page's path."""
    with reraise_storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if diagnosis.views is not None:
        plot_diagnosis(diagnosis, folder / "doctor")
    write_json(folder / "report.json", diagnosis.to_dict())
    page = folder / "report.html"
    write_atomically(page, render_html(diagnosis, folder / "doctor.png").encode())
    return page


def render_html(diagnosis: Diagnosis, picture: Path) -> str:
    """The page, with the figure in it."""
    title = escape(f"{diagnosis.task}: the expert {diagnosis.expert}")
    rows = "\n".join(
        f'<tr><td class="verdict" style="color:{VERDICT_COLORS[one.verdict]}">{one.verdict}</td><td>{escape(one.check)}</td>'
        f'<td>{escape(one.sentence)}<br><span class="remedy">{escape(one.remedy)}</span></td></tr>'
        for one in diagnosis.findings
    )
    drawn = ""
    if diagnosis.views is not None:
        data = base64.b64encode(picture.read_bytes()).decode()
        drawn = f'<img alt="returns, costs said and paid, headroom" src="data:image/png;base64,{data}">'
    said = escape("\n".join(recommendation_lines(diagnosis)))
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        f"<style>{STYLE}</style></head><body>",
        f"<h1>{title}</h1><p>{escape(describe_verdict(diagnosis))}</p><table>{rows}</table>",
        f"<h2>What to run</h2><pre>{said}</pre>" if said else "",
        drawn,
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"
