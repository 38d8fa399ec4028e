"""Loaded models of Stable-Baselines3 and sb3-contrib give the actions and values of the originals."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete, Space
from models import ARM, BOX, DICT, MATRIX, make_simulator, sample_observations, save_random_model

from aggrevated.core.errors import DataError
from aggrevated.core.spaces import split_batch
from aggrevated.experts.loading import load_expert

FlattenExtractor: Any = pytest.importorskip("stable_baselines3.common.torch_layers").FlattenExtractor
pytest.importorskip("sb3_contrib")

N = 200
SEVERAL = MultiDiscrete([2, 4, 3])


def states_from_observations(space: Space[Any], observations: Any, simulator: Any) -> Any:
    return np.stack([simulator.space_adapter.to_vector(row) for row in split_batch(space, observations)])


def load_and_check_actions(
    name: str, observations: Space[Any], actions: Space[Any], folder: Path, **more: Any
) -> tuple[Any, ...]:
    """Check that model and expert act alike, and return (model, expert, observations, states)."""
    model = save_random_model(name, observations, actions, folder / "model.zip", **more)
    simulator = make_simulator(observations, actions)
    expert: Any = load_expert(str(folder / "model.zip"), simulator)
    given = sample_observations(observations, N)
    states = states_from_observations(observations, given, simulator)
    expected, _ = model.predict(given, deterministic=True)
    found = expert.act(states, 0)
    np.testing.assert_allclose(simulator.space_adapter.to_native_actions(found), expected, atol=1e-5)
    assert len(np.unique(found, axis=0)) > 1 and expert.discount == 0.97
    return model, expert, model.policy.obs_to_tensor(given)[0], states


@pytest.mark.parametrize(
    "observations", [BOX, MATRIX, Discrete(5), MultiDiscrete([3, 2]), MultiBinary(4), DICT], ids=str
)
@pytest.mark.parametrize("name", ["DQN", "QRDQN"])
def test_q_network_zip_acts_and_values_as_in_stable_baselines(
    name: str, observations: Space[Any], tmp_path: Path
) -> None:
    model, expert, given, states = load_and_check_actions(name, observations, Discrete(3), tmp_path)
    with torch.no_grad():
        rewards = model.q_net(given) if name == "DQN" else model.quantile_net(given).mean(dim=1)
    np.testing.assert_allclose(expert.q(states), -rewards.numpy(), atol=1e-5)


@pytest.mark.parametrize("observations", [BOX, Discrete(5), DICT], ids=str)
@pytest.mark.parametrize("actions", [Discrete(3), ARM, SEVERAL, MultiBinary(3)], ids=str)
@pytest.mark.parametrize("name", ["PPO", "A2C", "TRPO"])
def test_actor_critic_zip_acts_and_values_as_in_stable_baselines(
    name: str, observations: Space[Any], actions: Space[Any], tmp_path: Path
) -> None:
    model, expert, given, states = load_and_check_actions(name, observations, actions, tmp_path)
    with torch.no_grad():
        rewards = model.policy.predict_values(given)[:, 0].numpy()
    np.testing.assert_allclose(expert.v(states), -rewards, atol=1e-5)


@pytest.mark.parametrize("observations", [BOX, MATRIX, DICT], ids=str)
@pytest.mark.parametrize("name", ["SAC", "TD3", "DDPG", "TQC"])
def test_actor_q_zip_acts_and_values_as_in_stable_baselines(
    name: str, observations: Space[Any], tmp_path: Path
) -> None:
    model, expert, given, states = load_and_check_actions(name, observations, ARM, tmp_path)
    ARM.seed(1)
    actions = np.stack([ARM.sample() for _ in range(N)])
    with torch.no_grad():
        q_values = model.critic(given, torch.from_numpy(model.policy.scale_action(actions)))
        rewards = q_values.mean(dim=2).T if name == "TQC" else torch.cat(q_values, dim=1).T
    np.testing.assert_allclose(expert.q_of(states, actions), -rewards.numpy().min(axis=0), atol=2e-5)
    assert len(expert.networks) == 2 + (name != "DDPG")


@pytest.mark.parametrize("layout", [{}, {"net_arch": []}, {"clip_mean": 0.3}, {"clip_mean": 0.0}], ids=str)
def test_sac_zip_with_gsde_acts_as_in_stable_baselines(layout: dict[str, Any], tmp_path: Path) -> None:
    load_and_check_actions("SAC", BOX, ARM, tmp_path, use_sde=True, policy_kwargs=layout)


@pytest.mark.parametrize("squash", [False, True])
def test_ppo_zip_with_gsde_acts_as_in_stable_baselines(squash: bool, tmp_path: Path) -> None:
    _, expert, _, _ = load_and_check_actions(
        "PPO", BOX, ARM, tmp_path, use_sde=True, policy_kwargs={"squash_output": squash}
    )
    assert expert.squash is squash


@pytest.mark.parametrize("name", ["DQN", "PPO", "SAC", "TD3"])
@pytest.mark.parametrize("layers", [[], [15], [17, 16, 15, 14]], ids=str)
def test_zip_of_any_depth_acts_as_in_stable_baselines(name: str, layers: list[int], tmp_path: Path) -> None:
    load_and_check_actions(
        name, BOX, Discrete(3) if name == "DQN" else ARM, tmp_path, policy_kwargs={"net_arch": layers}
    )


@pytest.mark.parametrize("activation", ["ELU", "GELU", "SiLU", "LeakyReLU", "Sigmoid", "Softplus", "Mish", "Identity"])
@pytest.mark.parametrize("name", ["SAC", "PPO", "TD3"])
def test_zip_with_any_activation_acts_as_in_stable_baselines(name: str, activation: str, tmp_path: Path) -> None:
    layout = {"activation_fn": getattr(torch.nn, activation)}
    _, expert, _, _ = load_and_check_actions(name, BOX, ARM, tmp_path, policy_kwargs=layout)
    assert expert.networks[0].activation.replace("_", "") == activation.lower()


def test_zip_with_matrix_actions_acts_as_in_stable_baselines(tmp_path: Path) -> None:
    for name in ("PPO", "SAC"):
        load_and_check_actions(name, BOX, Box(-2.0, 1.0, (2, 3)), tmp_path)


class Halved(FlattenExtractor):
    """Feature extractor without parameters, which leaves no tensor in the file."""


def assert_refused(path: Path, simulator: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        load_expert(str(path), simulator)


def test_load_expert_refuses_image_recurrent_and_custom_feature_models(tmp_path: Path) -> None:
    import sb3_contrib
    from models import Small, find_algorithm
    from stable_baselines3.common.policies import ActorCriticPolicy

    picture = Box(0, 255, (36, 36, 3), np.uint8)
    path = tmp_path / "model.zip"
    function = "expert=lambda observation: model.predict"
    find_algorithm("DQN")("CnnPolicy", Small(picture, Discrete(3)), buffer_size=10, device="cpu").save(path)
    assert_refused(
        path,
        make_simulator(picture, Discrete(3)),
        rf"features_extractor.* only fully connected policies are supported; .*{function}",
    )
    find_algorithm("PPO")("MlpPolicy", Small(picture, Discrete(3)), policy_kwargs={"net_arch": []}, device="cpu").save(
        path
    )
    assert_refused(path, make_simulator(picture, Discrete(3)), rf"takes vectors, .* of small are images; .*{function}")
    sb3_contrib.RecurrentPPO("MlpLstmPolicy", Small(BOX, ARM), device="cpu").save(path)
    assert_refused(path, make_simulator(BOX, ARM), rf"has the tensor lstm_\w+\.\w+ of a .* policy, .*{function}")

    class Odd(ActorCriticPolicy):
        pass

    find_algorithm("PPO")("MlpPolicy", Small(BOX, ARM), policy_kwargs={"features_extractor_class": Halved}).save(path)
    assert_refused(path, make_simulator(BOX, ARM), rf"has the feature extractor .*Halved.*{function}")
    find_algorithm("PPO")(Odd, Small(BOX, ARM), device="cpu").save(path)
    assert_refused(path, make_simulator(BOX, ARM), rf"has a custom policy class, in .*{function}")
    sb3_contrib.CrossQ("MlpPolicy", Small(BOX, ARM), device="cpu").save(path)
    assert_refused(path, make_simulator(BOX, ARM), function)


@pytest.mark.parametrize(
    ("name", "trained", "used", "words"),
    [
        ("PPO", Discrete(2), ARM, "not of the kind that small needs; pass a TRPO, PPO, A2C, SAC, TD3 or DDPG"),
        ("PPO", ARM, Discrete(2), "not of the kind that small needs; pass a DQN, QR-DQN, PPO, A2C or TRPO"),
        ("SAC", ARM, Discrete(2), "not of the kind that small needs"),
        ("DQN", Discrete(2), ARM, "not of the kind that small needs"),
        ("QRDQN", Discrete(3), Discrete(7), "maps 3 observations to 600 actions, but small has 3 and 7"),
        ("PPO", SEVERAL, Discrete(24), "maps 3 observations to 9 actions, but small has 3 and 24"),
        ("SAC", ARM, Box(-np.inf, np.inf, (2,)), "acts between bounds, and the actions of small have none"),
    ],
)
def test_load_expert_refuses_models_for_other_actions(
    name: str, trained: Space[Any], used: Space[Any], words: str, tmp_path: Path
) -> None:
    save_random_model(name, BOX, trained, tmp_path / "model.zip")
    assert_refused(tmp_path / "model.zip", make_simulator(BOX, used), words)
