"""Loading of experts: builtin ones, Stable-Baselines3 zips, and files that are refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError
from aggrevated.experts.loading import BUILTIN_WEIGHTS, load_expert
from aggrevated.experts.network_experts import ActorCriticExpert
from aggrevated.simulators import Simulator
from aggrevated.simulators.acrobot import Acrobot
from aggrevated.simulators.cartpole import CartPole
from aggrevated.simulators.mujoco import MuJoCo
from aggrevated.storage import load_checksummed, save_checksummed
from aggrevated.tasks import find_task


@pytest.mark.parametrize("task", ["cartpole", "acrobot", "hopper", "walker"])
def test_builtin_expert_return_is_in_the_band_of_its_recipe(task: str) -> None:
    metadata = load_checksummed(BUILTIN_WEIGHTS / f"{task}.safetensors")[1]
    recipe = find_task(task).expert_recipe
    assert recipe is not None
    assert recipe.band[0] <= metadata["mean_return"] <= recipe.band[1]
    assert metadata["why"] == recipe.why and metadata["settings"] == dict(recipe.settings) and metadata["seed"] == 0


def test_load_expert_dqn_zip_acts_as_in_stable_baselines(tmp_path: Path) -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    import gymnasium

    model = sb3.DQN(
        "MlpPolicy", gymnasium.make("Acrobot-v1"), policy_kwargs={"net_arch": [32, 16]}, seed=3, device="cpu"
    )
    model.save(tmp_path / "model.zip")
    simulator = Acrobot()
    expert = load_expert(str(tmp_path / "model.zip"), simulator)
    states = np.random.default_rng(0).normal(size=(200, 4))
    with torch.no_grad():
        rewards = model.q_net(torch.from_numpy(simulator.observe(states))).numpy()
    np.testing.assert_allclose(expert.q(states), -rewards, atol=1e-5)
    actions, _ = model.predict(simulator.observe(states), deterministic=True)
    np.testing.assert_array_equal(expert.act(states, 0), actions)


def test_load_expert_refuses_a_file_with_other_tensors(tmp_path: Path) -> None:
    save_checksummed(tmp_path / "other.safetensors", {"weight": torch.zeros(2, 4)}, {})
    with pytest.raises(DataError, match="not fully connected, or not of the kind that cartpole needs; pass a DQN"):
        load_expert(str(tmp_path / "other.safetensors"), CartPole())


def save_hopper_model(path: Path, algorithm: str, layers: object, activation: object = None) -> Any:
    """Save a model for Hopper with large random weights to the path and return it."""
    import gymnasium

    package = pytest.importorskip("sb3_contrib" if algorithm == "TRPO" else "stable_baselines3")
    layout = {"net_arch": layers} | ({"activation_fn": activation} if activation else {})
    model = getattr(package, algorithm)(
        "MlpPolicy", gymnasium.make("Hopper-v5"), policy_kwargs=layout, gamma=0.97, seed=3, device="cpu"
    )
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    model.save(path)
    return model


def sample_hopper_states(simulator: MuJoCo) -> Array:
    """Return start states with noise, small to large."""
    states = simulator.reset(np.arange(200))
    states[:, 1:13] += np.random.default_rng(0).normal(size=(200, 12)) * np.linspace(0.1, 3.0, 200)[:, None]
    return states


@pytest.mark.parametrize(
    ("algorithm", "layers", "activation"),
    [
        ("TRPO", [64], None),
        ("TRPO", [16, 8], torch.nn.ReLU),
        ("PPO", {"pi": [8], "vf": [16, 4]}, None),
        ("PPO", [32], torch.nn.ReLU),
        ("A2C", [], torch.nn.Tanh),
    ],
)
def test_load_expert_actor_critic_zip_acts_and_values_as_in_stable_baselines(
    tmp_path: Path, algorithm: str, layers: object, activation: object
) -> None:
    model = save_hopper_model(tmp_path / "model.zip", algorithm, layers, activation)
    simulator = MuJoCo("hopper")
    expert = load_expert(str(tmp_path / "model.zip"), simulator)
    states = sample_hopper_states(simulator)
    actions, _ = model.predict(simulator.observe(states), deterministic=True)
    found = expert.act(states, 0)
    np.testing.assert_allclose(found, actions, atol=1e-5)
    assert (np.abs(found) == 1).any() and (np.abs(found) < 1).any()  # some actions are clipped, others not
    with torch.no_grad():
        rewards = model.policy.predict_values(torch.from_numpy(simulator.observe(states)))[:, 0].numpy()
    assert isinstance(expert, ActorCriticExpert)
    np.testing.assert_allclose(expert.v(states), -rewards, rtol=1e-5, atol=1e-5)
    assert expert.discount == 0.97


class ReLU(torch.nn.Module):
    """An activation with the name of a known one and another function."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return -x


@pytest.mark.parametrize("activation", [torch.nn.PReLU, ReLU])
def test_load_expert_refuses_a_zip_with_an_unknown_activation(tmp_path: Path, activation: type) -> None:
    save_hopper_model(tmp_path / "model.zip", "PPO", [8], activation)
    with pytest.raises(DataError, match=rf"{activation.__name__}'>; pass one with an activation of torch.nn"):
        load_expert(str(tmp_path / "model.zip"), MuJoCo("hopper"))


@pytest.mark.parametrize("task", ["hopper", "walker"])
def test_builtin_actor_critic_expert_stays_in_the_action_space(task: str) -> None:
    simulator = MuJoCo(task)
    expert = load_expert(task, simulator)
    assert isinstance(expert, ActorCriticExpert) and expert.discount == 0.99
    assert (
        expert.actor.activation
        == expert.critic.activation
        == load_checksummed(BUILTIN_WEIGHTS / f"{task}.safetensors")[1]["activation"]
    )
    states = simulator.reset(np.arange(50))
    states[:, 1:9] += np.random.default_rng(0).normal(size=(50, 8))
    actions = expert.act(states, 0)
    assert actions.shape == (50, *simulator.action_space.shape) and actions.dtype == np.float32
    assert np.abs(actions).max() == 1.0
    assert expert.v(simulator.reset(np.arange(50))).max() < -20  # costs are negative rewards, and the expert earns many


@pytest.mark.parametrize(
    ("expert", "simulator", "words"),
    [
        (
            "cartpole",
            MuJoCo("hopper"),
            "not of the kind that hopper needs; pass a TRPO, PPO, A2C, SAC, TD3 or DDPG with",
        ),
        ("hopper", CartPole(), "maps 11 observations to 3 actions, but cartpole has 4 and 2"),
        ("hopper", MuJoCo("walker"), "maps 11 observations to 3 actions, but walker has 17 and 6"),
    ],
)
def test_load_expert_refuses_an_expert_of_another_kind_of_task(expert: str, simulator: Simulator, words: str) -> None:
    with pytest.raises(DataError, match=words):
        load_expert(expert, simulator)
