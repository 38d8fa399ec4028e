"""Where it pays: experts from bad to best, checkpoints of one training, and learners' gains over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.statistics import estimate
from aggrevated.experts.loading import BUILTIN_WEIGHTS, ExpertCard
from aggrevated.reports import Table, format_markdown_table, write_page
from aggrevated.reports.comparison import TrialGroup
from aggrevated.storage import JsonDict, load_checksummed
from aggrevated.tasks import FigureRow, find_task
from aggrevated_experiments.figures import Request
from aggrevated_experiments.method_comparison.page import make_measure_panel, make_table, render_page
from aggrevated_experiments.method_comparison.spec import Case
from aggrevated_experiments.method_comparison.study import MethodStudy
from aggrevated_experiments.method_comparison.summary_text import join_with_and
from aggrevated_experiments.plots.method_comparison import EXPERT_LABEL, Panel, Series, plot_method_comparison

EXPERTS = 8
BUDGET = 30_000  # simulator steps of each trial


def format_expert_name(number: int) -> str:
    """Return the name of an expert; number 1 is the worst."""
    return f"strength/acrobot-{number}"


def load_expert_card(name: str) -> ExpertCard:
    """Return the description of how an expert was trained."""
    path = BUILTIN_WEIGHTS / f"{name}.safetensors"
    return ExpertCard.read(load_checksummed(path)[1], path)


class ExpertStrengthStudy(MethodStudy):
    """A study that compares returns by their difference, since near-zero returns make a ratio meaningless."""

    def get_measure_name(self, group: TrialGroup) -> str:
        return "gain"

    def compute_final_scores(self, group: TrialGroup) -> Array:
        return group.get_column("test_return") - group.get_column("expert_return")

    def write(self, groups: Sequence[TrialGroup], request: Request, folder: Path) -> Table:
        results = self.to_dict(groups, request)
        results |= {"answer": describe_gains(results), "experts": [summarize_expert(case) for case in self.cases]}
        x = np.array([case.x for case in self.cases])
        panels = [make_returns_panel(self, results, x), make_measure_panel(self, results, "final")]
        plot_method_comparison(panels, x, [f"{value:.0f}" for value in x], self.varied, self.title, folder / self.name)
        write_page(folder, self.name, results, [*render_page(self, results), *render_experts_section(results)])
        return make_table(self, results, folder)


def summarize_expert(case: Case) -> JsonDict:
    """Return the expert's name, returns and training cost."""
    name = str(case.settings["expert"])
    card = asdict(load_expert_card(name))
    fields = ("step", "mean_return", "standard_error", "episodes", "algorithm", "command", "chosen", "seed")
    return {"expert": name, **{field: card[field] for field in fields}}


def make_returns_panel(figure: MethodStudy, results: JsonDict, x: Array) -> Panel:
    """Return the panel of learners' returns over experts' returns, with the diagonal where both are equal."""
    series = []
    for number, label in enumerate(figure.methods):
        methods = [case["methods"][number] for case in results["cases"]]
        trials = np.array([[trial["test_return"] for trial in method["trials"]] for method in methods])
        value, low, high = np.array([estimate(row) for row in trials]).T
        series.append(Series(label, value, low, high, trials, dotted=not methods[0]["imitates"]))
    return Panel("return of the learner, fresh episodes", series, lines={EXPERT_LABEL: x})


def describe_gains(results: JsonDict) -> str:
    """Describe which experts each method exceeds and which it falls behind, by the interval of its gain."""
    sentences = []
    for number, method in enumerate(results["cases"][0]["methods"]):
        better = list[str]()
        worse = list[str]()
        for case in results["cases"]:
            gain = case["methods"][number]
            text = f"{case['x']:.1f} ({gain['iqm']:+.1f}, {gain['low']:+.1f} to {gain['high']:+.1f})"
            if round(gain["low"], 1) > 0:
                better.append(text)
            elif round(gain["high"], 1) < 0:
                worse.append(text)
        parts = [f"{side} {join_with_and(items)}" for side, items in (("above", better), ("below", worse)) if items]
        outcome = " and ".join(parts) or "where its expert does, as far as can be told"
        sentences.append(f"{method['label']} ends {outcome}")
    return (
        "Experts by their return, with what is gained over each and its 95 % interval, where that excludes 0: "
        + "; ".join(sentences)
        + "."
    )


def render_experts_section(results: JsonDict) -> list[str]:
    """Return the page's section on the experts, in Markdown."""
    experts = results["experts"]
    rows = [
        [expert["expert"], f"{expert['mean_return']:.2f} ± {expert['standard_error']:.2f}", f"{expert['step']:,}"]
        for expert in experts
    ]
    return [
        "## The experts",
        f"Checkpoints of one training, {experts[0]['algorithm']}, seed {experts[0]['seed']}: {experts[0]['chosen']}. "
        f"Their returns are of {experts[0]['episodes']:,} fresh episodes. Environment steps are what the training had "
        "taken by then; no learner's budget has them in it.",
        format_markdown_table("expert | return ± standard error | environment steps to make it", rows),
    ]


CARDS = {format_expert_name(number): load_expert_card(format_expert_name(number)) for number in range(1, EXPERTS + 1)}
STRENGTH = ExpertStrengthStudy(
    name="expert-strength",
    title="Experts from bad to best",
    question="What does a learner gain over its expert, and how good must the expert be for it to gain nothing more?",
    task=find_task("acrobot"),
    varied="return of the expert",
    cases=tuple(
        Case(card.mean_return, f"expert of {card.mean_return:.1f}", {"expert": name}) for name, card in CARDS.items()
    ),
    methods={
        "AggreVaTeD (exponentiated)": FigureRow("aggrevated", "exponentiated"),
        "AggreVaTeD (natural)": FigureRow("aggrevated", "natural"),
        "DAgger": FigureRow("dagger", "follow-the-leader"),
        "LOKI": FigureRow("loki", "exponentiated"),
        "SL-RL": FigureRow("sl-rl", "natural"),
    },
    settings={"budget": BUDGET, "trajectories": 10, "validate_every": 2, "validation_episodes": 100},
    notes=(
        f"Acrobot, H = 200: a return is minus the steps to the goal. Every trial has {BUDGET:,} simulator steps, of "
        "start and roll-ins; Q* is the expert's own network, right or wrong, and takes none. What lies on the diagonal "
        "is as good as its expert, what lies above it better.",
    ),
)
FIGURES = (STRENGTH,)
