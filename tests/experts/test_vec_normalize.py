"""Experts trained with VecNormalize get its statistics, and the metadata of a zip show normalization."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, Space
from models import ARM, BOX, DICT, MATRIX, Small, find_algorithm, make_simulator, randomize_weights, sample_observations

from aggrevated.core.errors import DataError
from aggrevated.core.spaces import split_batch
from aggrevated.experts.fingerprint import collect_expert_arrays
from aggrevated.experts.loading import load_expert
from aggrevated.experts.training_metadata import read_training_metadata

vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")
pytest.importorskip("sb3_contrib")
PLACES = Dict({"z": Box(-9.0, 3.0, (2, 2)), "a": Discrete(3), "b": Box(2.0, 30.0, (3,))})


def make_vec_normalize(observations: Space[Any], actions: Space[Any], **more: Any) -> Any:
    from stable_baselines3.common.monitor import Monitor

    return vec_env.VecNormalize(vec_env.DummyVecEnv([lambda: Monitor(Small(observations, actions))]), **more)


def train_and_save(name: str, env: Any, path: Path, **more: Any) -> Any:
    policy = "MultiInputPolicy" if isinstance(env.observation_space, Dict) else "MlpPolicy"
    few = (
        {"buffer_size": 100}
        if name in ("DQN", "SAC", "TD3")
        else {}
        if name == "A2C"
        else {"n_steps": 32, "batch_size": 32}
    )
    model = find_algorithm(name)(policy, env, policy_kwargs={"net_arch": [8]}, seed=1, device="cpu", **few, **more)
    model.learn(64)
    randomize_weights(model)
    model.save(path)
    return model


@pytest.mark.parametrize(
    ("name", "observations", "actions", "settings"),
    [
        ("PPO", BOX, ARM, {}),
        ("PPO", BOX, Discrete(3), {"norm_reward": False, "clip_obs": 0.7, "epsilon": 0.1}),
        ("PPO", BOX, ARM, {"norm_obs": False}),
        ("DQN", MATRIX, Discrete(3), {"gamma": 0.5}),
        ("SAC", BOX, ARM, {}),
        ("A2C", PLACES, ARM, {"norm_obs_keys": ["b", "z"]}),
        ("PPO", PLACES, ARM, {"norm_obs_keys": ["z"], "clip_obs": 0.5}),
    ],
    ids=str,
)
def test_normalized_expert_acts_and_values_as_behind_vec_normalize(
    name: str, observations: Any, actions: Any, settings: dict[str, Any], tmp_path: Path
) -> None:
    env = make_vec_normalize(observations, actions, **settings)
    model = train_and_save(name, env, tmp_path / "model.zip")
    env.save(tmp_path / "stats.pkl")
    simulator = make_simulator(observations, actions)
    expert: Any = load_expert(str(tmp_path / "model.zip"), simulator, vec_normalize=str(tmp_path / "stats.pkl"))
    given = sample_observations(observations, 100)
    states = np.stack([simulator.space_adapter.to_vector(row) for row in split_batch(observations, given)])
    normalized = env.normalize_obs(given)
    expected, _ = model.predict(normalized, deterministic=True)
    found = expert.act(states, 0)
    np.testing.assert_allclose(simulator.space_adapter.to_native_actions(found), expected, atol=1e-5)
    unit = np.sqrt(env.ret_rms.var + env.epsilon) if settings.get("norm_reward", True) else 1.0
    tensors = model.policy.obs_to_tensor(normalized)[0]
    with torch.no_grad():
        if name == "DQN":
            np.testing.assert_allclose(expert.q(states), -unit * model.q_net(tensors).numpy(), rtol=1e-4, atol=1e-5)
        elif name == "SAC":
            q_values = torch.cat(model.critic(tensors, torch.from_numpy(model.policy.scale_action(found))), dim=1)
            rewards = q_values.numpy().min(axis=1)
            np.testing.assert_allclose(expert.q_of(states, found), -unit * rewards, rtol=1e-4, atol=1e-5)
        else:
            rewards = model.policy.predict_values(tensors)[:, 0].numpy()
            np.testing.assert_allclose(expert.v(states), -unit * rewards, rtol=1e-4, atol=1e-5)
    plain = load_expert(str(tmp_path / "model.zip"), simulator)
    assert len(collect_expert_arrays(expert)) == len(collect_expert_arrays(plain)) + 3
    differ = (plain.act(states, 0) != found).any()
    assert differ == settings.get("norm_obs", True)


def test_load_expert_reads_the_same_statistics_from_npz_and_pickle(tmp_path: Path) -> None:
    env = make_vec_normalize(BOX, ARM, norm_reward=False)
    train_and_save("PPO", env, tmp_path / "model.zip")
    env.save(tmp_path / "stats.pkl")
    np.savez(tmp_path / "stats.npz", mean=env.obs_rms.mean, var=env.obs_rms.var)
    experts = [
        load_expert(str(tmp_path / "model.zip"), make_simulator(BOX, ARM), str(tmp_path / f"stats.{x}"))
        for x in ("pkl", "npz")
    ]
    for one, other in zip(*map(collect_expert_arrays, experts), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["PPO", "A2C", "TRPO", "DQN", "SAC", "TD3"])
@pytest.mark.parametrize("space", [BOX, MATRIX], ids=str)
def test_read_training_metadata_describes_the_training_of_a_zip(name: str, space: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.zip"
    found = {}
    for normalized in (False, True):
        env = make_vec_normalize(space, Discrete(3) if name == "DQN" else ARM, norm_obs=normalized)
        model = train_and_save(name, env if normalized else env.venv, path)
        found[normalized] = metadata = read_training_metadata(path)
        assert (
            metadata["algorithm"] == name and metadata["timesteps"] == model.num_timesteps and metadata["gamma"] == 0.99
        )
        assert metadata["returns"] == {"mean": 20.0, "deviation": 0.0, "count": model.num_timesteps // 5}
        assert metadata["lengths"]["mean"] == 5.0 and metadata["mean_return"] == 20.0 and metadata["std_return"] == 0.0
        assert metadata["observation_mean"] is None  # the zip has only the last observation of one environment
        assert metadata["observations"]["mean"] == pytest.approx(model._last_obs.mean(), abs=1e-6)
    if name in ("PPO", "A2C", "TRPO") or space is MATRIX:
        assert found[False]["normalised"] is False and found[True]["normalised"] is True
    else:  # other algorithms show it only if the last observation is out of bounds
        assert found[False]["normalised"] is None and found[True]["normalised"] is not False


def test_read_training_metadata_of_an_untrained_zip_is_empty(tmp_path: Path) -> None:
    find_algorithm("PPO")("MultiInputPolicy", Small(DICT, ARM), device="cpu").save(tmp_path / "model.zip")
    metadata = read_training_metadata(tmp_path / "model.zip")
    assert [metadata[key] for key in ("returns", "lengths", "observations", "normalised")] == [None] * 4
    assert metadata["algorithm"] == "PPO" and metadata["timesteps"] == 0


def assert_refused(path: Path, words: str, space: Any = BOX) -> None:
    model = path.parent / "model.zip"
    if not model.exists():
        find_algorithm("PPO")("MlpPolicy", Small(BOX, ARM), device="cpu").save(model)
    with pytest.raises(DataError, match=words):
        load_expert(str(model), make_simulator(space, ARM), str(path))


def test_load_vec_normalize_refuses_unsuitable_statistics(tmp_path: Path) -> None:
    path = tmp_path / "stats.pkl"
    make_vec_normalize(MATRIX, ARM).save(path)
    assert_refused(
        path, r"they are of 4 numbers, but observations of small have 3\); save them with vec_normalize.save"
    )
    make_vec_normalize(PLACES, ARM, norm_obs_keys=["b"]).save(path)
    assert_refused(path, "they are of observations with other names than those of small")
    path.write_bytes(pickle.dumps({"mean": [1, 2, 3]}))
    assert_refused(path, "it is not a VecNormalize")
    env = make_vec_normalize(BOX, ARM)
    env.obs_rms.mean[1] = np.nan
    env.save(path)
    assert_refused(path, "they are not finite")
    for arrays in ({"mean": np.zeros(3)}, {"mean": np.zeros(3), "var": np.array([1, None, 2])}):
        np.savez(tmp_path / "stats.npz", **arrays)  # type: ignore[arg-type]
        assert_refused(tmp_path / "stats.npz", "holds no statistics for the expert")
    np.savez(tmp_path / "stats.npz", mean=np.zeros(3), var=-np.ones(3))
    assert_refused(tmp_path / "stats.npz", "negative variances")
