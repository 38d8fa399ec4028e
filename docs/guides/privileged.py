"""An expert that sees everything, and a learner that does not: what memory makes up for, and what it does not.

python privileged.py [--seed N] [--out FOLDER] [--small]
"""

import argparse
import json
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated import train

SEEN = (0, 2)  # of CartPole's position, velocity, angle and angular velocity: no velocities


def balance(observations):
    """A controller by hand, of many observations at once: lean against the fall, and drift back to the middle."""
    position, velocity, angle, turning = observations.T
    return (angle + 0.3 * turning + 0.02 * position + 0.05 * velocity > 0).astype(int)


class TMaze(gymnasium.Env):
    """A side is shown at the first step only; six steps on, the turn to that side earns 1 and the other costs 1."""

    # ahead, left, right
    observation_space = Box(-1.0, 1.0, (3,), np.float32)
    action_space = Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.side = int(self.np_random.integers(2)) * 2 - 1
        self.x = 0
        return self.seen(), {}

    def seen(self):
        """The side as far as it is shown, whether this is the turn, and the side: the last is the expert's."""
        return np.array([self.side * (self.x == 0), self.x == 6, self.side], np.float32)

    def step(self, action):
        turned = self.x == 6 and action > 0
        reward = (1.0 if (action == 2) == (self.side > 0) else -1.0) if turned else -0.1
        self.x += int(self.x < 6 and action == 0)
        return self.seen(), reward, turned, False, {}

    def get_state(self):
        return np.array([self.side, self.x])

    def set_state(self, state):
        self.side, self.x = map(int, state)


def guide(observation):
    """Ahead, and at the turn to the side that it alone still sees."""
    _, at_the_turn, side = observation
    return (2 if side > 0 else 1) if at_the_turn else 0


def summarize(run):
    """The expert's, the first and the chosen policy's return, with standard errors, and what it took."""
    result = run.result().to_dict()
    expert, test = (
        [round(result[f"{who}_return"], 2), round(result[f"{who}_standard_error"], 2)] for who in ("expert", "test")
    )
    first = round(result["initial_return"], 2)
    seconds = round(result["seconds"])
    return {
        "expert": expert,
        "first": first,
        "chosen": test,
        "simulator_steps": result["simulator_steps"],
        "seconds": seconds,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs"), help="where the runs' folders go")
    parser.add_argument("--small", action="store_true", help="to see that it runs, not what it learns")
    given = parser.parse_args()

    few = {"trajectories": 2, "validation_episodes": 4, "test_episodes": 8, "iterations": 1}

    def learned(name, env, **settings):
        settings |= few if given.small else {}
        return summarize(train(env, seed=given.seed, out=given.out / f"privileged-{name}-{given.seed}", **settings))

    cart = {"env": "CartPole-v1", "expert": balance, "observation_columns": SEEN, "iterations": 30}
    cart |= {"horizon": 30} if given.small else {}
    maze = {"env": TMaze, "expert": guide, "observation_columns": (0, 1), "horizon": 20, "iterations": 40}
    said = {"seed": given.seed} | learned("cart", **cart)
    said["memoryless"] = learned("cart-memoryless", policy="mlp", **cart)["chosen"]
    mazes = {"lstm": {}, "memoryless": {"policy": "mlp"}, "dagger": {"policy": "mlp", "method": "dagger"}}
    mazes["all costs"] = {"policy": "mlp", "query_steps": 0}  # the cost of every action at every step, no advice
    said["maze"] = {name: learned(f"maze-{name}", **maze, **more)["chosen"] for name, more in mazes.items()}
    print(json.dumps(said))
