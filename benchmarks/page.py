"""Make docs/results/speed.md, .json and .png from the output of the benchmarks: `python benchmarks/page.py *.json`."""

import json
import sys
from pathlib import Path

from matplotlib.figure import Figure

RESULTS = Path(__file__).parent.parent / "docs/results"
INTRODUCTION = """# Speed, beside peers

![Roll-in speed](speed.png)

Medians of interleaved rounds on one thread, or two where it says so; [what is compared](../../benchmarks/README.md),
and how to run it. A target that was missed stands here as missed. Roll-in, whole iterations and start-up were measured
again after compiled loops; the other tables are of the version before it.
"""


def main(paths: list[str]) -> None:
    """Write the page, the figure and the numbers."""
    reports = [json.loads(Path(path).read_text()) for path in paths]
    lines = [INTRODUCTION]
    for report in reports:
        lines += [f"\n## {report['benchmark']}\n", "| case | | asked | measured | |", "|---|---|---|---|---|"]
        for row in report["targets"]:
            verdict = "met" if row["met"] else "**missed**"
            lines.append(f"| {row['case']} | {row['what']} | {row['asked']} | {row['measured']:.3g} | {verdict} |")
        lines += ["\n| case | contender | median | unit |", "|---|---|---|---|"]
        for row in report["rows"]:
            lines.append(f"| {row['case']} | {row['name']} | {number(row['median'])} | {row['unit']} |")
    versions = ", ".join(f"{name} {version}" for name, version in reports[0]["versions"].items())
    names = " ".join(Path(path).stem for path in paths)
    lines.append(
        f"\nCommands: `python benchmarks/NAME.py --json NAME.json` for {names}; {versions}; two cores, one used "
        "but for rows that say two."
    )
    (RESULTS / "speed.md").write_text("\n".join(lines) + "\n")
    (RESULTS / "speed.json").write_text(json.dumps(reports, indent=1) + "\n")
    draw(reports[0])


def number(value: float) -> str:
    """Format a number with three digits and thousands separators."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def draw(report: dict) -> None:
    """Plot steps per second of every contender, by case."""
    cases = list(dict.fromkeys(row["case"] for row in report["rows"]))
    names = list(dict.fromkeys(row["name"] for row in report["rows"]))
    figure = Figure(figsize=(7.2, 5.8), layout="constrained")
    axes = figure.subplots()
    colours = {"aggrevated": "#0072B2", "numba, fused": "#999999"}
    high = 0.8 / len(names)
    others = iter(("#E69F00", "#F0C870", "#009E73", "#7FCFB6", "#CC79A7"))
    for place, name in enumerate(names):
        speeds = {row["case"]: row["median"] for row in report["rows"] if row["name"] == name}
        at = [cases.index(case) + (place - len(names) / 2) * high for case in speeds]  # some cases lack contenders
        colour = colours.get(name) or next(others)
        axes.barh(at, list(speeds.values()), height=0.94 * high, label=name, color=colour)
    axes.set(xscale="log", xlabel="environment steps per second", title="Roll-in, 50 episodes at once, one thread")
    axes.set_yticks(range(len(cases)), [case.replace(" (", "\n(") for case in cases])
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, loc="outside lower center", ncols=2)
    figure.savefig(RESULTS / "speed.png", dpi=120)


if __name__ == "__main__":
    if "--help" in sys.argv:
        print(__doc__)
        sys.exit()
    main(sys.argv[1:])
