"""Some recorded episodes of a lunar lander, and nobody to ask: a clone of them, and what is learned from that clone.

python demonstrations.py [--episodes 20] [--demonstrations demos.npz] [--seed N] [--out FOLDER] [--small]
"""

import argparse
import json
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.envs.box2d.lunar_lander import heuristic

from aggrevated import train


def record(episodes: int, seed: int) -> dict[str, np.ndarray]:
    """Episodes of somebody who lands well: here Gymnasium's own controller, with yours a log file or a joystick."""
    environment = gymnasium.make("LunarLander-v3")
    rows = []
    for episode in range(episodes):
        observation, _ = environment.reset(seed=seed * 10_000 + episode)
        end = False
        while not end:
            action = heuristic(environment.unwrapped, observation)
            shown = observation
            observation, reward, landed, late, _ = environment.step(action)
            end = landed or late
            rows.append((shown, action, reward, end))
    names = "observations", "actions", "rewards", "ends"
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


parser = argparse.ArgumentParser()
parser.add_argument("--demonstrations", type=Path, default=Path("demos.npz"), help="recorded first, if there are none")
parser.add_argument("--episodes", type=int, default=20, help="how many are recorded")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--out", type=Path, help="the run's folder")
parser.add_argument("--small", action="store_true", help="to see that it runs, not what it learns")
given = parser.parse_args()

if not given.demonstrations.exists():
    np.savez(given.demonstrations, **record(3 if given.small else given.episodes, given.seed))
settings = {"iterations": 30}
if given.small:
    settings = {"iterations": 2, "trajectories": 2, "horizon": 100, "validation_episodes": 4, "test_episodes": 8}
run = train("LunarLander-v3", expert=given.demonstrations, seed=given.seed, out=given.out, **settings)

fresh = record(8 if given.small else 1000, 1000 + given.seed)  # the recorder's own, to compare with
recorded = np.add.reduceat(fresh["rewards"], np.flatnonzero(np.r_[True, fresh["ends"][:-1]]))
result = run.result().to_dict()
print(json.dumps({
    "seed": given.seed,
    "recorder": [round(recorded.mean(), 1), round(recorded.std() / len(recorded) ** 0.5, 1)],
    "clone": [round(result["expert_return"], 1), round(result["expert_standard_error"], 1)],
    "first": round(result["initial_return"], 1),
    "chosen": [round(result["test_return"], 1), round(result["test_standard_error"], 1)],
    "simulator_steps": result["simulator_steps"],
    "validation_steps": result["validation_steps"],
    "seconds": round(result["seconds"]),
}))  # fmt: skip
