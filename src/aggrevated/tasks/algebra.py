"""Section 6.2 of the paper, dependency parsing of handwritten algebra: Table 1 and "UAS versus iterations"."""

from aggrevated.parsing.learners.anchored import AnchoredSettings
from aggrevated.parsing.learners.kernel import KernelSettings, SupportVectorSettings
from aggrevated.parsing.learners.readers import ContextualSettings, PaperLstmSettings, ReactiveSettings
from aggrevated.parsing.learners.shipped import ShippedSettings, ShippedStart
from aggrevated.parsing.parser import GoldSettings
from aggrevated.parsing.world import Algebra
from aggrevated.tasks import PAPERS_STEPS, Row, Task, Tuned
from aggrevated.tasks.reader import CORRECTED
from aggrevated.updates import TO_THE_END

CURVES = (Row("aggrevated", "regular", "lstm", paper=0.924), Row("aggrevated", "natural", "lstm", paper=0.915))
BEYOND = (Row("aggrevated", "regular", "contextual"), Row("sl", "regular", "contextual"))
ONE_WRITER = tuple(
    Row("aggrevated", "regular", policy, settings={"single_writer": True}) for policy in ("lstm", "contextual")
)
TABLE1 = (
    *CURVES,
    Row("sl", "regular", "lstm", paper=0.813),
    Row("dagger", "regular", "lstm"),
    Row("dagger", "support-vectors", "kernel-svm", paper=0.832),
    Row("sl-rl", "regular", "lstm", paper=0.826),
    Row("sl-rl", "natural", "lstm", paper=0.824),
    Row("reinforce", "regular", "lstm", paper=0.256),
    Row("tnpg", "natural", "lstm", paper=0.237),
    Row("aggrevated", "regular", "reactive", paper=0.851),
    Row("aggrevated", "natural", "reactive", paper=0.800),
    Row("sl", "regular", "reactive", paper=0.325),
    Row("sl-rl", "regular", "reactive", paper=0.386),
    Row("sl-rl", "natural", "reactive", paper=0.345),
    Row("reinforce", "regular", "reactive", paper=0.227),
    Row("tnpg", "natural", "reactive", paper=0.241),
    *BEYOND,
    *ONE_WRITER,
)
REAL_INK = (
    Row("aggrevated", "regular", "contextual"),
    Row("aggrevated", "regular", "lstm", settings={"iterations": 1000}),
)
# Reinforcement learning hears of its costs at the end of a page only: more pages for each step.
COSTS_AT_THE_END = {"trajectories": 64, "iterations": 300}
WIDE = {"trajectories": 32, "iterations": 100}  # a reactive network has 1.5 million weights, and steps are slow
STEP_BY_STEP = {"annealed": TO_THE_END, "validate_every": 25, "checkpoint_every": 100}
TASK = Task(
    name="algebra",
    title="Handwritten algebra",
    world=Algebra(warps=8),
    policy="contextual",
    oracle="gold",
    brings=(
        *(ContextualSettings, PaperLstmSettings, ReactiveSettings, KernelSettings),
        *(SupportVectorSettings, ShippedSettings, ShippedStart, AnchoredSettings, GoldSettings),
    ),
    usual=(
        Tuned({"hidden": (128,), "dropout": 0.3, "validate_every": 5}),
        Tuned({"hidden": (1000,)}, policy="reactive"),
        Tuned({"geometry": True}, policy="contextual"),
    ),
    tuned=(
        *PAPERS_STEPS,
        Tuned(STEP_BY_STEP | {"trajectories": 16, "iterations": 2000}),
        Tuned({"start_steps": 300, "demonstrations": 2000, "start_rate": 2e-3}, start="supervised"),
        Tuned({"iterations": 800, "start_rate": 5e-4}, policy="reactive"),
        Tuned({"iterations": 600}, policy="contextual"),
        Tuned({"start": "supervised", "entropy": 0.4}, method="aggrevated", update="regular"),
        Tuned({"start": "supervised", "entropy": 0.4}, method="aggrevated", update="natural"),
        Tuned({"update": "regular"}, method="dagger"),
        Tuned({"update": "regular"}, method="sl"),
        Tuned({"mixing_scale": 60.0}, method="scheduled-sampling"),  # half by the expert at iteration 246
        Tuned({"update": "regular", "start_steps": 2000}, method="sl-rl"),  # as long as SL itself
        Tuned({"learning_rate": 2e-3}, update="regular"),
        Tuned({"delta_kl": 1e-3, "damping": 1.0, "trajectories": 64, "iterations": 400}, update="natural"),
        Tuned({"iterations": 200}, method="sl-rl", update="natural"),
        Tuned({"iterations": 200}, method="tnpg", update="natural"),
        Tuned(COSTS_AT_THE_END | {"learning_rate": 1e-3}, method="sl-rl", update="regular"),
        Tuned(COSTS_AT_THE_END | {"learning_rate": 1e-3}, method="reinforce", update="regular"),
        Tuned({"learning_rate": 5e-4}, method="aggrevated", update="regular", policy="reactive"),
        Tuned({"learning_rate": 5e-4}, method="sl", update="regular", policy="reactive"),
        Tuned(WIDE | {"learning_rate": 3e-4}, method="sl-rl", update="regular", policy="reactive"),
        Tuned(WIDE | {"learning_rate": 3e-4}, method="reinforce", update="regular", policy="reactive"),
        Tuned(WIDE, method="aggrevated", update="natural", policy="reactive"),
        Tuned(WIDE, method="sl-rl", update="natural", policy="reactive"),
        Tuned(WIDE, method="tnpg", update="natural", policy="reactive"),
        Tuned({"start_steps": 800}, method="sl-rl", policy="reactive"),
        # a kernel machine is fitted anew in each iteration: few of them, with more pages
        Tuned({"update": "support-vectors", "iterations": 8, "trajectories": 64}, policy="kernel-svm"),
        Tuned({"mixing": 1.0, "validate_every": 1, "checkpoint_every": 1}, policy="kernel-svm"),
        *CORRECTED,
    ),
    trials=3,
    packages=("scikit-learn", "scipy"),
)
