"""The paper's figure "Acrobot": H = 200, K = 50, one layer of 16 ReLU, α = 0."""

from aggrevated.experiments import PAPER, ControlTask
from aggrevated.simulators.acrobot import Acrobot

TASK = ControlTask(
    name="acrobot",
    title="Acrobot",
    simulator=Acrobot,
    horizon=200,
    floor=lambda horizon: -float(horizon),  # the tip never reached the line
    expert="acrobot",
    seen_by_expert=Acrobot,
    policy="mlp",
    hidden=(16,),
    trajectories=50,
    iterations=100,
    validation_episodes=500,  # returns vary more than on CartPole
    settings={
        "natural": {"delta_kl": 3e-4, "damping": 10.0},
        "regular": {"learning_rate": 0.05},
        "follow-the-leader": {"learning_rate": 0.01},
    },
    figure=PAPER,
)
