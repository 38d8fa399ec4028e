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
    space, parts = Box(-BOUNDS[:4], BOUNDS[:4]), {"angles": True, "velocities": False}
    return Partial(Acrobot(horizon), link_positions, space, "acrobot-partial", parts)


TASK = replace(
    acrobot.TASK,
    name="acrobot-partial",
    title="Acrobot from link positions",
    simulator=partial_acrobot,
    policy="lstm",
    hidden=(32,),
    iterations=150,
    settings={
        "natural": {"delta_kl": 1e-3, "damping": 1.0},
        "regular": {"learning_rate": 0.01},
        "aggrevated/regular/window": {"learning_rate": 0.03},
        "aggrevated/regular/mlp": {"learning_rate": 0.03},
        "follow-the-leader": {"learning_rate": 0.005},
    },
    figure=(
        *PAPER,
        Row("aggrevated", "regular", "gru"),
        Row("aggrevated", "regular", "window"),
        Row("aggrevated", "regular", "mlp"),
    ),
)
