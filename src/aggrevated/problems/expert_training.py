"""Training of the builtin experts by DQN or TRPO of Stable-Baselines3, and selection of a checkpoint."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from torch import Tensor

from aggrevated.core.errors import AggrevatedError, UsageError
from aggrevated.core.hardware import single_thread
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.experts.loading import ExpertCard
from aggrevated.experts.network_layouts import build_expert
from aggrevated.simulators import Simulator
from aggrevated.storage import JsonDict
from aggrevated.validation import evaluate_mean_return, evaluate_returns

EPISODES = 1000  # for selecting a checkpoint, and as many fresh ones for the card


@dataclass(frozen=True)
class ExpertRecipe:
    """Settings of DQN or TRPO, and the band of mean returns from which a checkpoint is selected.

    Attributes:
        algorithm: "DQN" or "TRPO".
        environment: the Gymnasium id.
        steps: maximum number of training steps.
        checkpoint_every: number of steps between checkpoints.
        band: lowest and highest mean return of the checkpoint to select.
        why: reason for the band, for the expert's card.
        settings: arguments of the model of Stable-Baselines3.
    """

    algorithm: str
    environment: str
    steps: int
    checkpoint_every: int
    band: tuple[float, float]
    why: str
    settings: Mapping[str, Any]

    @property
    def network(self) -> JsonDict:
        """Metadata of the network that `build_expert` needs besides the weights."""
        return {"activation": "relu", "gamma": self.settings["gamma"]}


def train_expert(
    task: str, recipe: ExpertRecipe, simulator: Simulator, seed: int, report: Callable[[int, float], None]
) -> tuple[dict[str, Tensor], ExpertCard]:
    """Return (weights, card) of the first checkpoint with a mean return in the recipe's band.

    Args:
        task: name of the task.
        recipe: settings of the training.
        simulator: the task's simulator, in which checkpoints are scored.
        seed: seed of the training.
        report: called with (step, mean return) of each checkpoint.

    Raises:
        AggrevatedError: no checkpoint lies in the band.
        UsageError: Stable-Baselines3 is not installed.
    """
    model = make_sb3_model(recipe, simulator, seed)
    first = recipe.settings.get("learning_starts", recipe.checkpoint_every)
    episodes = derive_seeds(seed, SeedPurpose.VALIDATION, 0, EPISODES)
    selected: dict[str, Tensor] = {}

    def select_checkpoint(scope: dict[str, Any], _: dict[str, Any]) -> bool:
        """Score a checkpoint; called by Stable-Baselines3 after every step, false ends the training."""
        if model.num_timesteps % recipe.checkpoint_every or model.num_timesteps < first:
            return True
        weights = extract_expert_weights(model.policy.state_dict())
        mean = evaluate_mean_return(build_expert(weights, recipe.network, task, simulator), simulator, episodes)
        report(model.num_timesteps, mean)
        if recipe.band[0] <= mean <= recipe.band[1]:
            selected.update(weights)
        return not selected

    with single_thread():  # otherwise results depend on the number of cores
        model.learn(recipe.steps, callback=select_checkpoint)
    if not selected:
        raise AggrevatedError(
            f"no checkpoint of seed {seed} has a mean return within {recipe.band}; try another --seed"
        )
    return selected, make_expert_card(task, recipe, simulator, seed, model.num_timesteps, selected)


def make_sb3_model(recipe: ExpertRecipe, simulator: Simulator, seed: int) -> Any:
    """Return a new model of Stable-Baselines3 with ReLU activations."""
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
    """Return copies of the weights that a deterministic expert needs from a policy of Stable-Baselines3."""
    selected = {name: w for name, w in weights.items() if not name.startswith(("q_net_target.", "log_std"))}
    return {name.removeprefix("q_net."): w.detach().clone() for name, w in selected.items()}


def make_expert_card(
    task: str, recipe: ExpertRecipe, simulator: Simulator, seed: int, step: int, weights: dict[str, Tensor]
) -> ExpertCard:
    """Return the card of an expert, with its mean return on fresh episodes."""
    expert = build_expert(weights, recipe.network, task, simulator)
    returns, _ = evaluate_returns(expert, simulator, derive_seeds(seed, SeedPurpose.TEST, 0, EPISODES))
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
        mean_return=round(float(returns.mean()), 3),
        standard_error=round(float(returns.std(ddof=1) / np.sqrt(len(returns))), 3),
        episodes=EPISODES,
        settings=dict(recipe.settings),
        versions={name: version(name) for name in packages},
    )
