"""Gymnasium environments as simulators: equal trajectories, exact branching, and rejection of inexact ones."""

import copy
import pickle
import random

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.wrappers import FlattenObservation, NormalizeObservation, TimeAwareObservation

from aggrevated.core.errors import DataError, UsageError
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.simulators import Simulator
from aggrevated.simulators.acrobot import Acrobot
from aggrevated.simulators.cartpole import CartPole
from aggrevated.simulators.gymnasium import GymnasiumSimulator


class Walk(gymnasium.Env):
    """A walk on the line with optional noise; subclasses add faults that the adapter must find, or other spaces."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Discrete(3, start=-1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = np.array([self.np_random.normal(), 0.0])
        self.t = 0
        return self.place.astype(np.float32), {}

    def noise(self):
        return self.np_random.normal()

    def step(self, action):
        self.t += 1
        self.place += [float(action), self.noise()]  # in place: an array that was set as state is changed here
        return self.place.astype(np.float32), -abs(self.place[0]), False, self.t == 60, {}


class GlobalNoise(Walk):
    def noise(self):
        return random.random()


class NoiseFromConstruction(Walk):
    def __init__(self):
        self.own = np.random.default_rng()

    def noise(self):
        return self.own.normal()


class DrawnAtConstruction(Walk):
    def __init__(self):
        self.goal = random.random()

    def noise(self):
        return self.goal


class SharedCounter(Walk):
    count = 0

    def noise(self):
        SharedCounter.count += 1
        return SharedCounter.count


class NoiseOnlyLate(Walk):
    def noise(self):
        return random.random() if self.t > 30 else 0.0


class NoisyReward(Walk):
    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, random.random(), *rest


class SmallSeeds(Walk):
    def reset(self, *, seed=None, options=None):
        np.random.RandomState(seed)
        return super().reset(seed=seed)


class Quiet(Walk):
    def noise(self):
        return 0.5


class LastAction(Quiet):
    """Every second step depends on the previous action, which `get_state` below does not include."""

    last = 0

    def step(self, action):
        observation, _, *rest = super().step(action)
        reward = -abs(self.last - action) * (self.t % 2 == 0)
        self.last = action
        return observation, reward, *rest


class DictObservations(Quiet):
    observation_space = spaces.Dict({"place": Walk.observation_space})

    def reset(self, *, seed=None, options=None):
        return {"place": super().reset(seed=seed)[0]}, {}

    def step(self, action):
        observation, *rest = super().step(action)
        return {"place": observation}, *rest


class Grid(Quiet):
    """Observations and actions with two axes."""

    observation_space = spaces.Box(-1e300, 1e300, (1, 2), np.float64)
    action_space = spaces.Box(np.array([[-1.0, -2.0]]), np.array([[1.0, 2.0]]), dtype=np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.place[None].copy(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.place = self.place + action[0]
        action *= 0.0  # an environment may change the array that it gets
        return self.place[None].copy(), 0.0, False, False, {}


def set_place(env, array):
    env.unwrapped.place = array[:2]
    env.unwrapped.t = int(array[2])


WITH_STATE = {"get_state": lambda env: np.array([*env.unwrapped.place, env.unwrapped.t]), "set_state": set_place}
CARTPOLE_STATE = {
    "get_state": lambda env: env.unwrapped.state,
    "set_state": lambda env, array: setattr(env.unwrapped, "state", array),
}


def make_random_actor(simulator):
    policy = FeedForwardPolicy(
        simulator.observation_space.shape[0],
        CategoricalHead(int(simulator.action_space.n)),
        generator=torch.Generator().manual_seed(1),
    )
    return policy.actor()


def collect_trajectories(simulator, count=8, iteration=0):
    return roll_in(
        simulator,
        RollInPolicy(None, make_random_actor(simulator)),
        derive_seeds(3, SeedPurpose.ROLL_IN, iteration, count),
    )


def assert_same_trajectories(one, other):
    for field in ("mask", "actions", "costs", "observations"):
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field), err_msg=field)


def step_along(simulator, state, actions):
    """Return the states, costs and ends after each of `actions` [t, n], starting from `state`."""
    outcomes = []
    for action in actions:
        state, cost, done = simulator.step(state, action)
        outcomes.append((state, cost, done))
    return outcomes


def assert_same_outcomes(one, other):
    for outcome, again in zip(one, other, strict=True):
        for array, repeated in zip(outcome, again, strict=True):
            np.testing.assert_array_equal(array, repeated)


@pytest.mark.parametrize(
    ("name", "native", "options"),
    [
        ("CartPole-v1", CartPole(), {}),
        ("CartPole-v1", CartPole(), CARTPOLE_STATE),
        ("Acrobot-v1", Acrobot(), {}),
    ],
    ids=["cartpole, replayed", "cartpole, set", "acrobot, replayed"],
)
def test_gymnasium_simulator_trajectories_match_native_simulators(name, native, options):
    adapted = GymnasiumSimulator(name, native.horizon, **options)
    assert isinstance(adapted, Simulator)
    assert adapted.observation_space == native.observation_space and adapted.action_space == native.action_space
    for iteration in range(2):  # the second roll-in reuses environments
        ours, theirs = (collect_trajectories(simulator, iteration=iteration) for simulator in (native, adapted))
        for field in ("mask", "actions", "costs"):
            np.testing.assert_array_equal(getattr(theirs, field), getattr(ours, field), err_msg=field)
        np.testing.assert_allclose(theirs.observations, ours.observations, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"live": 1}, CARTPOLE_STATE], ids=["replayed", "one live", "set"])
def test_gymnasium_simulator_branching_leaves_the_original_unchanged(options):
    simulator = GymnasiumSimulator("CartPole-v1", **options)
    rng = np.random.default_rng(0)
    start = simulator.reset(np.arange(4, dtype=np.uint64))
    actions = rng.integers(0, 2, (7, 4))
    middle = step_along(simulator, start, actions[:4])[-1][0]
    copy = middle.copy()
    original = step_along(simulator, middle, actions[4:])
    branch = step_along(simulator, middle, 1 - actions[4:])
    assert not np.array_equal(branch[-1][0], original[-1][0])
    assert_same_outcomes(step_along(simulator, middle, actions[4:]), original)
    assert_same_outcomes(step_along(simulator, start, actions)[4:], original)
    np.testing.assert_array_equal(middle, copy)


def test_gymnasium_simulator_steps_a_state_repeated_in_a_batch():
    simulator = GymnasiumSimulator("Acrobot-v1")
    state = step_along(simulator, simulator.reset(np.array([5])), np.array([[2], [2], [0]]))[-1][0]
    following, _, _ = simulator.step(np.repeat(state, 6, axis=0), np.array([0, 1, 2, 2, 1, 0]))
    np.testing.assert_array_equal(following[:3], following[:2:-1])
    assert len(np.unique(simulator.observe(following), axis=0)) == 3
    again = step_along(simulator, following, np.ones((2, 6), int))[-1][0]
    np.testing.assert_array_equal(again[:3], again[:2:-1])


@pytest.mark.parametrize("live", [1, 3])
def test_gymnasium_simulator_results_do_not_depend_on_the_cache_size(live):
    small, large = (GymnasiumSimulator("CartPole-v1", 60, live=size) for size in (live, 256))
    assert_same_trajectories(collect_trajectories(small), collect_trajectories(large))
    assert len(small._pool.standing) <= live and len(small._pool.standing) + len(small._pool.spare) <= live + 1


def test_gymnasium_simulator_going_forward_takes_one_environment_step_each():
    taken = 0

    class Counted(Quiet):
        def step(self, action):
            nonlocal taken
            taken += 1
            return super().step(action)

    simulator = GymnasiumSimulator(Counted, 40)
    for _ in range(2):
        taken = 0
        assert collect_trajectories(simulator).steps == taken == 8 * 40
        assert not simulator._pool.standing and len(simulator._pool.spare) == 8  # reused in the next roll-in


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda simulator: pickle.loads(pickle.dumps(simulator))])
def test_gymnasium_simulator_copy_does_not_reuse_copied_environments(duplicate):
    simulator = GymnasiumSimulator(Walk, 30)
    state = step_along(simulator, simulator.reset(np.arange(3)), np.ones((5, 3), int))[-1][0]
    other = duplicate(simulator)
    assert simulator._pool.standing and not other._pool.standing
    expected = simulator.step(state, np.zeros(3, int))
    simulator.close()
    for again in (other.step(state, np.zeros(3, int)), simulator.step(state, np.zeros(3, int))):
        assert_same_outcomes([again], [expected])


@pytest.mark.parametrize("options", [{}, WITH_STATE], ids=["replayed", "set"])
def test_gymnasium_simulator_truncated_episode_is_done_and_cannot_be_stepped(options):
    simulator = GymnasiumSimulator(Quiet, 100, **options)
    result = collect_trajectories(simulator, count=2)
    assert result.mask.shape == (2, 60) and result.mask.all()
    last, cost, done = simulator.step(result.states[:, -1], result.actions[:, -1])
    assert done.all() and (cost == result.costs[:, -1]).all()
    with pytest.raises(UsageError, match="an episode that has ended was stepped"):
        simulator.step(last, result.actions[:, -1])


def test_gymnasium_simulator_horizon_replaces_the_time_limit():
    assert GymnasiumSimulator("CartPole-v1").horizon == 500
    simulator = GymnasiumSimulator(lambda: TimeAwareObservation(gymnasium.make("Pendulum-v1")), 205)
    state = simulator.reset(np.array([7]))
    reference = gymnasium.make("Pendulum-v1", max_episode_steps=300)
    reference.reset(seed=7)
    for t in range(205):
        action = np.array([[np.sin(t)]], np.float32)
        state, cost, done = simulator.step(state, action)
        observation, reward, *_ = reference.step(action[0])
        assert not done[0] and cost[0] == -reward
        np.testing.assert_array_equal(simulator.observe(state)[0, :3], observation)
    with pytest.raises(UsageError, match="beyond its horizon"):
        simulator.step(state, action)


def test_gymnasium_simulator_discrete_actions_count_from_zero():
    simulator = GymnasiumSimulator(Quiet, 10)
    assert simulator.action_space == spaces.Discrete(3)
    state = np.repeat(simulator.reset(np.array([1])), 3, axis=0)
    moved = simulator.observe(simulator.step(state, np.arange(3))[0])[:, 0] - simulator.observe(state)[:, 0]
    np.testing.assert_allclose(moved, [-1, 0, 1], atol=1e-6)


def test_gymnasium_simulator_flattens_boxes_and_clips_actions():
    simulator = GymnasiumSimulator(Grid, 10, name="grid")
    assert simulator.name == "grid"
    assert simulator.observation_space.shape == simulator.action_space.shape == (2,)
    state = simulator.reset(np.array([1, 2]))
    outcomes = step_along(simulator, state, np.array([[[0.1, 5.0], [-3.0, 0.5]]] * 3))
    moved = simulator.observe(outcomes[-1][0]) - simulator.observe(state)
    np.testing.assert_allclose(moved, [[0.3, 6.0], [-3.0, 1.5]], rtol=1e-5)
    assert_same_outcomes(step_along(simulator, outcomes[0][0], np.array([[[0.1, 2.0], [-1.0, 0.5]]] * 2)), outcomes[1:])
    assert simulator.observe(state).dtype == np.float32


def test_gymnasium_simulator_snapshot_holds_get_state_and_sets_a_copy():
    simulator = GymnasiumSimulator(Quiet, 50, **WITH_STATE)
    state = simulator.reset(np.array([3, 4]))
    copy = state.copy()
    following, _, _ = simulator.step(state, np.array([2, 0]))
    np.testing.assert_array_equal(state, copy)
    before, after = (np.array(simulator.snapshot(states)) for states in (state, following))
    np.testing.assert_array_equal(after[:, 1:], [[0.5, 1], [0.5, 1]])
    np.testing.assert_allclose((after - before)[:, 0], [1, -1])
    snapshots = [value for states in (state, following) for value in simulator.snapshot(states)]
    for env in simulator._pool.spare:
        assert not any(np.shares_memory(env.unwrapped.place, value) for value in snapshots)


@pytest.mark.parametrize("seed", [0, 2**53 + 1, 2**64 - 1])
def test_gymnasium_simulator_uses_every_bit_of_a_seed(seed):
    simulator = GymnasiumSimulator(Walk, 10)
    reference = Walk()
    state = simulator.reset(np.array([seed], np.uint64))
    first = reference.reset(seed=seed)[0]
    np.testing.assert_array_equal(simulator.observe(state)[0], first)
    simulator.close()  # restored from the seed in the state
    following, cost, _ = simulator.step(state, np.array([2]))
    observation, reward, *_ = reference.step(1)
    np.testing.assert_array_equal(simulator.observe(following)[0], observation)
    assert cost[0] == -reward


@pytest.mark.parametrize(
    "environment",
    [
        GlobalNoise,
        NoiseFromConstruction,
        DrawnAtConstruction,
        SharedCounter,
        NoisyReward,
        lambda: NormalizeObservation(Quiet()),
    ],
)
def test_gymnasium_simulator_refuses_environments_that_are_not_repeatable(environment):
    with pytest.raises(DataError, match=r"hidden does not repeat itself exactly .* supply get_state and set_state"):
        GymnasiumSimulator(environment, 50, name="hidden")


@pytest.mark.parametrize(
    ("environment", "options"),
    [
        (Walk, WITH_STATE),  # its generator is not part of the state
        (LastAction, WITH_STATE),
        (DrawnAtConstruction, WITH_STATE),
        (Quiet, WITH_STATE | {"set_state": lambda env, array: None}),
        (Quiet, {"get_state": lambda env: env.unwrapped.place[:1], "set_state": lambda env, array: None}),
    ],
    ids=["no generator", "no last action", "no goal", "nothing set", "half a state"],
)
def test_gymnasium_simulator_refuses_an_incomplete_snapshot(environment, options):
    with pytest.raises(DataError, match="does not repeat itself exactly after set_state: let get_state return"):
        GymnasiumSimulator(environment, 50, **options)


def test_gymnasium_simulator_refuses_late_drift_when_it_occurs():
    simulator = GymnasiumSimulator(NoiseOnlyLate, 50)
    outcomes = step_along(simulator, simulator.reset(np.array([1])), np.ones((40, 1), int))
    simulator.step(outcomes[20][0], np.array([0]))
    with pytest.raises(DataError, match="NoiseOnlyLate does not repeat itself"):
        simulator.step(outcomes[35][0], np.array([0]))


def return_the_same_environment(env=Quiet()):  # noqa: B008
    return env


@pytest.mark.parametrize(
    ("environment", "horizon", "options", "message"),
    [
        ("NoSuchThing-v3", 9, {}, "Gymnasium cannot make 'NoSuchThing-v3'"),
        (Quiet, 0, {}, "needs a horizon"),
        (Quiet(), 9, {}, "a function that makes a new one"),
        (return_the_same_environment, 9, {}, "the same environment twice"),
        (Quiet, 9, {"get_state": lambda env: env.place}, "pass both or neither"),
        (Quiet, 9, {"live": 0}, "pass live=1 or more"),
    ],
)
def test_gymnasium_simulator_reports_unusable_arguments_in_one_sentence(environment, horizon, options, message):
    with pytest.raises(UsageError, match=message) as caught:
        GymnasiumSimulator(environment, horizon, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("environment", [DictObservations, lambda: FlattenObservation(DictObservations())])
def test_gymnasium_simulator_flattens_dict_observations(environment):
    simulator = GymnasiumSimulator(environment, 20)
    assert_same_trajectories(collect_trajectories(simulator), collect_trajectories(GymnasiumSimulator(Quiet, 20)))


def test_gymnasium_simulator_refuses_observations_of_a_wrong_shape():
    class Wide(Quiet):
        observation_space = spaces.Box(-1, 1, (3,), np.float32)

    with pytest.raises(DataError, match=r"Wide gave an observation of shape \(2,\) in step 0 .* of shape \(3,\)"):
        GymnasiumSimulator(Wide, 5)


class Halved(GymnasiumSimulator):
    """A user's subclass with an additional attribute."""

    def __init__(self, factor):
        self.factor = factor
        super().__init__("CartPole-v1", 30)

    def step(self, state, action):
        following, cost, done = super().step(state, action)
        return following, self.factor * cost, done


@pytest.mark.parametrize("own", [False, True])
def test_gymnasium_simulator_can_be_pickled_after_use(own):
    import cloudpickle

    simulator = Halved(0.5) if own else GymnasiumSimulator("CartPole-v1", 30, name="own", live=7)
    states = simulator.reset(np.arange(3, dtype=np.uint64))
    action = np.array([0, 1, 0])
    here = simulator.step(states, action)
    again = cloudpickle.loads(cloudpickle.dumps(simulator))
    assert type(again) is type(simulator) and (again.name, again.horizon) == (simulator.name, simulator.horizon)
    for a, b in zip(again.step(states, action), here, strict=True):
        np.testing.assert_array_equal(a, b)
