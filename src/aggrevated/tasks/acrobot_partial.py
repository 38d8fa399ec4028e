"""The paper's figure "Acrobot (POMDP)": the expert sees the full state, the learner only link positions."""

from dataclasses import replace

from aggrevated.simulators.acrobot import Acrobot
from aggrevated.simulators.partial_observation import PartialObservationSimulator, select_columns
from aggrevated.tasks import (
    BASELINE_ROWS,
    DISCRETE_ACTION_ROWS,
    FROM_SCRATCH_ROWS,
    INTERPOLATION_ROWS,
    PAPER_PRESETS,
    RATE,
    ComparisonProtocol,
    FigureRow,
    Preset,
    acrobot,
    make_aggrevated_rows,
)


def make_partial_acrobot(horizon: int) -> PartialObservationSimulator:
    """Return Acrobot with observations of cosine and sine of both angles, without the velocities."""
    return select_columns(Acrobot(horizon), (0, 1, 2, 3), "acrobot-partial", {"angles": True, "velocities": False})


TASK = replace(
    acrobot.TASK,
    name="acrobot-partial",
    title="Acrobot from link positions",
    problem=replace(acrobot.PROBLEM, make=make_partial_acrobot, seen_by_expert=Acrobot),
    policy="lstm",
    defaults=(Preset({"hidden": (32,)}),),
    presets=(
        *PAPER_PRESETS,
        Preset({"trajectories": 50, "iterations": 150, "validation_episodes": 500}),
        Preset({"delta_kl": 1e-3, "damping": 1.0}, update="natural"),
        Preset({"learning_rate": 0.01}, update="regular"),
        Preset({"learning_rate": 0.005}, update="follow-the-leader"),
        Preset({"learning_rate": 0.03}, method="aggrevated", update="regular", policy="window"),
        Preset({"learning_rate": 0.03}, method="aggrevated", update="regular", policy="mlp"),
    ),
    figure_rows=(
        *make_aggrevated_rows(),
        *DISCRETE_ACTION_ROWS,
        *INTERPOLATION_ROWS,
        *BASELINE_ROWS,
        *FROM_SCRATCH_ROWS,
        *(FigureRow("aggrevated", "regular", policy, tuned_by=RATE) for policy in ("gru", "window", "mlp")),
    ),
    protocol=ComparisonProtocol(budget=250_000, tuning_seeds=(100,), tuning_budget=125_000),
    expert_recipe=None,  # Acrobot's expert is used
)
