"""Gymnasium environments of every kind: spaces, action masks, randomness, seeds and restoring of states."""

import pickle
import time

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import RescaleAction, StickyAction, TimeLimit

from aggrevated.core.errors import UsageError, UserCodeError
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.oracles.monte_carlo import MonteCarloOracle
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.simulators import find_action_mask, find_reseedable
from aggrevated.simulators.gymnasium import GymnasiumSimulator
from aggrevated.simulators.gymnasium import determinism as proof_module
from aggrevated.simulators.gymnasium.states import MOST_BRANCHES, ActionHistory, HistoryPosition

SEEDS = np.array([1, 2, 3], np.uint64)


class Line(gymnasium.Env):
    """A position on the line; subclasses choose the observation, the motion and the info."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = int(self.np_random.integers(3))
        return self.make_observation(), self.make_info()

    def step(self, action):
        self.place += self.motion(action)
        return self.make_observation(), -1.0, False, False, self.make_info()

    def make_observation(self):
        return np.array([self.place], np.float32)

    def motion(self, action):
        return int(action)

    def make_info(self):
        return {}


def make_line_class(**parts):
    """Make a subclass of `Line` with other parts."""
    return type("Lined", (Line,), parts)


def observe_first_and_next(kind, action=1):
    simulator = GymnasiumSimulator(kind, 5)
    states = simulator.reset(SEEDS)
    following = simulator.step(states, np.full(3, action))[0]
    return simulator, simulator.observe(states), simulator.observe(following)


DICT = spaces.Dict({"a": spaces.Discrete(40), "b": spaces.Tuple([spaces.MultiBinary(2), spaces.Box(-9, 99, (2, 1))])})


@pytest.mark.parametrize(
    ("space", "make_observation", "size", "column"),
    [
        (spaces.Discrete(40, start=-1), lambda self: self.place, 40, None),
        (spaces.MultiDiscrete([40, 2]), lambda self: [self.place, 1], 42, None),
        (spaces.MultiBinary(40), lambda self: np.eye(40, dtype=np.int8)[self.place], 40, None),
        (DICT, lambda self: {"a": self.place, "b": ([0, 1], [[self.place], [0.5]])}, 44, 42),
        (spaces.Box(-99, 99, ()), lambda self: float(self.place), 1, 0),
        (spaces.Box(-99, 99, (1, 2), np.float64), lambda self: [[self.place, 0]], 2, 0),
        (spaces.Box(0, 99, (1,), np.int64), lambda self: [np.int8(self.place)], 1, 0),
    ],
    ids=["discrete", "multi-discrete", "multi-binary", "dict of tuple", "number", "list", "integers"],
)
def test_gymnasium_simulator_turns_every_observation_space_into_vectors(space, make_observation, size, column):
    simulator, before, after = observe_first_and_next(
        make_line_class(observation_space=space, make_observation=make_observation)
    )
    assert simulator.observation_space.shape == (size,) and before.shape == (3, size) and before.dtype == np.float32
    places = before[:, column] if column is not None else before[:, :40].argmax(axis=1)
    moved = after[:, column] if column is not None else after[:, :40].argmax(axis=1)
    np.testing.assert_array_equal(moved - places, 1)


def test_gymnasium_simulator_keeps_image_observations():
    space = spaces.Box(0, 255, (9, 8, 3), np.uint8)
    buffer = np.zeros((9, 8, 3), np.uint8)

    def make_observation(self):
        buffer[:] = self.place
        return buffer  # the same array for all of them

    _, before, after = observe_first_and_next(
        make_line_class(observation_space=space, make_observation=make_observation)
    )
    assert before.shape == (3, 9, 8, 3) and before.dtype == np.float32
    np.testing.assert_array_equal(after - before, 1)
    with pytest.raises(UsageError, match="GrayscaleObservation and ResizeObservation"):
        GymnasiumSimulator(make_line_class(observation_space=spaces.Box(0, 255, (200, 200, 3), np.uint8)), 5)


@pytest.mark.parametrize(
    ("space", "taken"),
    [
        (spaces.MultiDiscrete([2, 3]), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]),
        (spaces.MultiBinary(2), [(0, 0), (0, 1), (1, 0), (1, 1)]),
        (spaces.MultiDiscrete([2, 2], start=[5, 7]), [(5, 7), (5, 8), (6, 7), (6, 8)]),
    ],
)
def test_gymnasium_simulator_enumerates_combinations_of_choices(space, taken):
    def motion(self, action):
        assert self.action_space.contains(action)
        return 10 * int(action[0]) + int(action[1])

    simulator = GymnasiumSimulator(make_line_class(action_space=space, motion=motion), 5)
    assert simulator.action_space == spaces.Discrete(len(taken))
    states = np.repeat(simulator.reset(SEEDS[:1]), len(taken))
    following = simulator.step(states, np.arange(len(taken)))[0]
    moves = simulator.observe(following)[:, 0] - simulator.observe(states)[:, 0]
    np.testing.assert_array_equal(moves, [10 * a + b for a, b in taken])


@pytest.mark.parametrize(
    ("space", "mask", "legal"),
    [
        (spaces.Discrete(3), np.array([1, 0, 1], np.int8), [True, False, True]),
        (spaces.MultiDiscrete([2, 2]), ([1, 0], [1, 1]), [True, True, False, False]),
        (spaces.MultiDiscrete([2, 2]), [True, False, False, True], [True, False, False, True]),
    ],
)
def test_find_action_mask_reads_the_mask_from_info(space, mask, legal):
    def motion(self, action):
        number = (
            int(np.ravel_multi_index(np.ravel(action), (2, 2))) if isinstance(space, spaces.MultiDiscrete) else action
        )
        assert legal[number] or self.place % 2, "an illegal action"
        return 1

    def make_info(self):
        return {} if self.place % 2 else {"action_mask": mask}  # odd positions have no mask: all actions are legal

    simulator = GymnasiumSimulator(make_line_class(action_space=space, motion=motion, make_info=make_info), 6)
    rules = find_action_mask(simulator)
    states = simulator.reset(np.arange(20, dtype=np.uint64))
    odd = simulator.observe(states)[:, 0] % 2 == 1
    assert odd.any() and not odd.all()
    np.testing.assert_array_equal(rules.action_mask(states), np.where(odd[:, None], True, legal))
    again = pickle.loads(pickle.dumps(states))
    np.testing.assert_array_equal(rules.action_mask(again), rules.action_mask(states))


class Masked(Line):
    """An environment with action masks in a method; at even positions action 1 is illegal."""

    def action_masks(self):
        return np.array([True, self.place % 2 == 1])


class MaskInObservation(Line):
    observation_space = spaces.Dict({"place": spaces.Box(-99, 99, (1,)), "action_mask": spaces.MultiBinary(2)})

    def make_observation(self):
        return {"place": super().make_observation(), "action_mask": np.array([1, self.place % 2], np.int8)}


def test_find_action_mask_finds_masks_in_methods_and_observations():
    for make, place in ((Masked, 0), (MaskInObservation, 2), (lambda: gymnasium.wrappers.Autoreset(Masked()), 0)):
        simulator = GymnasiumSimulator(make, 6)
        states = simulator.reset(np.arange(20, dtype=np.uint64))
        odd = simulator.observe(states)[:, place] % 2 == 1
        assert odd.any() and not odd.all()
        np.testing.assert_array_equal(find_action_mask(simulator).action_mask(states)[:, 1], odd)


def test_gymnasium_simulator_refuses_a_mask_of_a_wrong_size_and_needs_none():
    assert find_action_mask(GymnasiumSimulator(Line, 5)) is None
    with pytest.raises(UserCodeError, match=r"action_mask of shape \(3,\).*return 2 booleans"):
        GymnasiumSimulator(make_line_class(make_info=lambda self: {"action_mask": np.ones(3)}), 5)


@pytest.mark.parametrize(
    ("make_observation", "words"),
    [
        (lambda self: {"b": ([0, 1], np.zeros((2, 1)))}, "not in its space .KeyError: 'a'"),
        (lambda self: {"a": 77, "b": ([0, 1], np.zeros((2, 1)))}, "not in its space .IndexError"),
        (lambda self: {"a": 1, "b": ([0, 1], np.zeros((3, 1)))}, r"of shape \(45,\)"),
        (lambda self: {"a": 1, "b": ([0, 1], np.full((2, 1), np.nan))}, r"not finite .number 42 is nan"),
    ],
)
def test_gymnasium_simulator_reports_observations_outside_their_space(make_observation, words):
    with pytest.raises(UserCodeError, match=words):
        GymnasiumSimulator(make_line_class(observation_space=DICT, make_observation=make_observation), 5)


@pytest.mark.parametrize(
    ("environment", "words", "chance"),
    [
        ("CartPole-v1", "by setting state, steps_beyond_terminated", False),
        ("FrozenLake-v1", "by setting s, lastaction", True),
        ("Blackjack-v1", "by setting player, dealer", True),
        ("Pendulum-v1", "by setting state, last_u", False),
        ("InvertedPendulum-v5", "by MuJoCo's own state", False),
        (
            lambda: RescaleAction(gymnasium.make("Pendulum-v1"), np.float32(-1), np.float32(1)),
            "by setting state",
            False,
        ),
        (lambda: StickyAction(gymnasium.make("Pendulum-v1"), 0.5), "by replaying", True),
        (lambda: gymnasium.make("FrozenLake-v1", is_slippery=False), "by setting s", False),
        (Line, "by replaying", False),
    ],
)
def test_gymnasium_simulator_finds_the_best_exact_restorer_and_randomness(environment, words, chance):
    simulator = GymnasiumSimulator(environment, 30)
    notes = " | ".join(simulator.notes)
    assert words in notes and "a check found this exact" in notes
    assert (find_reseedable(simulator) is not None) == chance == ("it is stochastic" in notes)
    assert f"{simulator.proof_steps:,} steps" in notes and simulator.proof_steps > 0
    assert (simulator.replayed_steps() > 0) == ("replaying" in words)


@pytest.mark.parametrize("replays", [False, True])
def test_gymnasium_simulator_reseed_changes_outcomes_and_is_repeatable(replays):
    def slippery():
        env = gymnasium.make("FrozenLake-v1")
        return gymnasium.wrappers.TransformReward(env, lambda reward: reward) if replays else env

    simulator = GymnasiumSimulator(slippery, 40)
    assert any("replaying" in sentence for sentence in simulator.notes) == replays
    start = np.repeat(simulator.reset(SEEDS[:1]), 30)
    states = simulator.step(start, np.zeros(30, int))[0]
    np.testing.assert_array_equal(
        simulator.step(states, np.ones(30, int))[0][:1], simulator.step(states, np.ones(30, int))[0][1:2]
    )
    lucky = simulator.reseed(states, np.arange(30, dtype=np.uint64))
    np.testing.assert_array_equal(simulator.observe(lucky), simulator.observe(states))
    once, again = (simulator.observe(simulator.step(lucky, np.ones(30, int))[0]) for _ in range(2))
    np.testing.assert_array_equal(once, again)
    assert len(np.unique(once, axis=0)) == 3  # down, or a slip to either side
    sent = pickle.loads(pickle.dumps(lucky))
    simulator.close()
    np.testing.assert_array_equal(simulator.observe(simulator.step(sent, np.ones(30, int))[0]), once)


def test_monte_carlo_oracle_repeats_rollouts_only_in_random_environments():
    class Right:
        name = "right"

        def act(self, states, t):
            return np.full(len(states), 2)

    simulator = GymnasiumSimulator("FrozenLake-v1", 20)
    found = roll_in(simulator, RollInPolicy(Right(), None, 1.0), derive_seeds(0, SeedPurpose.ROLL_IN, 1, 4))
    one, several = (MonteCarloOracle(simulator, Right(), rollouts=n, all_actions=True)(found) for n in (1, 5))
    assert several.simulator_steps > 3 * one.simulator_steps
    with pytest.raises(UsageError, match="is deterministic"):
        MonteCarloOracle(GymnasiumSimulator("CartPole-v1"), Right(), rollouts=2)


class Restorable(Line):
    """An environment with `save_state` and `restore_state`."""

    restores_last = True

    def step(self, action):
        self.last = [*getattr(self, "last", []), int(action)][-2:]
        return super().step(action)

    def reset(self, *, seed=None, options=None):
        self.last = []
        return super().reset(seed=seed)

    def motion(self, action):
        return sum(self.last)

    def save_state(self):
        return {"place": self.place, "last": self.last}

    def restore_state(self, state):
        self.place = state["place"]
        if self.restores_last:
            self.last = state["last"]


def test_gymnasium_simulator_uses_the_environments_save_state_if_exact():
    assert "by its own save_state and restore_state" in " ".join(GymnasiumSimulator(Restorable, 30).notes)
    forgetful = GymnasiumSimulator(type("Forgetful", (Restorable,), {"restores_last": False}), 30)
    notes = " ".join(forgetful.notes)
    assert "save_state and restore_state: a check found this inexact" in notes and "by replaying" in notes


class SmallSeeds(Line):
    """Seeds are limited to 31 bits."""

    def reset(self, *, seed=None, options=None):
        if seed is not None and seed >= 2**31:
            raise OverflowError("too large")
        return super().reset(seed=seed)


class Seedless(Line):
    def reset(self):
        self.place = int(self.np_random.integers(1000))
        return self.make_observation(), {}


def test_gymnasium_simulator_supports_small_seeds_and_seedless_resets():
    small = GymnasiumSimulator(SmallSeeds, 5)
    assert "modulo 2**31" in " ".join(small.notes)
    one, other = small.observe(small.reset(np.array([7, 7 + 2**31], np.uint64)))
    assert one == other
    seedless = GymnasiumSimulator(Seedless, 5)
    assert "np_random is replaced" in " ".join(seedless.notes)
    assert len(np.unique(seedless.observe(seedless.reset(np.arange(5, dtype=np.uint64))))) == 5


def test_gymnasium_simulator_remakes_an_environment_from_its_spec():
    env = gymnasium.make("MountainCar-v0", max_episode_steps=33)
    simulator = GymnasiumSimulator(env)
    assert (simulator.name, simulator.horizon) == ("MountainCar-v0", 33)
    assert pickle.loads(pickle.dumps(simulator)).horizon == 33
    with pytest.raises(UsageError, match="a function that makes a new one"):
        GymnasiumSimulator(Line())


def test_gymnasium_simulator_horizon_is_the_time_limit_or_1000():
    assert GymnasiumSimulator(lambda: TimeLimit(Line(), 7)).horizon == 7
    unlimited = GymnasiumSimulator(Line)
    assert unlimited.horizon == 1000 and "cut after 1,000 steps" in unlimited.notes[0]


def test_gymnasium_simulator_proves_slow_environments_briefly_or_refuses(monkeypatch):
    class Slow(Line):
        def step(self, action):
            time.sleep(0.01)
            return super().step(action)

    monkeypatch.setattr(proof_module, "LONG", 0.05)
    few = GymnasiumSimulator(Slow, 50)
    assert 0 < few.proof_steps < GymnasiumSimulator(Line, 50).proof_steps
    monkeypatch.setattr(proof_module, "TOO_LONG", 0.03)
    with pytest.raises(UsageError, match=r"too slow to learn in: 2 resets and \d steps took \d+ seconds"):
        GymnasiumSimulator(Slow, 50)


def test_gymnasium_simulator_fingerprint_tells_environments_apart():
    same, again = (GymnasiumSimulator("CartPole-v1", h).fingerprint() for h in (50, 60))
    heavier = GymnasiumSimulator(lambda: lengthen_pole(gymnasium.make("CartPole-v1"))).fingerprint()
    assert all(np.array_equal(same[name], again[name]) for name in same)
    assert not np.array_equal(same["observations"], heavier["observations"])


def lengthen_pole(env):
    env.unwrapped.length *= 1.1
    return env


@pytest.mark.parametrize("environment", ["CartPole-v1", "LunarLander-v3"])
def test_gymnasium_simulator_pictures_match_the_environments_rendering(environment):
    pytest.importorskip("pygame")
    simulator = GymnasiumSimulator(environment, 20)
    states = []
    state = simulator.reset(SEEDS[:1])
    reference = gymnasium.make(environment, render_mode="rgb_array")
    reference.reset(seed=1)
    expected = []
    for _ in range(6):
        states.append(state)
        expected.append(reference.render())
        state, _, _ = simulator.step(state, np.array([1]))
        reference.step(1)
    before = simulator.replayed_steps()
    drawn = simulator.pictures(np.concatenate(states))
    assert simulator.replayed_steps() == before
    assert len({picture.tobytes() for picture in expected}) > 1
    for picture, wanted in zip(drawn, expected, strict=True):
        assert picture.dtype == np.uint8
        np.testing.assert_array_equal(picture, wanted)
    backwards = simulator.pictures(np.concatenate(states)[::-1])
    np.testing.assert_array_equal(backwards[::-1], drawn)


def test_gymnasium_simulator_pictures_of_an_episode_step_forward_once():
    steps = 0

    class Drawn(Line):
        def __init__(self, render_mode=None):
            self.render_mode = render_mode

        def step(self, action):
            nonlocal steps
            steps += 1
            return super().step(action)

        def render(self):
            return np.full((2, 2, 3), self.place, np.uint8)

    simulator = GymnasiumSimulator(Drawn, 20)
    states = []
    state = simulator.reset(SEEDS[:1])
    for _ in range(10):
        states.append(state)
        state = simulator.step(state, np.array([1]))[0]
    simulator.step(states[-1], np.array([0]))  # from another environment
    last = simulator.step(states[-1], np.array([1]))[0]  # on a branch, as in `watch`
    steps = 0
    drawn = simulator.pictures(np.concatenate([*states, last]))
    assert steps == 10
    np.testing.assert_array_equal(np.diff([picture[0, 0, 0] for picture in drawn]), 1)


def test_gymnasium_simulator_reports_environments_that_cannot_render():
    for kind, words in ((Line, "take render_mode"), (lambda render_mode=None: Line(), "no render_mode")):
        simulator = GymnasiumSimulator(kind, 5)
        with pytest.raises(UsageError, match=words):
            simulator.pictures(simulator.reset(SEEDS))


def test_gymnasium_states_share_one_history_and_limit_branches():
    simulator = GymnasiumSimulator(Line, 400)
    state = simulator.reset(SEEDS[:1])
    states = [state]
    for _ in range(300):
        state = simulator.step(state, np.array([1]))[0]
        states.append(state)
    episode = np.concatenate(states)
    assert len({id(spot.restore_point.history) for spot in episode}) == 1
    assert len(pickle.dumps(episode)) < 400 * len(episode)
    sent = pickle.loads(pickle.dumps(episode))
    np.testing.assert_array_equal(sent, episode)
    simulator.step(sent[150:151], np.array([0]))  # can be continued from
    place = HistoryPosition(ActionHistory(3), 0)
    for t in range(100):
        place.append_action(0)
        place = place.append_action(t)  # every second time a branch
        assert place.history.branches <= MOST_BRANCHES
    assert place.collect_history() == ([*range(100)], {})
