"""The paper's figure "Walker": H = 100, K = 50, one layer of 64, supervised start, 5 trials."""

from functools import partial

from aggrevated.experiments import CONTINUOUS, Task
from aggrevated.simulators.mujoco import MuJoCo

TASK = Task(
    name="walker",
    title="Walker",
    simulator=partial(MuJoCo, "walker"),
    horizon=100,
    floor=lambda horizon: 0.0,
    expert="walker",
    seen_by_expert=partial(MuJoCo, "walker"),
    policy="mlp",
    hidden=(64,),
    trajectories=50,
    iterations=20,
    validation_episodes=100,
    settings={
        "supervised": {"start_steps": 4000, "log_deviation": -1.5},
        "aggrevated": {"start": "supervised", "queried_steps": 10},
        "random/reinforce": {"learning_rate": 0.01},
        "random/tnpg": {"delta_kl": 0.1},
        "natural": {"delta_kl": 3e-3, "damping": 10.0},
        "regular": {"learning_rate": 3e-4},
    },
    figure=CONTINUOUS,
    oracle="monte-carlo",
    trials=5,
)
