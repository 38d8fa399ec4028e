"""Methods on a treebank at equal updates: rows, seeds, a table and a figure.

    python benchmarks/text_rows.py --data train.conllu --dev dev.conllu --runs FOLDER [--seeds 3] [--only NAME …]

Every row makes the same number of updates with the same number of sentences each, from scratch, with the same policy.
Runs that are there already are not made again. `--report` only writes docs/results/text-rows.json and .png
and prints the table. What is learned along has the weights that the task has for each update.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import t as student

from aggrevated.arithmetic import fingerprint
from aggrevated.files import write_json

RESULTS = Path(__file__).parent.parent / "docs/results"
UPDATES, SENTENCES = 300, 16
SAME = {
    "iterations": UPDATES, "trajectories": SENTENCES, "validate-every": UPDATES, "hidden": 64, "word": 64,
    "width": 96, "dropout": 0.2, "start": "random",
}  # fmt: skip
ADAM = {"update": "regular", "learning-rate": 3e-3, "annealed": -1}
REGULAR = ADAM | {"entropy": 0.1}
ONE_FIT = {"update": "exponentiated", "fit-steps": 1, "minibatch": 100_000}
# The natural update learns nothing along, so that half of its updates are a supervised start, which does.
NATURAL = {
    "update": "natural", "iterations": UPDATES // 2, "validate-every": UPDATES // 2, "start": "supervised",
    "start-steps": UPDATES // 2, "start-rate": 3e-3, "demonstrations": UPDATES // 2 * SENTENCES,
}  # fmt: skip
POOR = {"corrupted": 0.2}
ROWS = {
    "SL (static oracle)": ("sl", ADAM),
    "scheduled sampling": ("scheduled-sampling", ADAM | {"mixing-scale": 45.0}),
    "DAgger (dynamic oracle)": ("dagger", ADAM),
    "AggreVaTeD, regular": ("aggrevated", REGULAR),
    "AggreVaTeD, natural": ("aggrevated", NATURAL),
    "AggreVaTeD, exponentiated": ("aggrevated", ONE_FIT),
    "poor expert: DAgger": ("dagger", ADAM | POOR),
    "poor expert: AggreVaTeD, exponentiated": ("aggrevated", ONE_FIT | POOR),
    "poor expert: LOLS": ("lols", REGULAR | POOR | {"queried-steps": 3}),
}


def command(name: str, seed: int, options: argparse.Namespace) -> list[str]:
    """What makes a run of that row."""
    method, settings = ROWS[name]
    words = [f"--{key}={value}" for key, value in (SAME | settings).items()]
    files = ["--data", str(options.data), "--dev", str(options.dev)]
    out = ["--out", str(place(name, seed, options)), "--seed", str(seed)]
    return ["aggrevated", "train", "text", "--method", method, *files, *words, *out]


def place(name: str, seed: int, options: argparse.Namespace) -> Path:
    """Its folder."""
    return options.runs / f"{name.replace(':', '').replace(',', '').replace(' ', '-')}-{seed}"


def report(options: argparse.Namespace) -> None:
    """Write the page, the numbers and the figure of all runs that have ended."""
    rows = []
    for name, (method, settings) in ROWS.items():
        found = [place(name, seed, options) / "result.json" for seed in range(options.seeds)]
        results = [json.loads(path.read_text()) for path in found if path.is_file()]
        if results:
            rows.append(
                {"row": name, "method": method, "settings": SAME | settings, "seeds": len(results)}
                | {key: [one[key] for one in results] for key in ("uas", "las", "tags", "seconds", "calibration_error")}
            )
    write_json(RESULTS / "text-rows.json", {"versions": fingerprint(), "updates": UPDATES, "sentences": SENTENCES,
                                            "rows": rows})  # fmt: skip
    lines = ["| row | seeds | UAS | LAS | tags | minutes |", "|---|---|---|---|---|---|"]
    for row in rows:
        cells = (interval(row[key]) for key in ("uas", "las", "tags"))
        lines.append(f"| {row['row']} | {row['seeds']} | {' | '.join(cells)} | {np.mean(row['seconds']) / 60:.1f} |")
    print("\n".join(lines))
    draw(rows)


def interval(values: list[float]) -> str:
    """A mean with its 95 % interval, by Student's t over seeds."""
    if len(values) < 2:
        return f"{values[0]:.3f}"
    half = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    return f"{np.mean(values):.3f} ± {half:.3f}"


def draw(rows: list[dict]) -> None:
    """UAS of each row, every seed a dot."""
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axes = figure.subplots()
    for height, row in enumerate(reversed(rows)):
        poor = row["row"].startswith("poor")
        colour = "#D55E00" if poor else "#0072B2"
        axes.plot(row["uas"], [height] * len(row["uas"]), "o", color=colour, alpha=0.5)
        axes.plot([np.mean(row["uas"])], [height], "|", color=colour, markersize=16, markeredgewidth=2)
    axes.set_yticks(range(len(rows)), [row["row"] for row in reversed(rows)])
    axes.set_xlabel(f"UAS on dev after {UPDATES} updates of {SENTENCES}; dots: seeds")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="#E5E7EB")
    figure.savefig(RESULTS / "text-rows.png", dpi=150)


def main() -> None:
    """Make the runs that are missing, then the report."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--dev", type=Path, required=True)
    options.add_argument("--runs", type=Path, required=True)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--only", nargs="*", default=list(ROWS))
    options.add_argument("--report", action="store_true")
    given = options.parse_args()
    for seed in [] if given.report else range(given.seeds):
        for name in given.only:
            if not (place(name, seed, given) / "result.json").is_file():
                subprocess.run([sys.executable, "-m", *command(name, seed, given)], check=True)
    report(given)


if __name__ == "__main__":
    main()
