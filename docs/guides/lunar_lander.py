"""A policy of Stable-Baselines3 on LunarLander, made into a small network that is not below it.

python lunar_lander.py [--expert ppo.zip] [--seed N] [--out FOLDER] [--small]
"""

import argparse
import json
from pathlib import Path

from aggrevated import train


def train_ppo(path: Path, steps: int) -> None:
    """An expert, for those who have none: 600,000 steps take about a quarter of an hour."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    environments = make_vec_env("LunarLander-v3", n_envs=16, seed=0)
    model = PPO(
        "MlpPolicy", environments, n_steps=min(1024, steps // 16), batch_size=64, n_epochs=4, gamma=0.999,
        gae_lambda=0.98, ent_coef=0.01, seed=0, device="cpu",
    )  # fmt: skip
    model.learn(steps)
    model.save(path)


parser = argparse.ArgumentParser()
parser.add_argument("--expert", type=Path, default=Path("ppo.zip"), help="made first, if there is none")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--out", type=Path, help="the run's folder")
parser.add_argument("--small", action="store_true", help="to see that it runs, not what it learns")
given = parser.parse_args()

if not given.expert.exists():
    train_ppo(given.expert, 512 if given.small else 600_000)
settings = {"iterations": 30}  # of 100: it learns little after the tenth
if given.small:
    settings = {"iterations": 2, "trajectories": 2, "horizon": 100, "validation_episodes": 4, "test_episodes": 8}
run = train("LunarLander-v3", expert=given.expert, seed=given.seed, out=given.out, **settings)

result = run.result().to_dict()
print(json.dumps({
    "seed": given.seed,
    "expert": [round(result["expert_return"], 1), round(result["expert_standard_error"], 1)],
    "first": round(result["initial_return"], 1),
    "chosen": [round(result["test_return"], 1), round(result["test_standard_error"], 1)],
    "simulator_steps": result["simulator_steps"],
    "validation_steps": result["validation_steps"],
    "seconds": round(result["seconds"]),
}))  # fmt: skip
