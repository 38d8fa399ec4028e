"""Dependency parsing of text: sentences of a treebank in CoNLL-U, parsed, labelled, tagged and doubted."""

from aggrevated.parsing.parser import GoldSettings
from aggrevated.tasks import Task, Tuned
from aggrevated.text.policy import SentenceSettings
from aggrevated.text.world import Text
from aggrevated.updates import TO_THE_END

ALONG = {"labelling": 1.0, "tagging": 0.5, "heading": 1.0}  # beside Σ_a π(a) A*(a)
TASK = Task(
    name="text",
    title="Dependency parsing of text",
    world=Text(),
    policy="sentence",
    oracle="gold",
    brings=(SentenceSettings, GoldSettings),
    usual=(
        Tuned({"hidden": (128,), "dropout": 0.33, "trajectories": 64, "iterations": 1500, "validate_every": 100}),
        # A treebank has more sentences than can be kept: the newest are learned from, a few times, and then let go.
        Tuned(
            {"eta": 3.0, "decay": 0.3, "cooling": 0, "fit_rate": 3e-3, "fit_steps": 12, "annealed": TO_THE_END},
            update="exponentiated",
        ),
    ),
    tuned=(
        Tuned({"target_kl": 0.0, "unit": "cost"}, update="regular"),
        Tuned({"update": "regular"}, method="dagger"),
        Tuned({"update": "regular"}, method="sl"),
        Tuned({"entropy": 0.1}, method="aggrevated", update="regular"),
        Tuned({"annealed": TO_THE_END, "trajectories": 16, "learning_rate": 3e-3} | ALONG, update="regular"),
        Tuned(
            {"solver": "closed-form", "damping": 1.0, "delta_kl": 1e-3, "target_kl": 0.0, "unit": "cost"},
            update="natural",
        ),
        Tuned({"annealed": TO_THE_END, "trajectories": 16, "entropy": 0.1} | ALONG, update="natural"),
    ),
    trials=3,
)
