"""Doors and keys against a plain loop and a plain search that share no code with the simulator."""

from collections import deque

import numpy as np
import pytest

from aggrevated_experiments.where_it_pays.experts.breadth_first import BreadthFirst
from aggrevated_experiments.where_it_pays.simulators.keys import (
    CARRIED,
    CELLS,
    COLOURS,
    COMPASS,
    DOOR,
    GOAL,
    KEY,
    OF_COLOUR,
    OPENED,
    POSITION,
    VIEW_RADIUS,
    WINDOW,
    Keys,
    MaskedKeys,
)

MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))
SIMULATORS = [Keys(60, 5, 0), Keys(60, 5, 3), Keys(60, 6, 1), Keys(60, 9, 2), Keys(60, 11, 3)]
every_grid = pytest.mark.parametrize("simulator", SIMULATORS, ids=lambda one: f"{one.size} with {one.doors} doors")


class PlainKeys:
    """One episode, with coordinates and sets."""

    def __init__(self, state, side):
        def place(cell):
            return divmod(int(cell), side)

        self.walls = {place(cell) for cell in np.flatnonzero(state[CELLS:])}
        self.doors = {place(state[DOOR + c]): c for c in range(COLOURS) if state[DOOR + c] >= 0}
        self.keys = {place(state[KEY + c]): c for c in range(COLOURS) if state[KEY + c] >= 0}
        self.goal = place(state[GOAL])
        self.here = place(state[POSITION])
        self.carried = frozenset(c for c in range(COLOURS) if state[CARRIED] >> c & 1)

    def after(self, here, carried, action):
        there = here[0] + MOVES[action][0], here[1] + MOVES[action][1]
        if there in self.walls or self.doors.get(there, -1) not in {-1, *carried}:
            return here, carried
        return there, carried | ({self.keys[there]} if there in self.keys else set())

    def steps_to_go(self, here, carried):
        """Search forward from this state alone."""
        steps = {(here, carried): 0}
        queue = deque([(here, carried)])
        while queue:
            now = queue.popleft()
            if now[0] == self.goal:
                return steps[now]
            for action in range(4):
                following = self.after(*now, action)
                if following not in steps:
                    steps[following] = steps[now] + 1
                    queue.append(following)
        return None


def collect_states(simulator, episodes=12, steps=25, greedy=0.5):
    """Return states of episodes whose actions are partly the expert's and partly random."""
    generator = np.random.default_rng(0)
    expert = BreadthFirst(simulator)
    state = simulator.reset(np.arange(episodes, dtype=np.uint64))
    found = []
    for _ in range(steps):
        found.append(state)
        random = generator.integers(4, size=len(state))
        action = np.where(generator.random(len(state)) < greedy, expert.act(state, 0), random)
        state, _, done = simulator.step(state, action)
        state = state[~done]
    return np.concatenate(found)


@every_grid
def test_keys_layouts_have_doors_keys_and_a_way_to_the_goal(simulator):
    for state in simulator.reset(np.arange(60, dtype=np.uint64)):
        plain = PlainKeys(state, simulator.side)
        things = [plain.here, plain.goal, *plain.keys]
        assert len(set(things)) == len(things) and not set(things) & (plain.walls | set(plain.doors))
        assert len(plain.doors) == len(plain.keys) == simulator.doors or simulator.size == 5
        assert set(plain.doors.values()) == set(plain.keys.values())
        assert 0 < plain.steps_to_go(plain.here, frozenset()) <= 20 * simulator.size
        if plain.doors:  # the goal cannot be reached without a key
            plain.keys = {}
            assert plain.steps_to_go(plain.here, frozenset()) is None


def test_keys_layouts_differ_and_are_deterministic_per_seed():
    simulator = Keys(60, 8, 2)
    seeds = np.arange(50, dtype=np.uint64)
    states = simulator.reset(seeds)
    assert len(np.unique(states[:, GOAL:], axis=0)) == 50
    np.testing.assert_array_equal(states[7:9], simulator.reset(seeds[7:9]))


@every_grid
def test_keys_step_equals_plain_implementation(simulator):
    states = collect_states(simulator)
    for action in range(4):
        following, cost, done = simulator.step(states, np.full(len(states), action))
        assert (cost == 1).all()
        np.testing.assert_array_equal(following[:, GOAL:], states[:, GOAL:])
        for before, after, ended in zip(states, following, done, strict=True):
            plain = PlainKeys(before, simulator.side)
            reached = PlainKeys(after, simulator.side)
            assert (reached.here, reached.carried) == plain.after(plain.here, plain.carried, action)
            assert ended == (reached.here == plain.goal)
            stood_in = [1 << c for cell, c in plain.doors.items() if cell == reached.here]
            assert after[OPENED] == before[OPENED] | sum(stood_in)


@every_grid
def test_breadth_first_q_equals_search_from_each_state(simulator):
    states = collect_states(simulator, episodes=6)
    for state, costs in zip(states, BreadthFirst(simulator).q(states), strict=True):
        plain = PlainKeys(state, simulator.side)
        ways = [plain.after(plain.here, plain.carried, action) for action in range(4)]
        assert costs.tolist() == [1 + plain.steps_to_go(*way) for way in ways]


@every_grid
def test_breadth_first_q_satisfies_bellman_equation(simulator):
    """Q*(s, a) = 1 + min Q*(s', ·), and 1 where the step reaches the goal."""
    states = collect_states(simulator, episodes=40)
    expert = BreadthFirst(simulator)
    q = expert.q(states)
    for action in range(4):
        following, cost, done = simulator.step(states, np.full(len(states), action))
        np.testing.assert_array_equal(q[:, action], cost + np.where(done, 0, expert.q(following).min(axis=1)))


def test_breadth_first_q_of_a_state_does_not_depend_on_the_batch():
    """The search covers consecutive states of one episode at once; shuffled states are searched one by one."""
    simulator = Keys(60, 8, 2)
    states = collect_states(simulator)
    expert = BreadthFirst(simulator)
    order = np.random.default_rng(1).permutation(len(states))
    np.testing.assert_array_equal(expert.q(states)[order], expert.q(states[order]))
    np.testing.assert_array_equal(expert.q(states)[3:4], expert.q(states[3:4]))


def test_breadth_first_expert_reaches_the_goal_in_predicted_steps():
    simulator = Keys(100, 8, 3)
    state = simulator.reset(np.arange(30, dtype=np.uint64))
    expert = BreadthFirst(simulator)
    predicted = expert.q(state).min(axis=1)
    live = np.arange(30)
    taken = np.zeros(30)
    while len(live):
        state, cost, done = simulator.step(state, expert.act(state, 0))
        taken[live] += cost
        live = live[~done]
        state = state[~done]
    np.testing.assert_array_equal(taken, predicted)


@every_grid
def test_masked_keys_action_mask_allows_only_real_moves(simulator):
    states = collect_states(simulator, episodes=40)
    legal = MaskedKeys(simulator.horizon, simulator.size, simulator.doors).action_mask(states)
    for state, mask in zip(states, legal, strict=True):
        plain = PlainKeys(state, simulator.side)
        assert mask.tolist() == [plain.after(plain.here, plain.carried, a)[0] != plain.here for a in range(4)]
    best = BreadthFirst(simulator).act(states, 0)
    assert np.take_along_axis(legal, best[:, None], axis=1).all()  # the expert's actions are legal


def test_keys_observation_has_window_compass_and_doors():
    simulator = Keys(60, 8, 2)
    states = collect_states(simulator)
    for state, seen in zip(states, simulator.observe(states), strict=True):
        plain = PlainKeys(state, simulator.side)
        y, x = plain.here
        locked = {cell for cell, colour in plain.doors.items() if colour not in plain.carried}
        around = range(-VIEW_RADIUS, VIEW_RADIUS + 1)
        assert seen[:WINDOW].tolist() == [(y + i, x + j) in plain.walls | locked for i in around for j in around]
        offset = np.array(plain.goal) - (y, x)
        expected = np.concatenate([offset / simulator.size, np.sign(offset)])
        np.testing.assert_allclose(seen[WINDOW : WINDOW + COMPASS], expected, rtol=1e-6)
        for door, colour in plain.doors.items():
            own = seen[WINDOW + COMPASS + colour * OF_COLOUR :][:OF_COLOUR]
            carried = colour in plain.carried
            assert own[:3].tolist() == [not carried, carried, bool(state[OPENED] >> colour & 1)]
            assert carried == (not own[3 : 3 + COMPASS].any())
            np.testing.assert_allclose(own[3 + COMPASS : 5 + COMPASS], (np.array(door) - (y, x)) / 8, rtol=1e-6)
