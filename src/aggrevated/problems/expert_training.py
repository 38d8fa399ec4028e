"""How the shipped experts are made: DQN or TRPO by Stable-Baselines3, and a checkpoint of it chosen on purpose."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from torch import Tensor

from aggrevated.core.errors import AggrevatedError, UsageError
from aggrevated.core.hardware import single_thread
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.experts.checkpoint_formats import build_expert
from aggrevated.experts.loading import ExpertCard
from aggrevated.simulators import Simulator
from aggrevated.storage import JsonDict
from aggrevated.validation import evaluate_mean_return, evaluate_returns

EPISODES = 1000  # for choosing, and as many fresh ones for the card


@dataclass(frozen=True)
class ExpertRecipe:
    """The settings of DQN or TRPO, and the mean return that the first good enough checkpoint must lie in."""

    algorithm: str
    environment: str
    steps: int
    checkpoint_every: int
    band: tuple[float, float]
    why: str
    settings: Mapping[str, Any]

    @property
    def network(self) -> JsonDict:
        """What `expert_from` needs to know besides the weights."""
        return {"activation": "relu", "gamma": self.settings["gamma"]}


def train_expert(
    task: str, recipe: ExpertRecipe, simulator: Simulator, seed: int, report: Callable[[int, float], None]
) -> tuple[dict[str, Tensor], ExpertCard]:
    """(weights, card) of the first checkpoint with a mean return in the recipe's band; `report(step, return)` each."""
    model = make_sb3_model(recipe, simulator, seed)
    first = recipe.settings.get("learning_starts", recipe.checkpoint_every)
    episodes = derive_seeds(seed, SeedPurpose.VALIDATION, 0, EPISODES)
    found: dict[str, Tensor] = {}

    def choose(scope: dict[str, Any], _: dict[str, Any]) -> bool:
        """Called by Stable-Baselines3 after every step; false ends the training."""
        if model.num_timesteps % recipe.checkpoint_every or model.num_timesteps < first:
            return True
        weights = extract_expert_weights(model.policy.state_dict())
        mean = evaluate_mean_return(build_expert(weights, recipe.network, task, simulator), simulator, episodes)
        report(model.num_timesteps, mean)
        if recipe.band[0] <= mean <= recipe.band[1]:
            found.update(weights)
        return not found

    with single_thread():  # else the bits depend on the number of cores
        model.learn(recipe.steps, callback=choose)
    if not found:
        raise AggrevatedError(f"no checkpoint of seed {seed} fell into {recipe.band}; try another --seed")
    return found, make_expert_card(task, recipe, simulator, seed, model.num_timesteps, found)


def make_sb3_model(recipe: ExpertRecipe, simulator: Simulator, seed: int) -> Any:
    """A new model of Stable-Baselines3, with ReLU between its layers."""
    try:
        import gymnasium
        import torch
        from sb3_contrib import TRPO
        from stable_baselines3 import DQN
    except ImportError as error:
        raise UsageError("training an expert needs Stable-Baselines3: pip install 'aggrevated[experts]'") from error
    environment = gymnasium.make(recipe.environment, max_episode_steps=simulator.horizon)
    network = dict(recipe.settings["policy_kwargs"]) | {"activation_fn": torch.nn.ReLU}
    settings = dict(recipe.settings) | {"policy_kwargs": network}
    return {"DQN": DQN, "TRPO": TRPO}[recipe.algorithm]("MlpPolicy", environment, seed=seed, device="cpu", **settings)


def extract_expert_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies of those weights of Stable-Baselines3's policy that an expert needs, who acts without chance."""
    needed = {name: w for name, w in weights.items() if not name.startswith(("q_net_target.", "log_std"))}
    return {name.removeprefix("q_net."): w.detach().clone() for name, w in needed.items()}


def make_expert_card(
    task: str, recipe: ExpertRecipe, simulator: Simulator, seed: int, step: int, weights: dict[str, Tensor]
) -> ExpertCard:
    """What a reader should know of an expert, its return on fresh episodes among it."""
    expert = build_expert(weights, recipe.network, task, simulator)
    fresh, _ = evaluate_returns(expert, simulator, derive_seeds(seed, SeedPurpose.TEST, 0, EPISODES))
    packages = ["aggrevated", "stable-baselines3", "gymnasium", "torch", "numpy"]
    packages += ["sb3-contrib", "mujoco"] if recipe.algorithm == "TRPO" else []
    return ExpertCard(
        task=task,
        algorithm=f"{recipe.algorithm} ({'sb3-contrib' if recipe.algorithm == 'TRPO' else 'Stable-Baselines3'})",
        activation="relu",
        command=f"aggrevated expert train {task} --seed {seed}",
        environment=recipe.environment,
        horizon=simulator.horizon,
        seed=seed,
        step=step,
        chosen=f"the first of those every {recipe.checkpoint_every} steps with a mean return in {recipe.band}",
        why=recipe.why,
        mean_return=round(float(fresh.mean()), 3),
        standard_error=round(float(fresh.std(ddof=1) / np.sqrt(len(fresh))), 3),
        episodes=EPISODES,
        settings=dict(recipe.settings),
        versions={name: version(name) for name in packages},
    )
