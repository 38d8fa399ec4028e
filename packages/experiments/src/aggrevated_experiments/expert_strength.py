"""Where it pays: experts from bad to best, eight checkpoints of one training, and what learners gain over each."""

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
    """The name of an expert, the worst being the first."""
    return f"strength/acrobot-{number}"


def load_expert_card(name: str) -> ExpertCard:
    """How it was made."""
    path = BUILTIN_WEIGHTS / f"{name}.safetensors"
    return ExpertCard.read(load_checksummed(path)[1], path)


class ExpertStrengthStudy(MethodStudy):
    """Returns are compared as they are: beside an expert that hardly ever reaches the goal, a ratio says nothing."""

    def get_measure_name(self, group: TrialGroup) -> str:
        return "gain"

    def compute_final_scores(self, group: TrialGroup) -> Array:
        return group.get_column("test_return") - group.get_column("expert_return")

    def write(self, groups: Sequence[TrialGroup], request: Request, folder: Path) -> Table:
        facts = self.to_dict(groups, request)
        facts |= {"answer": describe_gains(facts), "experts": [summarize_expert(case) for case in self.cases]}
        x = np.array([case.x for case in self.cases])
        panels = [make_returns_panel(self, facts, x), make_measure_panel(self, facts, "final")]
        plot_method_comparison(panels, x, [f"{one:.0f}" for one in x], self.varied, self.title, folder / self.name)
        write_page(folder, self.name, facts, [*render_page(self, facts), *render_experts_section(facts)])
        return make_table(self, facts, folder)


def summarize_expert(case: Case) -> JsonDict:
    """What is known of an expert, and what it took to make it."""
    name = str(case.settings["expert"])
    card = asdict(load_expert_card(name))
    said = ("step", "mean_return", "standard_error", "episodes", "algorithm", "command", "chosen", "seed")
    return {"expert": name, **{one: card[one] for one in said}}


def make_returns_panel(figure: MethodStudy, facts: JsonDict, x: Array) -> Panel:
    """What learners earn over what their experts do, and the diagonal, on which they are equals."""
    found = []
    for number, label in enumerate(figure.methods):
        methods = [case["methods"][number] for case in facts["cases"]]
        trials = np.array([[trial["test_return"] for trial in method["trials"]] for method in methods])
        value, low, high = np.array([estimate(row) for row in trials]).T
        found.append(Series(label, value, low, high, trials, dotted=not methods[0]["imitates"]))
    return Panel("return of the learner, fresh episodes", found, lines={EXPERT_LABEL: x})


def describe_gains(facts: JsonDict) -> str:
    """Which experts each method is better than, and which it falls behind, by the interval of what it gains."""
    told = []
    for number, method in enumerate(facts["cases"][0]["methods"]):
        better = list[str]()
        worse = list[str]()
        for case in facts["cases"]:
            found = case["methods"][number]
            words = f"{case['x']:.1f} ({found['iqm']:+.1f}, {found['low']:+.1f} to {found['high']:+.1f})"
            if round(found["low"], 1) > 0:
                better.append(words)
            elif round(found["high"], 1) < 0:
                worse.append(words)
        parts = [f"{said} {join_with_and(words)}" for said, words in (("above", better), ("below", worse)) if words]
        told.append(f"{method['label']} ends {' and '.join(parts) or 'where its expert does, as far as can be told'}")
    return (
        "Experts by their return, with what is gained over each and its 95 % interval, where that excludes 0: "
        + "; ".join(told)
        + "."
    )


def render_experts_section(facts: JsonDict) -> list[str]:
    """Who they are, in Markdown."""
    experts = facts["experts"]
    rows = [
        [one["expert"], f"{one['mean_return']:.2f} ± {one['standard_error']:.2f}", f"{one['step']:,}"]
        for one in experts
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
