"""Task of a reader of handwritten algebra: parse pages, name their symbols, and estimate both errors."""

from aggrevated.parsing.parser import GoldSettings
from aggrevated.tasks import Preset, Task
from aggrevated.updates import TO_THE_END
from aggrevated_reader.learners.anchored_update import AnchoredSettings
from aggrevated_reader.learners.reading_policy import ReadingSettings
from aggrevated_reader.learners.shipped_reader import BuiltinReaderSettings, BuiltinReaderStart
from aggrevated_reader.reader_problem import ReaderProblemSettings

# With corrected pages the builtin reader learns further, with a small learning rate that anneals to 0.
CORRECTED = (
    Preset({"update": "anchored", "start": "builtin", "dropout": 0.1}, policy="builtin"),
    Preset({"iterations": 200, "trajectories": 32, "learning_rate": 3e-4}, policy="builtin"),
    Preset({"validate_every": 50, "checkpoint_every": 50}, policy="builtin"),
    Preset(
        {"anneal_iterations": TO_THE_END, "target_kl": 0.0, "cost_scale": "raw", "entropy": 0.1},
        policy="builtin",
        update="anchored",
    ),
)
TASK = Task(
    name="reader",
    title="A reader of handwriting",
    problem=ReaderProblemSettings(),
    policy="reading",
    oracle="gold",
    components=(ReadingSettings, BuiltinReaderSettings, BuiltinReaderStart, AnchoredSettings, GoldSettings),
    defaults=(Preset({"hidden": (128,), "dropout": 0.3, "validate_every": 100}),),
    presets=(
        Preset({"target_kl": 0.0, "cost_scale": "raw"}, update="regular"),
        Preset({"update": "regular", "start": "supervised", "entropy": 0.4}, method="aggrevated"),
        Preset(
            {"anneal_iterations": TO_THE_END, "checkpoint_every": 200, "trajectories": 64, "iterations": 2000},
            update="regular",
        ),
        Preset({"start_steps": 1000, "demonstrations": 10_000, "start_learning_rate": 2e-3}, start="supervised"),
        Preset({"learning_rate": 2e-3}, update="regular"),
        *CORRECTED,
    ),
    trials=3,
)
