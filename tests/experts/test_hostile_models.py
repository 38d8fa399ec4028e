"""Pickled payloads in a zip or in statistics are never run."""

import base64
import io
import json
import time
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import ARM, BOX, Small, find_algorithm, make_simulator

from aggrevated.core.errors import DataError
from aggrevated.experts.loading import load_expert
from aggrevated.experts.training_metadata import read_training_metadata
from helpers.pickle_payloads import payloads

vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")
NAMES = sorted(payloads(Path("x")))


@pytest.fixture(scope="module")
def model_parts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the files in the zip of a PPO model that was trained for some steps."""
    path = tmp_path_factory.mktemp("honest") / "model.zip"
    find_algorithm("PPO")("MlpPolicy", Small(BOX, ARM), n_steps=32, batch_size=32, device="cpu").learn(32).save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_zip(parts: dict[str, bytes], path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def is_read(path: Path, statistics: str = "") -> bool:
    """Return whether a model was read, not refused; fail if this takes a second or more."""
    start = time.process_time()
    was_read = False
    with suppress(DataError):
        load_expert(str(path), make_simulator(BOX, ARM), statistics)
        read_training_metadata(path)
        was_read = True
    assert time.process_time() - start < 1
    return was_read


@pytest.mark.parametrize("name", NAMES)
def test_load_expert_never_runs_a_payload_in_any_setting(
    name: str, model_parts: dict[str, bytes], tmp_path: Path
) -> None:
    marker = tmp_path / "marker"
    payload = {":type:": "<class 'dict'>", ":serialized:": base64.b64encode(payloads(marker)[name]).decode()}
    settings = json.loads(model_parts["data"])
    valid_settings = {"gamma": 0.99, "policy_kwargs": {**payload, "net_arch": [64, 64]}}
    data = json.dumps(dict.fromkeys(settings, payload) | valid_settings).encode()
    path = write_zip(model_parts | {"data": data}, tmp_path / "model.zip")
    assert is_read(path)
    metadata = read_training_metadata(path)
    assert [metadata[key] for key in ("timesteps", "returns", "observations")] == [None] * 3
    for key in settings if name == "REDUCE 4" else ():
        write_zip(model_parts | {"data": json.dumps(settings | {key: payload}).encode()}, path)
        assert is_read(path) or key == "gamma"
    assert not marker.exists()


@pytest.mark.parametrize("name", NAMES)
def test_load_expert_refuses_a_payload_in_place_of_the_weights(
    name: str, model_parts: dict[str, bytes], tmp_path: Path
) -> None:
    marker = tmp_path / "marker"
    with zipfile.ZipFile(io.BytesIO(model_parts["policy.pth"])) as archive:
        parts = {member: archive.read(member) for member in archive.namelist()}
    [pickled] = [member for member in parts if member.endswith("data.pkl")]
    write_zip(parts | {pickled: payloads(marker)[name]}, tmp_path / "policy.pth")
    for policy in ((tmp_path / "policy.pth").read_bytes(), payloads(marker)[name]):
        assert not is_read(write_zip(model_parts | {"policy.pth": policy}, tmp_path / "model.zip"))
    assert not marker.exists()


@pytest.mark.parametrize("name", NAMES)
def test_load_expert_ignores_a_payload_in_other_parts_of_a_zip(
    name: str, model_parts: dict[str, bytes], tmp_path: Path
) -> None:
    marker = tmp_path / "marker"
    other_parts = dict.fromkeys(model_parts.keys() - {"data", "policy.pth"}, payloads(marker)[name])
    assert len(other_parts) == 4 and is_read(write_zip(model_parts | other_parts, tmp_path / "model.zip"))
    assert not marker.exists()


@pytest.mark.parametrize("name", NAMES)
def test_load_vec_normalize_refuses_a_payload_in_place_of_statistics(
    name: str, model_parts: dict[str, bytes], tmp_path: Path
) -> None:
    marker = tmp_path / "marker"
    path = tmp_path / "stats.pkl"
    path.write_bytes(payloads(marker)[name])
    assert not is_read(write_zip(model_parts, tmp_path / "model.zip"), str(path))
    assert not marker.exists()


class TouchWhenUnpickled:
    """Object that touches a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return Path.touch, (self.marker,)


def test_load_vec_normalize_never_runs_a_payload_in_any_value(model_parts: dict[str, bytes], tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    path = tmp_path / "stats.pkl"
    model = write_zip(model_parts, tmp_path / "model.zip")
    names = list(vec_env.VecNormalize(vec_env.DummyVecEnv([lambda: Small(BOX, ARM)])).__getstate__())
    was_read = []
    for name in names:
        env = vec_env.VecNormalize(vec_env.DummyVecEnv([lambda: Small(BOX, ARM)]))
        setattr(env, name, TouchWhenUnpickled(marker))
        env.save(path)
        was_read += [name] * is_read(model, str(path))
    assert not marker.exists()
    assert {"observation_space", "clip_reward", "old_reward"} <= {*was_read}
    assert not {"obs_rms", "ret_rms", "norm_obs", "clip_obs", "epsilon"} & {*was_read}


def test_load_vec_normalize_refuses_an_npz_with_objects(model_parts: dict[str, bytes], tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    objects = np.array([TouchWhenUnpickled(marker)] * 3, dtype=object)
    np.savez(tmp_path / "stats.npz", mean=objects, var=objects)
    assert not is_read(write_zip(model_parts, tmp_path / "model.zip"), str(tmp_path / "stats.npz"))
    assert not marker.exists()


@pytest.mark.parametrize("seed", range(60))
def test_load_vec_normalize_reads_or_refuses_corrupted_statistics(
    seed: int, model_parts: dict[str, bytes], tmp_path: Path
) -> None:
    rng = np.random.default_rng(seed)
    path = tmp_path / "stats"
    if seed % 2:
        vec_env.VecNormalize(vec_env.DummyVecEnv([lambda: Small(BOX, ARM)])).save(path)
    else:
        np.savez(path, mean=np.zeros(3), var=np.ones(3))
        path = path.with_suffix(".npz")
    data = bytearray(path.read_bytes())
    for position in rng.integers(0, len(data), 1 + seed % 5):
        data[position] = rng.integers(256)
    path.write_bytes(bytes(data))
    is_read(write_zip(model_parts, tmp_path / "model.zip"), str(path))
