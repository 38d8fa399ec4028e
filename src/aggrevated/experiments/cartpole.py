"""The paper's figure "Cartpole": H = 500, K = 50, one layer of 16 ReLU, α = 0."""

from aggrevated.experiments import PAPER, ControlTask
from aggrevated.simulators.cartpole import CartPole

TASK = ControlTask(
    name="cartpole",
    title="CartPole",
    simulator=CartPole,
    horizon=500,
    floor=lambda horizon: 0.0,
    expert="cartpole",
    seen_by_expert=CartPole,
    policy="mlp",
    hidden=(16,),
    trajectories=50,
    iterations=100,
    validation_episodes=200,
    settings={
        "natural": {"delta_kl": 1e-4, "damping": 10.0},
        "regular": {"learning_rate": 0.03},
        "reinforce/regular": {"learning_rate": 0.1},
        "follow-the-leader": {"learning_rate": 0.01},
    },
    figure=PAPER,
)
