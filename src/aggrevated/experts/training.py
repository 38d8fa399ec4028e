"""How the shipped experts were made: DQN or TRPO by Stable-Baselines3, and a checkpoint of it chosen on purpose."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from torch import Tensor

from aggrevated.errors import AggrevatedError, UsageError
from aggrevated.experts.loading import expert_from
from aggrevated.files import Facts
from aggrevated.randomness import Purpose, seeds
from aggrevated.simulators import Simulator
from aggrevated.validation import mean_return, returns_of

EPISODES = 1000  # for choosing, and as many fresh ones for the card


@dataclass(frozen=True)
class Recipe:
    """The settings of DQN or TRPO, and the mean return that the first good enough checkpoint must lie in."""

    algorithm: str
    environment: str
    steps: int
    checkpoint_every: int
    band: tuple[float, float]
    why: str
    settings: Mapping[str, Any]


TRPO_SETTINGS = {  # the paper's shape, one hidden layer of 64; otherwise sb3-contrib's own but for `batch_size`
    "learning_rate": 1e-3,
    "n_steps": 2048,
    "batch_size": 128,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "target_kl": 0.01,
    "policy_kwargs": {"net_arch": [64]},
}
RECIPES = {
    "cartpole": Recipe(
        algorithm="DQN",
        environment="CartPole-v1",
        steps=50_000,
        checkpoint_every=512,
        band=(350.0, 400.0),
        why=(
            "Deliberately not the best checkpoint: others, shortly before and after, reach 500 of 500. The paper's "
            "learner surpasses its expert by 25 %, which can only be seen with an expert of at most 400."
        ),
        settings={
            "learning_rate": 2.3e-3,
            "batch_size": 64,
            "buffer_size": 100_000,
            "learning_starts": 1000,
            "gamma": 0.99,
            "target_update_interval": 10,
            "train_freq": 256,
            "gradient_steps": 128,
            "exploration_fraction": 0.16,
            "exploration_final_eps": 0.04,
            "policy_kwargs": {"net_arch": [64, 64]},
        },
    ),
    "acrobot": Recipe(
        algorithm="DQN",
        environment="Acrobot-v1",
        steps=80_000,
        checkpoint_every=1000,
        band=(-95.0, -90.0),
        why=(
            "Deliberately a checkpoint with room above it: DQN reaches -80 later. In development AggreVaTeD ended "
            "between -81 and -90 whatever its expert's return, so a gain like the paper's needs one of -90 or less."
        ),
        settings={
            "learning_rate": 6.3e-4,
            "batch_size": 128,
            "buffer_size": 50_000,
            "learning_starts": 1000,
            "gamma": 0.99,
            "target_update_interval": 250,
            "train_freq": 4,
            "gradient_steps": 4,
            "exploration_fraction": 0.12,
            "exploration_final_eps": 0.1,
            "policy_kwargs": {"net_arch": [64, 64]},
        },
    ),
    "hopper": Recipe(
        algorithm="TRPO",
        environment="Hopper-v5",
        steps=500_000,
        checkpoint_every=10_240,
        band=(230.0, 240.0),
        why=(
            "Deliberately a checkpoint with room above it: TRPO reaches 279 within 300,000 steps. The paper's learner "
            "ends at 97 % of its expert; whether one can go beyond it cannot be seen at the top."
        ),
        settings=TRPO_SETTINGS,
    ),
    "walker": Recipe(
        algorithm="TRPO",
        environment="Walker2d-v5",
        steps=800_000,
        checkpoint_every=10_240,
        band=(180.0, 190.0),
        why=(
            "Deliberately a checkpoint with room above it: TRPO reaches 203 within 600,000 steps. The paper's learner "
            "surpasses its expert by 5.4 %."
        ),
        settings=TRPO_SETTINGS,
    ),
}


def train_expert(
    task: str, simulator: Simulator, seed: int, report: Callable[[int, float], None]
) -> tuple[dict[str, Tensor], Facts]:
    """(weights, card) of the first checkpoint with a mean return in the recipe's band; `report(step, return)` each."""
    recipe = RECIPES[task]
    model = model_for(recipe, simulator, seed)
    first = recipe.settings.get("learning_starts", recipe.checkpoint_every)
    episodes = seeds(seed, Purpose.VALIDATION, 0, EPISODES)
    found: dict[str, Tensor] = {}

    def choose(scope: dict[str, Any], _: dict[str, Any]) -> bool:
        """Called by Stable-Baselines3 after every step; false ends the training."""
        if model.num_timesteps % recipe.checkpoint_every or model.num_timesteps < first:
            return True
        weights = {
            name.removeprefix("q_net."): w.detach().clone()
            for name, w in model.policy.state_dict().items()
            if needed(name)
        }
        mean = mean_return(expert_from(weights, recipe_card(recipe), task, simulator), simulator, episodes)
        report(model.num_timesteps, mean)
        if recipe.band[0] <= mean <= recipe.band[1]:
            found.update(weights)
        return not found

    model.learn(recipe.steps, callback=choose)
    if not found:
        raise AggrevatedError(f"no checkpoint of seed {seed} fell into {recipe.band}; try another --seed")
    return found, card(task, recipe, simulator, seed, model.num_timesteps, found)


def model_for(recipe: Recipe, simulator: Simulator, seed: int) -> Any:
    """A new model of Stable-Baselines3, with ReLU between its layers."""
    try:
        import gymnasium
        import torch
        from sb3_contrib import TRPO
        from stable_baselines3 import DQN
    except ImportError as error:
        raise UsageError("training an expert needs Stable-Baselines3: pip install 'aggrevated[experts]'") from error
    torch.set_num_threads(1)  # else the bits depend on the number of cores
    environment = gymnasium.make(recipe.environment, max_episode_steps=simulator.horizon)
    network = dict(recipe.settings["policy_kwargs"]) | {"activation_fn": torch.nn.ReLU}
    settings = dict(recipe.settings) | {"policy_kwargs": network}
    return {"DQN": DQN, "TRPO": TRPO}[recipe.algorithm]("MlpPolicy", environment, seed=seed, device="cpu", **settings)


def needed(name: str) -> bool:
    """Whether a weight of Stable-Baselines3's policy is of use to an expert that acts without chance."""
    return not name.startswith(("q_net_target.", "log_std"))


def recipe_card(recipe: Recipe) -> Facts:
    """What `expert_from` needs to know besides the weights."""
    return {"activation": "relu", "gamma": recipe.settings["gamma"]}


def card(task: str, recipe: Recipe, simulator: Simulator, seed: int, step: int, weights: dict[str, Tensor]) -> Facts:
    """What a reader should know of an expert, its return on fresh episodes among it."""
    expert = expert_from(weights, recipe_card(recipe), task, simulator)
    fresh, _ = returns_of(expert, simulator, seeds(seed, Purpose.TEST, 0, EPISODES))
    packages = ["aggrevated", "stable-baselines3", "gymnasium", "torch", "numpy"]
    packages += ["sb3-contrib", "mujoco"] if recipe.algorithm == "TRPO" else []
    return {
        "task": task,
        "algorithm": f"{recipe.algorithm} ({'sb3-contrib' if recipe.algorithm == 'TRPO' else 'Stable-Baselines3'})",
        "activation": "relu",
        "command": f"aggrevated expert train {task} --seed {seed}",
        "environment": recipe.environment,
        "horizon": simulator.horizon,
        "seed": seed,
        "step": step,
        "chosen": f"the first of those every {recipe.checkpoint_every} steps with a mean return in {recipe.band}",
        "why": recipe.why,
        "mean_return": round(float(fresh.mean()), 3),
        "standard_error": round(float(fresh.std(ddof=1) / np.sqrt(len(fresh))), 3),
        "episodes": EPISODES,
        "settings": dict(recipe.settings),
        "versions": {name: version(name) for name in packages},
    }
