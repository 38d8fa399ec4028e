"""ONNX files: onnxruntime gives the outputs of the policy."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete
from gymnasium.spaces.utils import flatten

from aggrevated import DataError, UsageError, export_onnx
from aggrevated.core.spaces import SpaceAdapter
from aggrevated.export import onnx_files
from aggrevated.policies.convolutional import ConvolutionalPolicy
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead, GaussianHead
from aggrevated.policies.mixture import MixturePolicy
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.policies.window import WindowPolicy
from helpers.tiny_mdp import randomise

onnx = pytest.importorskip("onnx", reason="pip install 'aggrevated[onnx]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="pip install 'aggrevated[onnx]'")
SIZE = 4
A = 3


def make_mixture(newest):
    policy = MixturePolicy(newest, CategoricalHead(A))
    for shares in ([1.0], [0.7, 0.3], [0.5, 0.0, 0.5]):
        randomise(policy, len(shares), 0.5)
        policy.renew(np.array(shares))
    return policy


def with_action_scale(policy):
    policy.head.init_action_scale(np.array([10.0, 0.0, -3.0], np.float32), np.array([5.0, 0.01, 1.0], np.float32))
    return policy


POLICIES = {
    "mlp": lambda: FeedForwardPolicy(SIZE, CategoricalHead(A), (16, 8)),
    "linear": lambda: FeedForwardPolicy(SIZE, CategoricalHead(A), ()),
    "Gaussian": lambda: FeedForwardPolicy(SIZE, GaussianHead(A, low=np.array([-1, -0.2, -0.1]), high=0.2)),
    "window": lambda: WindowPolicy(SIZE, CategoricalHead(A), (6,), width=3),
    "action scale": lambda: with_action_scale(FeedForwardPolicy(SIZE, GaussianHead(A, low=-40.0, high=40.0))),
    "window of 1": lambda: WindowPolicy(SIZE, GaussianHead(A), (6,), width=1),
    "LSTM": lambda: RecurrentPolicy(SIZE, CategoricalHead(A), 7),
    "LSTM, Gaussian": lambda: RecurrentPolicy(SIZE, GaussianHead(A, low=-0.1, high=0.1), 7),
    "GRU": lambda: RecurrentPolicy(SIZE, CategoricalHead(A), 7, "gru"),
    "mixture": lambda: make_mixture(FeedForwardPolicy(SIZE, CategoricalHead(A))),
    "mixture of GRUs": lambda: make_mixture(RecurrentPolicy(SIZE, CategoricalHead(A), 3, "gru")),
}


def open_session(path: Path):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("make", POLICIES.values(), ids=POLICIES)
def test_export_onnx_model_acts_as_predict_step_by_step(make, tmp_path):
    policy = randomise(make(), 4, 0.6)
    path = tmp_path / "p.onnx"
    assert export_onnx(policy, path) <= 1e-5
    session = open_session(path)
    states = None
    actions = set()
    size = policy.actor().memory(6).shape[1]
    state = {"state": np.zeros((6, size), np.float32)} if size else {}
    for observation in np.random.default_rng(1).normal(size=(20, 6, SIZE)).astype(np.float32):
        found = dict(
            zip(
                [o.name for o in session.get_outputs()],
                session.run(None, {"observation": observation, **state}),
                strict=True,
            )
        )
        action, states = policy.predict(observation, states, deterministic=True)
        np.testing.assert_allclose(found["action"], action, rtol=1e-5, atol=1e-5)
        actions.add(found["action"].tobytes())
        if size:
            np.testing.assert_allclose(found["state_out"], states, rtol=1e-5, atol=1e-5)
            state = {"state": found["state_out"]}
    assert ("state_out" in found) == bool(size)
    if "deviation" in found:
        deviation = policy.head.unit * policy.head.log_deviation.detach().exp()
        np.testing.assert_allclose(found["deviation"], np.tile(deviation, (6, 1)), rtol=1e-6)
        assert found["mean"].shape == found["action"].shape == (6, A)
    else:
        assert found["action"].dtype == np.int64 and len(actions) > 1


ACTIONS = {
    "counted from 5": (Discrete(6, start=5), ()),
    "several": (MultiDiscrete([2, 3], start=[0, 7]), (2,)),
    "bits": (MultiBinary([1, 3]), (3,)),
}


@pytest.mark.parametrize(("actions", "shape"), ACTIONS.values(), ids=ACTIONS)
def test_export_onnx_model_uses_the_environments_actions_and_observations(actions, shape, tmp_path):
    observation_space = Dict({"place": Box(-1, 1, (2,)), "room": Discrete(3)})
    mean = np.array([0.5, 100.0, 0], np.float32)
    scale = np.array([2, 30.0, 1], np.float32)
    space_adapter = SpaceAdapter(observation_space, actions, (4, 1, 0), mean, scale)
    policy = randomise(FeedForwardPolicy(3, CategoricalHead(int(space_adapter.action_space.n))), 1, 1.0)
    policy.space_adapter = space_adapter
    assert export_onnx(policy, tmp_path / "p.onnx") <= 1e-5
    session = open_session(tmp_path / "p.onnx")
    distinct_actions = set()
    assert session.get_inputs()[0].shape == ["batch", 5]
    for seed in range(20):
        observation_space.seed(seed)
        one = {"place": observation_space.sample()["place"] * [1, 300], "room": observation_space.sample()["room"]}
        (action,) = session.run(["action"], {"observation": flatten(observation_space, one)[None].astype(np.float32)})
        expected, _ = policy.predict(one, deterministic=True)
        assert action[0].shape == shape and action[0].tolist() == expected.reshape(shape).tolist()
        distinct_actions.add(str(action))
    assert len(distinct_actions) > 1


@pytest.mark.parametrize("shape", [(12, 9), (70, 40, 3)])
def test_export_onnx_model_reads_raw_images(shape, tmp_path):
    policy = randomise(ConvolutionalPolicy(shape, CategoricalHead(A), (8,)), 1, 0.1)
    policy.space_adapter = SpaceAdapter(Box(0, 255, shape, np.uint8), Discrete(A))
    assert export_onnx(policy, tmp_path / "p.onnx") <= 1e-5
    session = open_session(tmp_path / "p.onnx")
    assert session.get_inputs()[0].shape == ["batch", *shape]
    pictures = np.random.default_rng(0).integers(0, 256, (6, *shape), np.uint8)
    (action,) = session.run(["action"], {"observation": pictures.astype(np.float32)})
    assert action.tolist() == policy.predict(pictures, deterministic=True)[0].tolist()


def test_export_onnx_model_clips_continuous_actions(tmp_path):
    policy = randomise(FeedForwardPolicy(SIZE, GaussianHead(2)), 1, 3.0)
    policy.space_adapter = SpaceAdapter(Box(-1, 1, (2, 2)), Box(np.float32([-0.1, -0.2]), np.float32([0.3, 0.4])))
    export_onnx(policy, tmp_path / "p.onnx")
    observation = np.random.default_rng(0).normal(size=(50, SIZE)).astype(np.float32)
    mean, action = open_session(tmp_path / "p.onnx").run(["mean", "action"], {"observation": observation})
    np.testing.assert_allclose(action, mean.clip([-0.1, -0.2], [0.3, 0.4]), rtol=1e-6)
    assert (action != mean).any()


def test_export_onnx_writes_a_valid_file_with_its_metadata(tmp_path):
    policy = POLICIES["mlp"]()
    policy.metadata = {"task": "cartpole", "return": 1.5}
    export_onnx(policy, tmp_path / "p.onnx")
    model = onnx.load(tmp_path / "p.onnx")
    assert model.opset_import[0].version >= 17
    assert {p.key: p.value for p in model.metadata_props} == {"task": "cartpole", "return": json.dumps(1.5)}


def test_export_onnx_does_not_write_a_model_that_differs_from_the_policy(tmp_path, monkeypatch):
    policy = randomise(POLICIES["GRU"](), 1, 0.5)
    other = randomise(POLICIES["GRU"](), 2, 0.5)
    build_onnx_model = onnx_files.build_onnx_model
    monkeypatch.setattr(onnx_files, "build_onnx_model", lambda policy, metadata: build_onnx_model(other, metadata))
    with pytest.raises(DataError, match="the outputs of the ONNX file differ from the policy's by"):
        export_onnx(policy, tmp_path / "p.onnx")
    assert list(tmp_path.iterdir()) == []


def test_max_onnx_difference_notices_a_small_difference(tmp_path):
    policy = POLICIES["mlp"]()
    model = onnx_files.build_onnx_model(policy, {}).SerializeToString()
    policy.network[-1].bias.data[0] += 1e-4
    with pytest.raises(DataError):
        onnx_files.max_onnx_difference(policy, model)


def test_export_onnx_explains_missing_packages_in_one_sentence(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "onnxruntime", None)
        assert export_onnx(POLICIES["mlp"](), tmp_path / "unchecked.onnx") is None
    assert open_session(tmp_path / "unchecked.onnx")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UsageError, match=r"pip install 'aggrevated\[onnx\]'"):
        export_onnx(POLICIES["mlp"](), tmp_path / "p.onnx")
    assert not (tmp_path / "p.onnx").exists()
