"""The paper's figure "Acrobot (POMDP)": the expert sees the full state, the learner only where the links are."""

from dataclasses import replace

from aggrevated.simulators.acrobot import Acrobot
from aggrevated.simulators.partial_observation import Partial, columns_of
from aggrevated.tasks import DIAL, FINITE, PAPERS_STEPS, RATE, RIVALS, SCRATCH, Protocol, Row, Tuned, acrobot, imitation


def partial_acrobot(horizon: int) -> Partial:
    """Acrobot from link positions: cosine and sine of both angles, without the velocities."""
    return columns_of(Acrobot(horizon), (0, 1, 2, 3), "acrobot-partial", {"angles": True, "velocities": False})


TASK = replace(
    acrobot.TASK,
    name="acrobot-partial",
    title="Acrobot from link positions",
    world=replace(acrobot.WORLD, make=partial_acrobot, seen_by_expert=Acrobot),
    policy="lstm",
    usual=(Tuned({"hidden": (32,)}),),
    tuned=(
        *PAPERS_STEPS,
        Tuned({"trajectories": 50, "iterations": 150, "validation_episodes": 500}),
        Tuned({"delta_kl": 1e-3, "damping": 1.0}, update="natural"),
        Tuned({"learning_rate": 0.01}, update="regular"),
        Tuned({"learning_rate": 0.005}, update="follow-the-leader"),
        Tuned({"learning_rate": 0.03}, method="aggrevated", update="regular", policy="window"),
        Tuned({"learning_rate": 0.03}, method="aggrevated", update="regular", policy="mlp"),
    ),
    figure=(
        *imitation(),
        *FINITE,
        *DIAL,
        *RIVALS,
        *SCRATCH,
        *(Row("aggrevated", "regular", policy, tuned_by=RATE) for policy in ("gru", "window", "mlp")),
    ),
    protocol=Protocol(budget=250_000, tuning_seeds=(100,), tuning_budget=125_000),
    recipe=None,  # its expert is Acrobot's
)
