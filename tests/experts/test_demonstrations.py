"""Demonstrations: reading, errors, and behavior clones."""

import io
import re
import sys
import zipfile
from types import SimpleNamespace

import cloudpickle
import numpy as np
import pytest

from aggrevated.core.errors import DataError, UsageError
from aggrevated.core.spaces import SpaceAdapter
from aggrevated.experts.adapters import as_expert, get_expert_capability
from aggrevated.experts.behavior_clone import fit_behavior_clone
from aggrevated.experts.demonstrations import Demonstrations, demonstrations_from_list, read_demonstrations
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from helpers.line_simulator import HOMEWARDS, STATES, Grid, Line


def record_homeward_episodes(count=12, steps=6):
    """Return episodes on the line that go home: (observations including the last, actions, rewards)."""
    env = Line()
    episodes = []
    for seed in range(count):
        visited = [env.reset(seed=seed)[0]]
        actions = []
        rewards = []
        for _ in range(steps):
            actions.append(1 - int(np.sign(visited[-1][0])))
            observation, reward, *_ = env.step(actions[-1])
            visited.append(observation)
            rewards.append(reward)
        episodes.append((np.array(visited), np.array(actions), np.array(rewards)))
    return episodes


def concatenate_episodes(episodes):
    """Return the episodes as arrays of an .npz file."""
    parts = {
        "observations": [observations[: len(actions)] for observations, actions, _ in episodes],
        "actions": [actions for _, actions, _ in episodes],
        "rewards": [rewards for *_, rewards in episodes],
        "ends": [np.arange(len(actions)) == len(actions) - 1 for _, actions, _ in episodes],
    }
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


def test_behavior_clone_acts_as_demonstrated(simulator):
    clone = as_expert(record_homeward_episodes(), simulator)
    states = simulator.reset(np.arange(40, dtype=np.uint64))
    np.testing.assert_array_equal(clone.act(states, 0), 1 - np.sign(simulator.observe(states)[:, 0]))
    assert get_expert_capability(clone) == "act" and len(clone.networks) == 1
    assert re.fullmatch(
        r"a clone of 12 recorded episodes, 72 steps with a mean return of -[\d.]+: it chooses as recorded in 100.0% of "
        r"6 held-out steps",
        clone.description,
    )
    trajectories = roll_in(simulator, RollInPolicy(clone, None, 1.0), np.arange(6, dtype=np.uint64))
    start = np.abs(trajectories.observations[:, 0, 0])
    np.testing.assert_array_equal(trajectories.returns, -start * (start + 1) / 2)


def test_fit_behavior_clone_is_reproducible_by_seed(simulator):
    recorded = demonstrations_from_list(record_homeward_episodes(4))
    first, repeated, other = (fit_behavior_clone(recorded, simulator, seed=seed) for seed in (0, 0, 1))
    for one, two, three in zip(first.network.weights, repeated.network.weights, other.network.weights, strict=True):
        np.testing.assert_array_equal(one, two)
        assert not np.array_equal(one, three)
    unpickled = cloudpickle.loads(cloudpickle.dumps(first))
    states = simulator.reset(np.arange(9, dtype=np.uint64))
    np.testing.assert_array_equal(unpickled.act(states, 0), first.act(states, 0))


def test_behavior_clone_fits_continuous_actions(push_simulator):
    generator = np.random.default_rng(0)
    places = generator.uniform(-5, 5, (10, 30))
    episodes = [(np.stack([x, np.abs(x)], 1).astype(np.float32), np.clip(-x / 4, -1, 1)[:, None]) for x in places]
    clone = as_expert(episodes, push_simulator)
    states = push_simulator.reset(np.arange(20, dtype=np.uint64))
    expected = np.clip(-push_simulator.observe(states)[:, :1] / 4, -1, 1)
    np.testing.assert_allclose(clone.act(states, 0), expected, atol=0.1)
    share = float(re.search(r"explains ([\d.]+)% of the variance of the actions in 30 held-out", clone.description)[1])
    assert share > 98 and "return" not in clone.description


def test_behavior_clone_fits_a_single_step(simulator, monkeypatch):
    monkeypatch.setattr("aggrevated.experts.behavior_clone.MAX_STEPS", 300)
    clone = as_expert([(np.array([[1.0, 1.0]]), [2])], simulator)
    assert set(clone.act(simulator.reset(np.arange(3, dtype=np.uint64)), 0)) == {2}


@pytest.mark.parametrize(
    "renamed",
    [
        {},
        {"observations": "obs", "actions": "acts", "rewards": "rews", "ends": "dones"},
        {"ends": "terminals"},
        {"ends": "timeouts"},
    ],
)
def test_read_demonstrations_accepts_alternative_array_names(tmp_path, renamed, simulator):
    arrays = concatenate_episodes(record_homeward_episodes(3))
    np.savez(tmp_path / "demos.npz", **{renamed.get(name, name): array for name, array in arrays.items()})
    found = read_demonstrations(tmp_path / "demos.npz")
    assert (found.episodes, found.steps) == (3, 18)
    assert found.mean_return == pytest.approx(arrays["rewards"].sum() / 3)
    np.testing.assert_array_equal(found.episode, np.repeat(np.arange(3), 6))


def test_read_demonstrations_accepts_episode_starts(tmp_path):
    arrays = concatenate_episodes(record_homeward_episodes(3))
    starts = np.roll(arrays.pop("ends"), 1)
    np.savez_compressed(tmp_path / "demos.npz", episode_starts=starts, infos=np.array("text"), **arrays)
    assert read_demonstrations(str(tmp_path / "demos.npz")).episodes == 3


def test_as_expert_clones_a_demonstration_file(tmp_path, simulator, states, places):
    np.savez(tmp_path / "demos.npz", **concatenate_episodes(record_homeward_episodes()))
    clone = as_expert(tmp_path / "demos.npz", simulator, "somebody")
    assert clone.name == "somebody"
    np.testing.assert_array_equal(clone.act(states, 0), 1 - np.sign(places))


def test_demonstrations_support_dict_observations_and_multi_discrete_actions(tmp_path):
    grid = Grid()
    lamps = (STATES.sum(axis=1) > 0).astype(int)
    arrays = {"observations/lamp": lamps, "observations/place": STATES}
    np.savez(tmp_path / "grid.npz", **arrays, actions=HOMEWARDS, ends=[0, 0, 1])
    found = read_demonstrations(tmp_path / "grid.npz")
    np.testing.assert_array_equal(found.convert_observations(grid.space_adapter), grid.observe(STATES))
    np.testing.assert_array_equal(
        grid.space_adapter.to_native_actions(found.convert_actions(grid.space_adapter)), HOMEWARDS
    )
    list_of_dicts = [{"lamp": lamp, "place": place} for lamp, place in zip(lamps, STATES, strict=True)]
    for observations in (list_of_dicts, {"lamp": lamps, "place": STATES}):
        listed = demonstrations_from_list([(observations, HOMEWARDS)])
        np.testing.assert_array_equal(listed.convert_observations(grid.space_adapter), grid.observe(STATES))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"actions": None}, "are ends, observations, rewards; give observations [N, ...], actions"),
        ({"ends": None}, "are actions, observations, rewards; give"),
        ({"ends": np.ones(3, bool)}, "have ends of shape (3,) for 18 actions; give one for each"),
        ({"rewards": np.full(18, np.nan)}, "have rewards that are not finite at step 0; leave that episode out"),
        ({"observations": np.zeros((17, 2))}, "have observations of shape (17, 2) for 18 actions"),
        ({"actions": np.zeros((0,), int)}, "have no actions; record at least one step"),
        ({"ends": np.zeros((18, 1), bool)}, "are not of the right shape"),
        ({"dones": np.zeros((18, 1), bool)}, "where episodes end in arrays of different shapes; give ends alone"),
    ],
)
def test_read_demonstrations_refuses_malformed_files(tmp_path, change, words):
    arrays = {
        name: array
        for name, array in (concatenate_episodes(record_homeward_episodes(3)) | change).items()
        if array is not None
    }
    np.savez(tmp_path / "demos.npz", **arrays)
    with pytest.raises(DataError, match=re.escape(words)):
        read_demonstrations(tmp_path / "demos.npz")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"actions": np.full(18, 3)}, "have actions that are not in Discrete(3)"),
        ({"actions": np.full(18, 0.5)}, "an action is not a whole number"),
        ({"actions": np.zeros((18, 2), int)}, "have actions of shape (2,), but the environment's are of Discrete(3)"),
        ({"observations": np.zeros((18, 3))}, "have observations of shape (3,), but the environment's are of Box"),
        ({"observations": None, "observations/x": np.zeros((18, 2))}, "have no observations, but observations/x"),
    ],
)
def test_as_expert_refuses_demonstrations_of_another_environment(tmp_path, simulator, change, words):
    arrays = {
        name: array
        for name, array in (concatenate_episodes(record_homeward_episodes(3)) | change).items()
        if array is not None
    }
    np.savez(tmp_path / "demos.npz", **arrays)
    with pytest.raises(DataError, match=re.escape(words)):
        as_expert(tmp_path / "demos.npz", simulator)


@pytest.mark.parametrize(
    ("episodes", "error", "words"),
    [
        ([], UsageError, "are empty"),
        ([np.zeros(3)], UsageError, "episode 0 of the demonstrations is not (observations, actions)"),
        ([(np.zeros((2, 2)), [])], DataError, "episode 0 of the demonstrations has no actions"),
        ([(np.zeros((4, 2)), [1, 1])], DataError, "has 2 actions and observations of shape (4, 2)"),
        ([(np.zeros((1, 2)), [1], [0.0]), (np.zeros((1, 2)), [1])], DataError, "rewards for 1 of 2 episodes"),
        ([(np.zeros((1, 2)), [1]), (np.zeros((1, 3)), [1])], DataError, "have different shapes or keys"),
        ([([[1, 2], [3]], [1, 1])], DataError, "the observations of episode 0 of the demonstrations are not an array"),
        ([(np.array([["a", "b"]]), [1])], DataError, "have observations of type <U1; give numbers"),
    ],
)
def test_demonstrations_from_list_refuses_malformed_lists(episodes, error, words):
    with pytest.raises(error, match=re.escape(words)):
        demonstrations_from_list(episodes)


def test_read_demonstrations_neither_runs_pickles_nor_trusts_headers(tmp_path):
    """Pickled arrays are ignored, and declared sizes are checked before memory is allocated."""

    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("it was run",))

    np.savez(tmp_path / "pickled.npz", observations=np.array([Trap()], object), actions=[1], ends=[True])
    with pytest.raises(DataError, match="are actions, ends; give"):
        read_demonstrations(tmp_path / "pickled.npz")
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"shape": (10**12,), "fortran_order": False, "descr": "<f8"})
    with zipfile.ZipFile(tmp_path / "large.npz", "w") as archive:
        archive.writestr("actions.npy", header.getvalue())
    with pytest.raises(
        DataError, match=r"its actions.npy does not have the size that its header declares\); save it again with numpy"
    ):
        read_demonstrations(tmp_path / "large.npz")
    (tmp_path / "text.npz").write_text("no zip")
    with pytest.raises(DataError, match=r"is not an \.npz file of demonstrations"):
        read_demonstrations(tmp_path / "text.npz")


def test_read_demonstrations_reads_column_major_arrays(tmp_path):
    arrays = concatenate_episodes(record_homeward_episodes(2))
    np.savez(tmp_path / "demos.npz", **arrays | {"observations": np.asfortranarray(arrays["observations"])})
    np.testing.assert_array_equal(read_demonstrations(tmp_path / "demos.npz").observations[""], arrays["observations"])


def test_as_expert_clones_a_minari_dataset(monkeypatch, simulator, states, places):
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(UsageError, match="needs Minari; run: pip install"):
        as_expert("minari:line/expert-v0", simulator)
    episodes = [SimpleNamespace(observations=o, actions=a, rewards=r) for o, a, r in record_homeward_episodes()]
    requested = []

    def load_dataset(name):
        requested.append(name)
        if name != "line/expert-v0":
            raise FileNotFoundError("not here")
        return SimpleNamespace(iterate_episodes=lambda: iter(episodes))

    monkeypatch.setitem(sys.modules, "minari", SimpleNamespace(load_dataset=load_dataset))
    clone = as_expert("minari:line/expert-v0", simulator)
    assert requested == ["line/expert-v0"] and "12 recorded episodes" in clone.description
    np.testing.assert_array_equal(clone.act(states, 0), 1 - np.sign(places))
    with pytest.raises(
        DataError, match=r"cannot read the Minari dataset other \(not here\); run: minari download other"
    ):
        read_demonstrations("minari:other")


def test_demonstrations_keep_image_observations():
    from gymnasium.spaces import Box, Discrete

    pictures = np.random.default_rng(0).integers(0, 256, (3, 8, 9), np.uint8)
    space_adapter = SpaceAdapter(Box(0, 255, (8, 9), np.uint8), Discrete(2))
    recorded = Demonstrations(pictures, np.array([0, 1, 0]), np.array([False, False, True]))
    np.testing.assert_array_equal(recorded.convert_observations(space_adapter), pictures.astype(np.float32))
