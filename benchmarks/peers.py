"""Learning curves of peers: the return of a peer's mode on test episodes, by environment steps.

Finished seeds are not run again: `python benchmarks/peers.py --peer ppo --task cartpole --seeds 10`.
"""

import interleave

# isort: split
import argparse
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from aggrevated import __version__
from aggrevated.core.arrays import Array
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.problems.expert_training import make_sb3_model
from aggrevated.simulators import Simulator
from aggrevated.storage import JsonDict, read_json, write_json
from aggrevated.tasks import find_task
from aggrevated.validation import evaluate_mean_return

FOLDER = Path(__file__).parent.parent / "docs/results/peers"
TEST_SEED = 1_000_000  # the episodes of `aggrevated evaluate`, which are in no training
PACKAGES = (*interleave.PACKAGES, "imitation", "box2d")

Choose = Callable[[Array], Array]  # from observations [n, O] to the most likely actions [n] or [n, A]
Report = Callable[[int, Choose], None]  # a peer calls it with its environment steps so far and its mode


@dataclass(frozen=True)
class Plan:
    """A peer's training on a task."""

    train: Callable[[str, int, "Plan", Report], None]  # with a task, a seed and this plan
    settings: Mapping[str, Any]
    budget: int  # environment steps of the first point that ends the training
    every: int = 1  # environment steps between points; DAgger has one after each of its rounds
    episodes: int = 100
    lots: int = 1  # batches of episodes: behind our adapter a state holds all previous actions


@dataclass(frozen=True)
class Mode:
    """The mode of a peer's policy, with the interface of an expert."""

    simulator: Simulator
    choose: Choose
    name = "mode"

    def act(self, states: Array, t: int) -> Array:
        return self.choose(self.simulator.observe(states))


class Points(BaseCallback):
    """Callback that reports after each update, at the start of a rollout, and ends the training in time."""

    def __init__(self, plan: Plan, report: Report) -> None:
        super().__init__()
        self.plan = plan
        self.report = report
        self.latest_return = 0

    def _on_rollout_start(self) -> None:
        if self.num_timesteps % self.plan.every == 0:
            self.latest_return = self.num_timesteps
            self.report(self.latest_return, mode_of(self.model))

    def _on_step(self) -> bool:
        return self.latest_return < self.plan.budget


def mode_of(model: BaseAlgorithm) -> Choose:
    """Return the mode of a Stable-Baselines3 model, including its observation normalizer if it has one."""
    normaliser = model.get_vec_normalize_env()

    def choose(observations: Array) -> Array:
        seen = normaliser.normalize_obs(observations) if normaliser else observations
        return model.predict(seen, deterministic=True)[0]

    return choose


def ppo(task: str, seed: int, plan: Plan, report: Report) -> None:
    """Train PPO of Stable-Baselines3 as RL Baselines3 Zoo does."""
    settings = {name: scheduled(value) for name, value in plan.settings.items()}
    n_envs, steps, normalize = (settings.pop(name) for name in ("n_envs", "n_timesteps", "normalize"))
    limit = {"max_episode_steps": simulator_of(task).horizon}
    environment = make_vec_env(environment_of(task), n_envs, seed=seed, env_kwargs=limit)
    if normalize:
        environment = VecNormalize(environment, gamma=settings["gamma"])
    model = PPO("MlpPolicy", environment, seed=seed, device="cpu", **settings)
    model.learn(steps, callback=Points(plan, report))


def scheduled(value: Any) -> Any:
    """Return a schedule from x to 0 over the training for the zoo's `lin_x`, and other values unchanged."""
    if not isinstance(value, str):
        return value
    first = float(value.removeprefix("lin_"))
    return lambda left: left * first


def trpo(task: str, seed: int, plan: Plan, report: Report) -> None:
    """Train TRPO of sb3-contrib with the settings of our expert."""
    recipe = find_task(task).expert_recipe
    make_sb3_model(recipe, simulator_of(task), seed).learn(recipe.steps, callback=Points(plan, report))


def dagger(task: str, seed: int, plan: Plan, report: Report) -> None:
    """Train DAgger of `imitation`, which is installed in a separate environment."""
    train = import_module("imitation_dagger").train
    train(simulator_of(task), environment_of(task), seed, plan.settings, plan.budget, report)


def simulator_of(task: str) -> Simulator:
    """Return our simulator of a task, or Gymnasium's environment behind our adapter."""
    if task != "lunar-lander":
        return find_task(task).problem.simulator
    adapter = import_module("aggrevated.simulators.gymnasium")  # needs a newer Gymnasium than `imitation`
    simulator: Simulator = adapter.GymnasiumSimulator(LUNAR_LANDER, 1000)
    return simulator


def environment_of(task: str) -> str:
    """Return Gymnasium's name of the task."""
    return LUNAR_LANDER if task == "lunar-lander" else find_task(task).expert_recipe.environment


def curve(task: str, seed: int, plan: Plan) -> JsonDict:
    """Return the points of one seed, and print them as they come."""
    simulator = simulator_of(task)
    lots = np.array_split(derive_seeds(TEST_SEED, SeedPurpose.TEST, 0, plan.episodes), plan.lots)
    steps: list[int] = []
    returns: list[float] = []

    def report(taken: int, choose: Choose) -> None:
        steps.append(taken)
        returns.append(
            round(float(np.mean([evaluate_mean_return(Mode(simulator, choose), simulator, lot) for lot in lots])), 3)
        )
        print(f"{task}, seed {seed}: {returns[-1]:.1f} after {taken:,} steps", flush=True)

    plan.train(task, seed, plan, report)
    return {"steps": steps, "returns": returns}


def about(peer: str, task: str, plan: Plan, count: int) -> JsonDict:
    """Return the metadata of a file of curves."""
    versions = {name: found for name in PACKAGES if (found := interleave.installed(name))}
    return {
        "peer": peer,
        "task": task,
        "command": f"python benchmarks/peers.py --peer {peer} --task {task} --seeds {count}",
        "environment": environment_of(task),
        "horizon": simulator_of(task).horizon,
        "budget": plan.budget,
        "episodes": plan.episodes,
        "settings": dict(plan.settings),
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version()},
        "versions": versions | {"aggrevated": __version__},
    }


def finished(path: Path, facts: JsonDict) -> JsonDict:
    """Return the curves in the file by seed; its metadata must equal `facts`."""
    if not path.exists():
        return {}
    record = read_json(path)
    for name in ("settings", "versions", "episodes", "budget"):
        if record[name] != facts[name]:
            raise SystemExit(f"{path} has curves of other {name}; move it away to start again")
    return record["curves"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", required=True, choices=sorted({peer for peer, _ in PLANS}))
    parser.add_argument("--task", required=True, choices=sorted({task for _, task in PLANS}))
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds (default: %(default)s)")
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="folder of PEER-TASK.json (default: docs/results/peers)"
    )
    options = parser.parse_args()
    if (options.peer, options.task) not in PLANS:
        parser.error(f"nothing is planned for {options.peer} on {options.task}")
    plan = PLANS[options.peer, options.task]
    path = options.folder / f"{options.peer}-{options.task}.json"
    facts = about(options.peer, options.task, plan, options.seeds)
    curves = finished(path, facts)
    for seed in range(options.seeds):
        if str(seed) not in curves:
            curves[str(seed)] = curve(options.task, seed, plan)
            write_json(path, facts | {"curves": curves})


LUNAR_LANDER = "LunarLander-v3"
# RL Baselines3 Zoo, hyperparams/ppo.yml at commit 208b6fd, in its own words; what it leaves open is as in
# Stable-Baselines3. It marks CartPole's as tuned; its Acrobot has a horizon of 500, its lander is v2.
ZOO = {
    "cartpole": {
        "n_envs": 8,
        "n_timesteps": 100_000,
        "normalize": False,
        "n_steps": 32,
        "batch_size": 256,
        "gae_lambda": 0.8,
        "gamma": 0.98,
        "n_epochs": 20,
        "ent_coef": 0.0,
        "learning_rate": "lin_0.001",
        "clip_range": "lin_0.2",
    },
    "acrobot": {
        "n_envs": 16,
        "n_timesteps": 1_000_000,
        "normalize": True,
        "n_steps": 256,
        "gae_lambda": 0.94,
        "gamma": 0.99,
        "n_epochs": 4,
        "ent_coef": 0.0,
    },
    "lunar-lander": {
        "n_envs": 16,
        "n_timesteps": 1_000_000,
        "normalize": False,
        "n_steps": 1024,
        "batch_size": 64,
        "gae_lambda": 0.98,
        "gamma": 0.999,
        "n_epochs": 4,
        "ent_coef": 0.01,
    },
}
STUDENT = {"net_arch": [16]}  # ReLU, as ours; all else as `imitation` has it
PLANS = {
    ("ppo", "cartpole"): Plan(ppo, ZOO["cartpole"], budget=60_000, every=1024),
    ("ppo", "acrobot"): Plan(ppo, ZOO["acrobot"], budget=100_000, every=4096),
    ("ppo", "lunar-lander"): Plan(ppo, ZOO["lunar-lander"], budget=500_000, every=49_152, lots=10),
    ("dagger", "cartpole"): Plan(dagger, STUDENT, budget=25_000),
    ("dagger", "acrobot"): Plan(dagger, STUDENT, budget=10_000),
    ("trpo", "hopper"): Plan(
        trpo, find_task("hopper").expert_recipe.settings, budget=300_000, every=10_240, episodes=50
    ),
    ("trpo", "walker"): Plan(
        trpo, find_task("walker").expert_recipe.settings, budget=600_000, every=10_240, episodes=50
    ),
}

if __name__ == "__main__":
    main()
