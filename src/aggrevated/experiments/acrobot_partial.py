"""The paper's figure "Acrobot (POMDP)": the expert sees the full state, the learner only where the links are."""

from dataclasses import replace

from gymnasium.spaces import Box

from aggrevated.arrays import Array
from aggrevated.experiments import PAPER, Row, acrobot
from aggrevated.simulators.acrobot import BOUNDS, Acrobot
from aggrevated.simulators.partial import Partial


def link_positions(state: Array) -> Array:
    """[n, 4]: cosine and sine of both angles, without the velocities."""
    return Acrobot().observe(state)[:, :4]


def partial_acrobot(horizon: int) -> Partial:
    """Acrobot from link positions."""
    return Partial(Acrobot(horizon), link_positions, Box(-BOUNDS[:4], BOUNDS[:4]), "acrobot-partial")


TASK = replace(
    acrobot.TASK,
    name="acrobot-partial",
    title="Acrobot from link positions",
    simulator=partial_acrobot,
    policy="lstm",
    hidden=(32,),
    iterations=150,
    settings={
        "natural": {"delta_kl": 3e-4, "damping": 10.0},
        "regular": {"learning_rate": 0.005},
        "follow-the-leader": {"learning_rate": 0.005},
    },
    figure=(
        *PAPER,
        Row("aggrevated", "regular", "gru"),
        Row("aggrevated", "regular", "window"),
        Row("aggrevated", "regular", "mlp"),
    ),
)
