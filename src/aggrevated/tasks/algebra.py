"""Section 6.2 of the paper, parsing of handwritten algebra: Table 1 and "UAS versus iterations"."""

from collections.abc import Mapping
from typing import Any

from aggrevated.parsing.learners.kernel import KernelSettings, SupportVectorSettings
from aggrevated.parsing.learners.parser_policies import ContextualSettings, PaperLstmSettings, ReactiveSettings
from aggrevated.parsing.parser import GoldSettings
from aggrevated.parsing.problem import AlgebraProblemSettings
from aggrevated.tasks import PAPER_PRESETS, FigureRow, Preset, Task
from aggrevated.updates import TO_THE_END

# Table 1: every network learns from 6,400 pages. A supervised start is equal in all rows and takes half of
# them.
PAGES = 6400
STARTED = 3200
MINIBATCH = 16  # pages, also in the supervised start
CHOSEN_EVERY = 320  # pages between validations


def make_comparable_row(
    method: str, update: str, policy: str, paper: float | None = None, **settings: Any
) -> FigureRow:
    """Return a row with the number of pages, the start and the validation interval that all rows share."""
    k = 64 if update == "natural" else MINIBATCH  # K bounds the rank of its Fisher matrix
    scratch = settings.pop("start", "supervised") == "random"
    label_suffix = settings.pop("label_suffix", "")
    loop = {"trajectories": k, "validate_every": CHOSEN_EVERY // k}
    loop["iterations"] = (PAGES if scratch else PAGES - STARTED) // k
    rate = 5e-4 if policy == "reactive" else 2e-3
    start = {"start_steps": STARTED // MINIBATCH, "demonstrations": STARTED, "start_learning_rate": rate}
    row_settings = loop | ({} if scratch else start) | settings
    return FigureRow(method, update, policy, "random" if scratch else "supervised", row_settings, paper, label_suffix)


BONUS = {"entropy": 0.4}  # for gradients of costs, which vanish where a policy is confident and wrong
CRITIC = BONUS | {"oracle": "critic", "critic_steps": 20}  # reinforcement learning with bonus and critic
SCRATCH: dict[str, Any] = {"start": "random"}
# the exponentiated update with each page in one iteration only, as in the other rows; ρ replaces the bonus
NEWEST_PAGES = {"eta": 1.0, "log_prob_decay": 0.3, "decay_after": 0, "fit_steps": 3, "anneal_iterations": TO_THE_END}
EVEN_LSTM = (
    make_comparable_row("aggrevated", "regular", "lstm", 0.924, **BONUS, learning_rate=2e-3),
    make_comparable_row("aggrevated", "natural", "lstm", 0.915, **BONUS),
    make_comparable_row("aggrevated", "exponentiated", "lstm", **NEWEST_PAGES, fit_learning_rate=2e-3),
    make_comparable_row("dagger", "regular", "lstm", learning_rate=2e-3),
    make_comparable_row("sl", "regular", "lstm", 0.813, learning_rate=2e-3),
    make_comparable_row("sl-rl", "regular", "lstm", 0.826, **CRITIC, learning_rate=3e-4),
    make_comparable_row("sl-rl", "natural", "lstm", 0.824, **CRITIC),
    make_comparable_row("aggrevated", "regular", "lstm", **SCRATCH, **BONUS, learning_rate=2e-3),
    make_comparable_row("reinforce", "regular", "lstm", 0.256, **SCRATCH, **CRITIC, learning_rate=1e-3),
    make_comparable_row("tnpg", "natural", "lstm", 0.237, **SCRATCH, **CRITIC),
    make_comparable_row(
        "aggrevated",
        "exponentiated",
        "lstm",
        **NEWEST_PAGES | {"fit_steps": 1},
        fit_learning_rate=2e-3,
        label_suffix="one step",
    ),
)
EVEN_REACTIVE = (
    make_comparable_row("aggrevated", "regular", "reactive", 0.851, **BONUS, learning_rate=5e-4),
    make_comparable_row("aggrevated", "natural", "reactive", 0.800, **BONUS),
    make_comparable_row("aggrevated", "exponentiated", "reactive", **NEWEST_PAGES, fit_learning_rate=5e-4),
    make_comparable_row("dagger", "regular", "reactive", learning_rate=5e-4),
    make_comparable_row("sl", "regular", "reactive", 0.325, learning_rate=5e-4),
    make_comparable_row("sl-rl", "regular", "reactive", 0.386, **CRITIC, learning_rate=3e-4),
    make_comparable_row("sl-rl", "natural", "reactive", 0.345, **CRITIC),
    make_comparable_row("reinforce", "regular", "reactive", 0.227, **SCRATCH, **CRITIC, learning_rate=3e-4),
    make_comparable_row("tnpg", "natural", "reactive", 0.241, **SCRATCH, **CRITIC),
)
EVEN_CONTEXTUAL = (
    make_comparable_row("aggrevated", "regular", "contextual", **BONUS, learning_rate=2e-3),
    make_comparable_row("aggrevated", "exponentiated", "contextual", **NEWEST_PAGES, fit_learning_rate=2e-3),
    make_comparable_row("dagger", "regular", "contextual", learning_rate=2e-3),
    make_comparable_row("sl", "regular", "contextual", learning_rate=2e-3),
)
CURVES = EVEN_LSTM[:5]
# A kernel machine is refit in each iteration, in time quadratic in the number of pages: it gets 512 pages.
TABLE1 = (
    *EVEN_LSTM,
    FigureRow("dagger", "support-vectors", "kernel-svm", paper_value=0.832),
    *EVEN_REACTIVE,
    *EVEN_CONTEXTUAL,
)

# The settings that tuning tries, in runs half as long: each row as above, and with these changes.
REGULAR, NATURAL, EXPONENTIATED, DAGGER, SL, SL_RL, SL_TNPG = EVEN_LSTM[:7]
SLOWER = {"learning_rate": 1e-3}
TUNING: tuple[tuple[FigureRow, tuple[Mapping[str, Any], ...]], ...] = (
    (REGULAR, ({}, SLOWER)),
    (NATURAL, ({}, {"delta_kl": 3e-3})),
    (
        EXPONENTIATED,
        (
            {},
            {"log_prob_decay": 0.1},
            {"log_prob_decay": 0.1, "fit_learning_rate": 1e-3},
            {"eta": 0.0, "log_prob_decay": 0.0},
        ),
    ),
    (DAGGER, ({}, SLOWER)),
    (SL, ({}, SLOWER)),
    (
        SL_RL,
        (
            {},
            {"learning_rate": 1e-3},
            {"learning_rate": 1e-3, "trajectories": 64, "iterations": 50, "validate_every": 5},
        ),
    ),
    (SL_TNPG, ({}, {"delta_kl": 3e-4})),
)
REAL_INK = (
    FigureRow("aggrevated", "regular", "contextual"),
    FigureRow("aggrevated", "regular", "lstm", settings={"iterations": 1000}),
    FigureRow("dagger", "regular", "contextual", start="supervised"),
)
# Reinforcement learning gets costs only at the end of a page and needs more pages per update.
COSTS_AT_THE_END = {"trajectories": 64, "iterations": 300}
WIDE = {"trajectories": 32, "iterations": 100}  # for reactive networks of 1.5 million weights
STEP_BY_STEP = {"anneal_iterations": TO_THE_END, "validate_every": 25, "checkpoint_every": 100}
TASK = Task(
    name="algebra",
    title="Handwritten algebra",
    problem=AlgebraProblemSettings(augmented_copies=8),
    policy="contextual",
    oracle="gold",
    components=(
        *(ContextualSettings, PaperLstmSettings, ReactiveSettings, KernelSettings),
        *(SupportVectorSettings, GoldSettings),
    ),
    defaults=(
        Preset({"hidden": (128,), "dropout": 0.3, "validate_every": 5}),
        Preset({"hidden": (1000,)}, policy="reactive"),
        Preset({"use_geometry": True}, policy="contextual"),
    ),
    presets=(
        *PAPER_PRESETS,
        Preset(STEP_BY_STEP | {"trajectories": 16, "iterations": 2000}),
        Preset({"start_steps": 300, "demonstrations": 2000, "start_learning_rate": 2e-3}, start="supervised"),
        Preset({"iterations": 800, "start_learning_rate": 5e-4}, policy="reactive"),
        Preset({"iterations": 600}, policy="contextual"),
        Preset({"start": "supervised", "entropy": 0.4}, method="aggrevated", update="regular"),
        Preset({"start": "supervised", "entropy": 0.4}, method="aggrevated", update="natural"),
        Preset({"update": "regular"}, method="dagger"),
        Preset({"update": "regular"}, method="sl"),
        Preset(
            {"alpha_scale": 60.0}, method="scheduled-sampling"
        ),  # the expert takes half of the actions at iteration 246
        Preset({"update": "regular", "start_steps": 2000}, method="sl-rl"),  # as long as SL
        Preset({"learning_rate": 2e-3}, update="regular"),
        Preset({"delta_kl": 1e-3, "damping": 1.0, "trajectories": 64, "iterations": 400}, update="natural"),
        Preset({"iterations": 200}, method="sl-rl", update="natural"),
        Preset({"iterations": 200}, method="tnpg", update="natural"),
        Preset(COSTS_AT_THE_END | {"learning_rate": 1e-3}, method="sl-rl", update="regular"),
        Preset(COSTS_AT_THE_END | {"learning_rate": 1e-3}, method="reinforce", update="regular"),
        Preset({"learning_rate": 5e-4}, method="aggrevated", update="regular", policy="reactive"),
        Preset({"learning_rate": 5e-4}, method="sl", update="regular", policy="reactive"),
        Preset(WIDE | {"learning_rate": 3e-4}, method="sl-rl", update="regular", policy="reactive"),
        Preset(WIDE | {"learning_rate": 3e-4}, method="reinforce", update="regular", policy="reactive"),
        Preset(WIDE, method="aggrevated", update="natural", policy="reactive"),
        Preset(WIDE, method="sl-rl", update="natural", policy="reactive"),
        Preset(WIDE, method="tnpg", update="natural", policy="reactive"),
        Preset({"start_steps": 800}, method="sl-rl", policy="reactive"),
        # a kernel machine is refit in each iteration: few iterations with many pages
        Preset({"update": "support-vectors", "iterations": 8, "trajectories": 64}, policy="kernel-svm"),
        Preset({"alpha_start": 1.0, "validate_every": 1, "checkpoint_every": 1}, policy="kernel-svm"),
    ),
    trials=3,
    packages=("scikit-learn", "scipy"),
)
