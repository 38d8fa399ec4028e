"""Make docs/results/text.json and .png from runs of `text` that have ended, and print their table.

    python benchmarks/text_report.py --runs RUN … --tagged RUN … --conllu dev.conllu --spacy spacy.json [--speed s.json]

`--tagged` are runs with `--see-tags`. The figure has learning curves and a reliability diagram.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import t as student

from aggrevated.arithmetic import fingerprint
from aggrevated.files import write_json
from aggrevated.runs.cards import command_of
from aggrevated.runs.run import Run
from aggrevated.text.world import OnSentences

RESULTS = Path(__file__).parent.parent / "docs/results"
SHOWN = ("uas", "las", "uas_without_punctuation", "las_without_punctuation", "tags", "calibration_error",
         "calibration_error_labelled", "errors_in_most_doubtful_tenth", "errors_in_least_likely_tenth")  # fmt: skip
BLUE, GREEN, ORANGE = "#0072B2", "#009E73", "#D55E00"


def facts_of(folder, conllu):
    """What a run came to, its curve, and how far its sureness can be trusted."""
    run = Run.open(folder)
    result, metrics = run.result(), [line.facts() for line in run.metrics()]
    assert result is not None, f"{folder} has not ended"
    curve = [
        {"iteration": line["iteration"], "seconds": line["seconds"], "las": line["current_return"],
         "uas": line["validation_uas"], "tags": line["validation_tags"]}
        for line in metrics if "validation_uas" in line
    ]  # fmt: skip
    told = OnSentences(conllu=str(conllu), reliability=True).measure(run.config.world, run.policy)
    command = command_of(run.config)
    for path in filter(None, (run.config.world.data, run.config.world.dev, run.config.world.test)):
        command = command.replace(path, Path(path).name)  # wherever it lay
    return {"command": command, "seed": run.config.loop.seed, "seconds": metrics[-1]["seconds"],
            "weights_sha256": result.weights_sha256, "curve": curve} | told  # fmt: skip


def interval(values):
    """A mean with its 95 % interval over seeds."""
    if len(values) < 2:
        return f"{values[0]:.3f}"
    half = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    return f"{np.mean(values):.3f} ± {half:.3f}"


def draw(plain, tagged, spacy):
    """Learning curves, with spaCy's beside them, and a reliability diagram."""
    figure = Figure(figsize=(9.6, 3.9), layout="constrained")
    curves, diagram = figure.subplots(1, 2, width_ratios=(1.5, 1))
    for runs, colour, name in ((plain, BLUE, "without tags"), (tagged, GREEN, "gold UPOS seen")):
        for place, run in enumerate(runs):
            minutes = [point["seconds"] / 60 for point in run["curve"]]
            for key, style in (("uas", "-"), ("las", "--")):
                label = f"{key.upper()}, {name}" if not place else None
                curves.plot(minutes, [point[key] for point in run["curve"]], style, color=colour, label=label)
    if spacy:
        minutes = np.cumsum([row["training_cpu_seconds"] for row in spacy["epochs"]]) / 60
        curves.plot(
            minutes, [row["uas"] for row in spacy["epochs"]], ".-", color=ORANGE, label="UAS, spaCy's tagger and parser"
        )
    curves.set(xlabel="minutes (spaCy: of CPU; all on one busy core)", ylabel="dev", ylim=(0.65, 0.92))
    curves.legend(fontsize=8, loc="lower right")
    diagram.plot([0, 1], [0, 1], color="#9CA3AF", linewidth=1)
    for key, colour in (("heads", BLUE), ("arcs", ORANGE)):
        sure, right, _ = zip(*plain[0]["reliability"][key], strict=True)
        diagram.plot(sure, right, "o-", color=colour, label={"heads": "head", "arcs": "head and relation"}[key])
    diagram.set(xlabel="how sure it is", ylabel="share that is right", xlim=(0, 1), ylim=(0, 1))
    diagram.legend(fontsize=8, loc="upper left")
    for axes in (curves, diagram):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#E5E7EB")
    figure.savefig(RESULTS / "text.png", dpi=130)


def main():
    """Write and print."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--runs", type=Path, nargs="+", required=True)
    options.add_argument("--tagged", type=Path, nargs="*", default=[])
    options.add_argument("--conllu", type=Path, required=True)
    options.add_argument("--spacy", type=Path)
    options.add_argument("--speed", type=Path)
    given = options.parse_args()
    plain, tagged = ([facts_of(folder, given.conllu) for folder in runs] for runs in (given.runs, given.tagged))
    spacy, speed = (json.loads(path.read_text()) if path else None for path in (given.spacy, given.speed))
    facts = {"versions": fingerprint(), "runs": plain, "tagged": tagged, "spacy": spacy, "speed": speed}
    write_json(RESULTS / "text.json", facts)
    draw(plain, tagged, spacy)
    for name, runs in (("without tags", plain), ("gold UPOS seen", tagged)):
        if runs:
            cells = [interval([run[key] for run in runs]) for key in SHOWN]
            print(f"| {name}, {len(runs)} seeds | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
