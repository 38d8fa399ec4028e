"""A reader of handwritten algebra: it parses pages, names their symbols, and says how sure it is of both."""

from aggrevated.parsing.parser import GoldSettings
from aggrevated.tasks import Task, Tuned
from aggrevated.updates import TO_THE_END
from aggrevated_reader.learners.anchored_update import AnchoredSettings
from aggrevated_reader.learners.reading_policy import ReadingSettings
from aggrevated_reader.learners.shipped_reader import ShippedSettings, ShippedStart
from aggrevated_reader.reader_problem import Handwriting

# Corrected pages: the reader in the package goes on learning, in small steps that end as its rate does.
CORRECTED = (
    Tuned({"update": "anchored", "start": "shipped", "dropout": 0.1}, policy="shipped"),
    Tuned({"iterations": 200, "trajectories": 32, "learning_rate": 3e-4}, policy="shipped"),
    Tuned({"validate_every": 50, "checkpoint_every": 50}, policy="shipped"),
    Tuned(
        {"annealed": TO_THE_END, "target_kl": 0.0, "unit": "cost", "entropy": 0.1}, policy="shipped", update="anchored"
    ),
)
TASK = Task(
    name="reader",
    title="A reader of handwriting",
    world=Handwriting(),
    policy="reading",
    oracle="gold",
    brings=(ReadingSettings, ShippedSettings, ShippedStart, AnchoredSettings, GoldSettings),
    usual=(Tuned({"hidden": (128,), "dropout": 0.3, "validate_every": 100}),),
    tuned=(
        Tuned({"target_kl": 0.0, "unit": "cost"}, update="regular"),
        Tuned({"update": "regular", "start": "supervised", "entropy": 0.4}, method="aggrevated"),
        Tuned(
            {"annealed": TO_THE_END, "checkpoint_every": 200, "trajectories": 64, "iterations": 2000}, update="regular"
        ),
        Tuned({"start_steps": 1000, "demonstrations": 10_000, "start_rate": 2e-3}, start="supervised"),
        Tuned({"learning_rate": 2e-3}, update="regular"),
        *CORRECTED,
    ),
    trials=3,
)
