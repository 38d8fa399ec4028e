"""Policies as files: the loaded policy equals the saved one, and invalid files are refused in one sentence."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete
from safetensors.torch import save

from aggrevated import DataError, StorageError, UsageError, load_policy, storage
from aggrevated.core.spaces import SpaceAdapter
from aggrevated.policies.convolutional import ConvolutionalPolicy
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead, GaussianHead
from aggrevated.policies.mixture import MixturePolicy
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.policies.window import WindowPolicy
from aggrevated.storage import digest_tensors, load_checksummed, save_checksummed
from helpers.tiny_mdp import randomise

SIZE = 4
A = 3


def make_mixture(newest):
    policy = MixturePolicy(newest, CategoricalHead(A))
    for shares in ([1.0], [0.7, 0.3]):
        randomise(policy, len(shares), 0.3)
        policy.renew(np.array(shares))
    return policy


def with_action_scale(policy):
    policy.head.init_action_scale(np.array([10.0, 0.0, -3.0], np.float32), np.array([5.0, 0.01, 1.0], np.float32))
    return policy


POLICIES = {
    "mlp": lambda: FeedForwardPolicy(SIZE, CategoricalHead(A), (8, 5)),
    "linear": lambda: FeedForwardPolicy(SIZE, CategoricalHead(A), ()),
    "Gaussian": lambda: FeedForwardPolicy(SIZE, GaussianHead(A, low=np.array([-1, -2, -0.1]), high=0.2)),
    "action scale": lambda: with_action_scale(FeedForwardPolicy(SIZE, GaussianHead(A))),
    "unbounded": lambda: FeedForwardPolicy(SIZE, GaussianHead(A)),
    "window": lambda: WindowPolicy(SIZE, CategoricalHead(A), (6,), width=3),
    "LSTM": lambda: RecurrentPolicy(SIZE, CategoricalHead(A), 5),
    "GRU": lambda: RecurrentPolicy(SIZE, GaussianHead(A, low=-0.1, high=0.1), 5, "gru"),
    "mixture": lambda: make_mixture(FeedForwardPolicy(SIZE, CategoricalHead(A))),
    "mixture of LSTMs": lambda: make_mixture(RecurrentPolicy(SIZE, CategoricalHead(A), 3)),
}


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    """Return the path of a valid policy file."""
    POLICIES["mlp"]().save(tmp_path / "p.safetensors")
    return tmp_path / "p.safetensors"


def load_error_message(path: Path) -> str:
    """Return the sentence with which a file is refused."""
    with pytest.raises(DataError) as caught:
        load_policy(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("make", POLICIES.values(), ids=POLICIES)
def test_load_policy_restores_a_policy_that_acts_as_saved(make, tmp_path):
    policy = randomise(make(), 3, 0.5)
    policy.save(tmp_path / "p.safetensors", {"task": "none"})
    loaded = load_policy(tmp_path / "p.safetensors")
    assert type(loaded) is type(policy) and loaded.metadata == {"task": "none"} and loaded.space_adapter is None
    assert digest_tensors(loaded.state_dict()) == digest_tensors(policy.state_dict())
    observations = np.random.default_rng(0).normal(size=(5, 7, SIZE))
    states = [None, None]
    for batch in observations:
        acted = [p.predict(batch, s, deterministic=True) for p, s in zip((policy, loaded), states, strict=True)]
        states = [state for _, state in acted]
        np.testing.assert_array_equal(acted[0][0], acted[1][0])
        np.testing.assert_array_equal(*states)
    assert all(p.requires_grad and p.device.type == "cpu" for p in loaded.parameters())


def test_policy_metadata_is_computed_once_and_only_on_demand(tmp_path):
    calls = []
    policy = POLICIES["mlp"]()
    assert policy.metadata == {}
    policy.metadata = lambda: calls.append(1) or {"task": "mine"}
    assert calls == []
    policy.save(tmp_path / "p.safetensors")
    policy.save(tmp_path / "p.safetensors")
    assert load_policy(tmp_path / "p.safetensors").metadata == policy.metadata == {"task": "mine"} and calls == [1]


def test_load_policy_result_can_be_trained_and_saved_again(policy_file, tmp_path):
    loaded = load_policy(policy_file)
    loss = -loaded(torch.zeros(1, 1, SIZE), torch.ones(1, 1, dtype=torch.bool)).log_prob(torch.zeros(1, 1)).sum()
    loss.backward()
    torch.optim.SGD(loaded.parameters(), 0.1).step()
    loaded.save(tmp_path / "again.safetensors")
    assert digest_tensors(load_policy(tmp_path / "again.safetensors").state_dict()) == digest_tensors(
        loaded.state_dict()
    )
    assert digest_tensors(load_policy(policy_file).state_dict()) != digest_tensors(
        loaded.state_dict()
    )  # the first file is unchanged


def test_load_policy_with_a_space_adapter_acts_in_the_environments_form(tmp_path):
    space = Dict({"place": Box(-1, 1, (2,)), "room": Discrete(3)})
    space_adapter = SpaceAdapter(
        space, MultiDiscrete([2, 3]), (0, 1, 4), np.array([0.5, 0, 0], np.float32), np.array([2, 1, 1], np.float32)
    )
    policy = randomise(FeedForwardPolicy(3, CategoricalHead(6)), 1, 1.0)
    policy.space_adapter = space_adapter
    policy.save(tmp_path / "p.safetensors")
    loaded = load_policy(tmp_path / "p.safetensors")
    assert loaded.space_adapter.to_dict() == space_adapter.to_dict()
    one = {"place": np.array([0.3, -0.2], np.float32), "room": 2}
    action, _ = loaded.predict(one, deterministic=True)
    logits, _ = policy.actor().parameters(np.array([[-0.1, -0.2, 1.0]], np.float32), np.zeros((1, 0), np.float32))
    assert action.tolist() == [*divmod(int(logits.argmax()), 3)]
    both = {"place": np.stack([one["place"], [0.9, 0.9]]), "room": np.array([2, 0])}
    actions, _ = loaded.predict(both, deterministic=True)
    assert actions.shape == (2, 2) and actions[0].tolist() == action.tolist()
    with pytest.raises(UsageError, match="pass one that the environment returned"):
        loaded.predict({"place": np.zeros(2)})


def test_load_policy_restores_an_image_policy(tmp_path):
    policy = randomise(ConvolutionalPolicy((12, 9, 3), CategoricalHead(A), (8,)), 1, 0.1)
    policy.space_adapter = SpaceAdapter(Box(0, 255, (12, 9, 3), np.uint8), Discrete(A))
    policy.save(tmp_path / "p.safetensors")
    pictures = np.random.default_rng(0).integers(0, 256, (6, 12, 9, 3), np.uint8)
    acted = [one.predict(pictures, deterministic=True)[0] for one in (policy, load_policy(tmp_path / "p.safetensors"))]
    np.testing.assert_array_equal(*acted)


def test_policy_predict_clips_continuous_actions_and_keeps_their_dtype(tmp_path):
    space_adapter = SpaceAdapter(Box(-1, 1, (2, 2)), Box(-0.01, 0.01, (3, 1), np.float64))
    policy = randomise(FeedForwardPolicy(SIZE, GaussianHead(A)), 1, 3.0)
    policy.space_adapter = space_adapter
    action, _ = policy.predict(np.ones((2, 2), np.float32), deterministic=True)
    assert action.shape == (3, 1) and action.dtype == np.float64 and np.abs(action).max() <= 0.01


@pytest.mark.parametrize(
    "space_adapter",
    [
        SpaceAdapter(Box(-1, 1, (5,)), Discrete(A)),
        SpaceAdapter(Box(-1, 1, (SIZE,)), Discrete(2)),
        SpaceAdapter(Box(-1, 1, (SIZE,)), Box(-1, 1, (A,))),
    ],
)
def test_policy_save_and_load_refuse_a_space_adapter_that_does_not_fit(space_adapter, policy_file, tmp_path):
    policy = POLICIES["mlp"]()
    policy.space_adapter = space_adapter
    with pytest.raises(UsageError, match="this policy cannot be saved"):
        policy.save(tmp_path / "other.safetensors")
    weights, facts = load_checksummed(policy_file)
    save_checksummed(policy_file, weights, facts | {"space_adapter": space_adapter.to_dict()})
    assert "environment" in load_error_message(policy_file)


def test_policy_save_refuses_user_defined_classes(tmp_path):
    class Mine(FeedForwardPolicy):
        """Subclass of a builtin class."""

    class Head(CategoricalHead):
        """Another subclass of a builtin class."""

    for policy in (Mine(SIZE, CategoricalHead(A)), FeedForwardPolicy(SIZE, Head(A))):
        with pytest.raises(UsageError, match="of a class of your own"):
            policy.save(tmp_path / "p.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_policy_save_refuses_non_finite_weights(tmp_path):
    policy = POLICIES["mlp"]()
    with torch.no_grad():
        policy.network[0].bias[0] = torch.nan
    with pytest.raises(UsageError, match="not finite"):
        policy.save(tmp_path / "p.safetensors")


def test_parser_policy_save_explains_that_it_has_no_file(tmp_path):
    from aggrevated.parsing.learners.kernel import KernelPolicy

    with pytest.raises(UsageError, match="a KernelPolicy cannot be saved as a file: keep its run folder"):
        KernelPolicy.__new__(KernelPolicy).save(tmp_path / "p.safetensors")


CHANGES = {
    "no kind": lambda f: f["policy"].pop("kind"),
    "unknown kind": lambda f: f["policy"].update(kind="os.system"),
    "unknown head": lambda f: f["head"].update(kind="nonsense"),
    "another size": lambda f: f["policy"]["shape"].update(observations=5),
    "huge": lambda f: f["policy"]["shape"].update(observations=10**9, hidden=[10**9, 10**6]),
    "larger than any": lambda f: f["policy"]["shape"].update(hidden=[2**62]),
    "a huge picture": lambda f: f["policy"].update(kind="cnn", shape={"observations": [30000] * 3, "hidden": []}),
    "a negative picture": lambda f: f["policy"].update(kind="cnn", shape={"observations": [-9, -9], "hidden": []}),
    "negative": lambda f: f["policy"]["shape"].update(hidden=[-8, 5]),
    "texts": lambda f: f["policy"]["shape"].update(hidden="ab"),
    "too many layers": lambda f: f["policy"]["shape"].update(hidden=[1] * 5000),
    "shape is a list": lambda f: f["policy"].update(shape=[]),
    "policy is null": lambda f: f.update(policy=None),
    "another head": lambda f: f["head"].update(kind="gaussian", shape={"size": A, "low": [0, ""], "high": [1, ""]}),
    "actions": lambda f: f["head"].update(shape={"actions": 10**15}),
    "space_adapter": lambda f: f.update(space_adapter={"columns": [1]}),
    "card": lambda f: f.update(card=3),
    "no card": lambda f: f.pop("card"),
    "a mixture": lambda f: f["policy"].update(kind="mixture"),
    "a mixture of mixtures": lambda f: f["policy"].update(kind="mixture", shape={"of": "mixture"}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_load_policy_refuses_changed_metadata_with_a_valid_checksum(change, policy_file):
    weights, facts = load_checksummed(policy_file)
    change(facts)
    save_checksummed(policy_file, weights, facts)
    load_error_message(policy_file)


@pytest.mark.parametrize("change", ["missing", "more", "reshaped", "double", "nan"])
def test_load_policy_refuses_changed_weights_with_a_valid_checksum(change, policy_file):
    weights, facts = load_checksummed(policy_file)
    name, weight = next(iter(weights.items()))
    others = {n: w for n, w in weights.items() if n != name}
    changed = {
        "missing": {},
        "more": {name: weight, "more": weight.clone()},
        "reshaped": {name: weight[None]},
        "double": {name: weight.double()},
        "nan": {name: weight * torch.nan},
    }
    save_checksummed(policy_file, others | changed[change], facts)
    load_error_message(policy_file)


def test_load_policy_refuses_mixture_shares_that_do_not_fit_its_members(tmp_path):
    path = tmp_path / "p.safetensors"
    POLICIES["mixture"]().save(path)
    weights, facts = load_checksummed(path)
    for name, changed in (("shares", torch.ones(7).double() / 7), ("older", weights["older"][:, :3].clone())):
        save_checksummed(path, weights | {name: changed}, facts)
        assert "numbers of policies and shares differ" in load_error_message(path)


def test_load_policy_refuses_a_file_with_any_changed_bit(policy_file):
    intact = policy_file.read_bytes()
    for position in np.random.default_rng(0).integers(len(intact), size=60):
        broken = bytearray(intact)
        broken[position] ^= 1 << int(position % 8)
        policy_file.write_bytes(broken)
        load_error_message(policy_file)
    for length in (0, 7, 100, len(intact) - 1):
        policy_file.write_bytes(intact[:length])
        load_error_message(policy_file)


def test_load_policy_refuses_files_that_are_not_policies(tmp_path):
    path = tmp_path / "p.safetensors"
    path.write_bytes(save({"weight": torch.ones(2)}))
    load_error_message(path)
    save_checksummed(path, {}, {"so_far": {}})
    assert f"'aggrevated export {tmp_path}'" in load_error_message(path)
    save_checksummed(path, {}, {})
    assert "pass a file that policy.save wrote" in load_error_message(path)
    with pytest.raises(StorageError):
        load_policy(tmp_path / "nothing.safetensors")


def test_load_policy_imports_no_training_code(policy_file):
    code = (
        "import sys, json, time\nimport torch\nbegan = time.perf_counter()\nimport aggrevated\n"
        f"policy = aggrevated.load_policy({str(policy_file)!r})\npolicy.predict([0.0] * 4)\n"
        "took = time.perf_counter() - began\n"
        "print(json.dumps([took, sorted({n.split('.')[1] for n in sys.modules if n.startswith('aggrevated.')})]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    took, modules = json.loads(done.stdout)
    training = {
        "algorithm",
        "updates",
        "losses",
        "oracles",
        "training",
        "config",
        "tasks",
        "problems",
        "simulators",
        "cli",
    }
    assert not set(modules) & training and "policies" in modules
    assert took < 10  # seconds; 0.5 without other load


def test_load_policy_reads_gaussian_files_without_an_action_scale(tmp_path: Path) -> None:
    """Such a file has neither center nor unit."""
    policy = randomise(FeedForwardPolicy(SIZE, GaussianHead(A)), 1, 3.0)
    policy.save(tmp_path / "p.safetensors")
    weights, facts = storage.load_checksummed(tmp_path / "p.safetensors")
    storage.save_checksummed(
        tmp_path / "old.safetensors",
        {n: w for n, w in weights.items() if not n.startswith("head.") or "log" in n},
        facts,
    )
    seen = np.ones(SIZE, np.float32)
    np.testing.assert_array_equal(
        load_policy(tmp_path / "old.safetensors").predict(seen, deterministic=True)[0],
        policy.predict(seen, deterministic=True)[0],
    )
