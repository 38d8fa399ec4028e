"""MuJoCo simulators against Gymnasium's environments, and their snapshots, bit for bit.

The long form is `AGGREVATED_SNAPSHOTS=1000 python -m pytest -s tests/simulators/test_mujoco.py -k snapshots`.
"""

import hashlib
import os
import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from aggrevated.cli import main
from aggrevated.core.errors import UsageError
from aggrevated.core.hardware import THREADS_VARIABLE, count_cores
from aggrevated.simulators.mujoco import ROBOTS, MuJoCo

mujoco = pytest.importorskip("mujoco")

SNAPSHOTS = int(os.environ.get("AGGREVATED_SNAPSHOTS", "20"))
STEPS = 100
SEEDS = np.array([0, 1, 2, 12345, 2**32 + 7, 2**63 + 11], dtype=np.uint64)
every_robot = pytest.mark.parametrize("name", ROBOTS)


def make_gymnasium_environment(name):
    """Return Gymnasium's environment without its wrappers."""
    return gymnasium.make(ROBOTS[name].environment, disable_env_checker=True).unwrapped


def sample_actions(simulator, *shape, seed=0, dtype=np.float32):
    """Return actions [*shape, A], uniform over the action space."""
    space = simulator.action_space
    drawn = np.random.default_rng(seed).uniform(space.low, space.high, (*shape, *space.shape))
    return drawn.astype(dtype)


def make_states_and_actions(simulator, count=12, steps=8):
    """Return states after some random steps, and actions to take there."""
    state = simulator.reset(np.arange(count, dtype=np.uint64))
    for action in sample_actions(simulator, steps, count, seed=1):
        state, _, _ = simulator.step(state, action)
    return state, sample_actions(simulator, count, seed=2)


@every_robot
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mujoco_simulator_steps_match_gymnasium_bit_for_bit(name, dtype):
    """Steps from six resets agree, also after the end of an episode."""
    simulator = MuJoCo(name, threads=1)
    env = make_gymnasium_environment(name)
    actions = sample_actions(simulator, len(SEEDS), STEPS, dtype=dtype)
    state = simulator.reset(SEEDS)
    ended = []
    costs = []
    observed = [simulator.observe_exactly(state)]
    for t in range(STEPS):
        state, cost, done = simulator.step(state, actions[:, t])
        observed.append(simulator.observe_exactly(state))
        costs.append(cost)
        ended.append(done)
    for i, seed in enumerate(SEEDS):
        observation, _ = env.reset(seed=int(seed))
        np.testing.assert_array_equal(observed[0][i], observation)
        for t in range(STEPS):
            observation, reward, terminated, _, _ = env.step(actions[i, t])
            np.testing.assert_array_equal(observed[t + 1][i], observation)
            assert (costs[t][i], ended[t][i]) == (-reward, terminated), (seed, t)
    assert np.any(ended) == (ROBOTS[name].healthy is not None) and not np.all(ended)
    assert len(np.unique(costs)) > 100 or name == "inverted-pendulum"  # the inverted pendulum pays 1 a step
    np.testing.assert_array_equal(simulator.observe(state), observed[-1].astype(np.float32))


@every_robot
def test_mujoco_simulator_has_gymnasium_spaces_and_the_papers_horizon(name):
    simulator = MuJoCo(name)
    env = make_gymnasium_environment(name)
    assert simulator.action_space == env.action_space
    assert simulator.observation_space.shape == env.observation_space.shape
    assert simulator.horizon == 100


def test_mujoco_simulator_clips_velocities_of_hopper_and_walker_at_10():
    for name, fastest in {"hopper": 10.0, "walker": 10.0, "half-cheetah": 30.0}.items():
        simulator = MuJoCo(name)
        env = make_gymnasium_environment(name)
        state = simulator.reset(np.array([0]))
        _, velocities = simulator.physics.split_state(state)
        velocities[:] = np.where(np.arange(velocities.shape[1]) % 2, 30.0, -30.0)
        env.reset(seed=0)
        env.set_state(env.data.qpos, velocities[0])
        np.testing.assert_array_equal(simulator.observe_exactly(state)[0], env._get_obs())
        assert np.abs(simulator.observe_exactly(state)).max() == fastest


def record_uninterrupted(name, count, seed=0):
    """Return snapshots [n, S], actions [n, STEPS, A], and the states [STEPS, n, S], costs and ends that follow.

    Gymnasium's environment runs without interruption, each time from another seed. Its state is read at a random moment
    and is never set.
    """
    simulator = MuJoCo(name, threads=1)
    env = make_gymnasium_environment(name)
    generator = np.random.default_rng(seed)
    physics = simulator.physics
    before = generator.integers(STEPS, size=count)
    actions = sample_actions(simulator, count, STEPS, seed=seed)
    states = np.empty((STEPS + 1, count, physics.size))
    costs = np.empty((STEPS, count))
    ends = np.empty((STEPS, count), bool)
    for i in range(count):
        env.reset(seed=i)
        for action in sample_actions(simulator, before[i], seed=i):
            env.step(action)
        mujoco.mj_getState(env.model, env.data, states[0, i], physics.whole)
        for t in range(STEPS):
            _, reward, ends[t, i], _, _ = env.step(actions[i, t])
            costs[t, i] = -reward
            mujoco.mj_getState(env.model, env.data, states[t + 1, i], physics.whole)
    return states[0], actions, (states[1:], costs, ends)


def run_from_snapshots(name, snapshots, actions):
    """Return the states, costs and ends that follow the snapshots."""
    simulator = MuJoCo(name)
    state = snapshots
    steps = []
    for t in range(STEPS):
        state, cost, done = simulator.step(state, actions[:, t])
        steps.append((state, cost, done))
    return tuple(np.stack(part) for part in zip(*steps, strict=True))


def digest_bytes(arrays):
    """Return the SHA-256 of the bytes of the arrays."""
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()


FRESH = """
import sys
import numpy as np
from test_mujoco import ROBOTS, digest_bytes, run_from_snapshots

with np.load(sys.argv[1]) as file:
    for name in ROBOTS:
        print(name, digest_bytes(run_from_snapshots(name, file[f"{name} snapshots"], file[f"{name} actions"])))
"""


@pytest.mark.timeout(1800)
def test_mujoco_snapshots_continue_bit_for_bit_here_and_in_a_fresh_process(tmp_path):
    """The 100 steps after a snapshot equal those of an uninterrupted simulation, in this process and in a new one."""
    given = {}
    lines = []
    for name in ROBOTS:
        snapshots, actions, expected = record_uninterrupted(name, SNAPSHOTS)
        assert len(np.unique(snapshots, axis=0)) == SNAPSHOTS
        here = run_from_snapshots(name, snapshots, actions)
        for found, ran_through in zip(here, expected, strict=True):
            np.testing.assert_array_equal(found, ran_through, err_msg=name)
        given |= {f"{name} snapshots": snapshots, f"{name} actions": actions}
        lines.append(f"{name} {digest_bytes(here)}")
    np.savez(tmp_path / "snapshots.npz", **given)
    fresh = subprocess.run(
        [sys.executable, "-c", FRESH, tmp_path / "snapshots.npz"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert fresh.stdout.splitlines() == lines, fresh.stderr
    print(
        f"{SNAPSHOTS} snapshots of each of {len(ROBOTS)} robots, {STEPS} steps, here and in a fresh process: same bits"
    )


@pytest.mark.parametrize("name", ["hopper", "walker"])
def test_mujoco_snapshot_without_its_warm_start_drifts(name):
    """The snapshot test above can fail: without the warm start the last digits drift."""
    simulator = MuJoCo(name)
    state, _ = make_states_and_actions(simulator)
    physics = simulator.physics
    cold = state.copy()
    cold[:, 1 + physics.model.nq + physics.model.nv :] = 0.0
    for action in sample_actions(simulator, 20, len(state), seed=3):
        state = simulator.step(state, action)[0]
        cold = simulator.step(cold, action)[0]
    positions = physics.split_state(state)[0]
    others = physics.split_state(cold)[0]
    assert 0 < np.abs(positions - others).max() < 1e-6


@every_robot
def test_mujoco_simulator_results_do_not_depend_on_threads_or_batch_splits(name):
    state, action = make_states_and_actions(MuJoCo(name, threads=1))
    expected = MuJoCo(name, threads=1).step(state, action)
    for threads in (2, 3):
        simulator = MuJoCo(name, threads=threads)
        for cuts in ([], [1], [5, 6], [2, 3, 11], range(1, 12)):
            parts = zip(np.split(state, cuts), np.split(action, cuts), strict=True)
            found = [simulator.step(*part) for part in parts]
            for all_of_them, *pieces in zip(expected, *found, strict=True):
                np.testing.assert_array_equal(np.concatenate(pieces), all_of_them)


def test_mujoco_simulator_refuses_zero_threads():
    with pytest.raises(UsageError, match="hopper cannot be stepped by 0 threads; pass threads=1 or more"):
        MuJoCo("hopper", threads=0)


@every_robot
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("value", [1e12, -1e200, np.inf, np.nan])
def test_mujoco_simulator_divergence_costs_nan_and_ends_the_episode(name, threads, value, monkeypatch, tmp_path):
    """The other trajectories do not change in that step nor in the next, and MuJoCo writes no log file."""
    monkeypatch.chdir(tmp_path)
    simulator = MuJoCo(name, threads=threads)
    state, action = make_states_and_actions(simulator)
    expected = simulator.step(state, action)
    for part in simulator.physics.split_state(state):
        broken = state.copy()
        at = part.__array_interface__["data"][0] - state.__array_interface__["data"][0]
        broken[[0, 5], at // state.itemsize] = value
        following, cost, done = simulator.step(broken, action)
        assert np.isnan(cost[[0, 5]]).all() and done[[0, 5]].all()
        others = np.setdiff1d(np.arange(len(state)), [0, 5])
        for found, alone in zip((following, cost, done), expected, strict=True):
            np.testing.assert_array_equal(found[others], alone[others])
    for found, alone in zip(simulator.step(state, action), expected, strict=True):
        np.testing.assert_array_equal(found, alone)
    assert list(tmp_path.iterdir()) == []


@every_robot
def test_mujoco_simulator_clips_actions_to_the_box(name):
    simulator = MuJoCo(name)
    state, _ = make_states_and_actions(simulator)
    wild = 5 * sample_actions(simulator, len(state), seed=2)
    clipped = np.clip(wild, simulator.action_space.low, simulator.action_space.high)
    assert (wild != clipped).any(axis=0).all() and (wild == clipped).any()
    copy = wild.copy()
    for found, expected in zip(simulator.step(state, wild), simulator.step(state, clipped), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(wild, copy)


@pytest.mark.parametrize("package", ["mujoco", "imageio"])
def test_mujoco_simulator_reports_a_missing_package_in_one_sentence(package, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    sentence = "this task needs MuJoCo: pip install 'aggrevated[mujoco]'"
    with pytest.raises(UsageError) as error:
        MuJoCo("hopper").reset(SEEDS)
    assert str(error.value) == sentence
    with pytest.raises(SystemExit) as ended:
        main(["train", "hopper"])
    assert ended.value.code == 2 and sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_mujoco_simulator_reports_a_missing_renderer_in_one_sentence():
    script = "from aggrevated.simulators.mujoco import MuJoCo; MuJoCo('hopper').physics"
    found = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | {"MUJOCO_GL": "nonsense"}, capture_output=True, text=True
    )
    assert found.returncode == 1
    last = found.stderr.strip().splitlines()[-1]
    assert last.endswith(
        "MuJoCo cannot use MUJOCO_GL=nonsense; unset it, or install that renderer (Debian: libegl1, libosmesa6)"
    )


def test_mujoco_simulator_refuses_an_unknown_robot():
    with pytest.raises(UsageError, match="unknown robot 'ant'; choose one of hopper, walker"):
        MuJoCo("ant")


@pytest.mark.parametrize("given", ["0", "-1", "two", "1.5"])
def test_mujoco_simulator_refuses_an_invalid_threads_variable(given, monkeypatch):
    monkeypatch.setenv(THREADS_VARIABLE, given)
    with pytest.raises(UsageError, match=r"^AGGREVATED_THREADS is '.+', but must be a whole number of at least 1$"):
        MuJoCo("hopper")


def test_mujoco_simulator_takes_threads_from_the_variable_or_one_per_core(monkeypatch):
    monkeypatch.setenv(THREADS_VARIABLE, "3")
    assert MuJoCo("hopper").threads == 3
    monkeypatch.setenv(THREADS_VARIABLE, "")
    assert MuJoCo("hopper").threads == count_cores() == len(os.sched_getaffinity(0))
