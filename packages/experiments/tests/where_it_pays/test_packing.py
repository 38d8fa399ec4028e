"""Bin packing against lists of bins, and the exact solver against brute force."""

from functools import cache

import numpy as np
import pytest

from aggrevated_experiments.where_it_pays.experts.exact_packing import (
    BestFit,
    ExactPacking,
    compute_lower_bound,
    count_first_fit_bins,
)
from aggrevated_experiments.where_it_pays.simulators.packing import (
    BINS,
    CAPACITY,
    ITEMS,
    MAX_ITEM,
    MIN_ITEM,
    PACKED,
    Packing,
)
from aggrevated_experiments.where_it_pays.tasks.packing import PackingProblem


def collect_states(simulator, episodes=20):
    """Return all states of episodes with random legal actions."""
    generator = np.random.default_rng(0)
    found = []
    state = simulator.reset(np.arange(episodes, dtype=np.uint64))
    for _ in range(simulator.items):
        found.append(state)
        drawn = np.where(simulator.action_mask(state), generator.random((len(state), CAPACITY)), -1.0)
        state, _, _ = simulator.step(state, drawn.argmax(axis=1))
    return np.concatenate(found)


def parse_state(state):
    """Return the rooms of all bins and the remaining items of a state."""
    rooms = [room for room in range(CAPACITY) for _ in range(state[BINS + room])]
    return rooms, tuple(int(item) for item in state[ITEMS + state[PACKED] :])


@cache
def pack_by_brute_force(rooms, items):
    """Return the fewest new bins, by trying every bin for every item in their order."""
    if not items:
        return 0
    item = items[0]
    rest = items[1:]
    into = [pack_by_brute_force(put_item(rooms, room, item), rest) for room in set(rooms) if room >= item]
    return min([*into, 1 + pack_by_brute_force(put_item((*rooms, CAPACITY), CAPACITY, item), rest)])


def put_item(rooms, room, item):
    left = list(rooms)
    left[left.index(room)] -= item
    return tuple(sorted(left))


@pytest.mark.parametrize("items", [1, 4, 9])
def test_exact_packing_q_equals_brute_force(items):
    simulator = Packing(items, items)
    states = collect_states(simulator)
    costs = ExactPacking(simulator).q(states)
    legal = simulator.action_mask(states)
    for state, q, fits in zip(states, costs, legal, strict=True):
        rooms, (item, *rest) = parse_state(state)
        assert fits.tolist() == [room >= item and (room == CAPACITY or room in rooms) for room in range(1, 11)]
        for room in range(1, CAPACITY + 1):
            new = room == CAPACITY
            if fits[room - 1]:
                there = put_item((*rooms, CAPACITY) if new else tuple(rooms), room, item)
                assert q[room - 1] == new + pack_by_brute_force(there, tuple(rest))
            else:
                assert q[room - 1] == items + 1


def test_exact_packing_q_satisfies_bellman_equation():
    simulator = Packing(14, 14)
    states = collect_states(simulator)
    expert = ExactPacking(simulator)
    q = expert.q(states)
    legal = simulator.action_mask(states)
    for action in range(CAPACITY):
        rows = np.flatnonzero(legal[:, action])
        following, cost, done = simulator.step(states[rows], np.full(len(rows), action))
        least = np.zeros(len(rows))
        least[~done] = expert.q(following[~done]).min(axis=1)
        np.testing.assert_array_equal(q[rows, action], cost + least)


def test_exact_packing_value_does_not_depend_on_item_order():
    simulator = Packing(13, 13)
    states = simulator.reset(np.arange(30, dtype=np.uint64))
    turned = states.copy()
    turned[:, ITEMS:] = turned[:, : ITEMS - 1 : -1]
    expert = ExactPacking(simulator)
    np.testing.assert_array_equal(expert.q(states).min(axis=1), expert.q(turned).min(axis=1))


def test_packing_step_fills_one_bin_and_counts_new_ones():
    simulator = Packing(9, 9)
    states = collect_states(simulator)
    legal = simulator.action_mask(states)
    for action in range(CAPACITY):
        rows = np.flatnonzero(legal[:, action])
        following, cost, done = simulator.step(states[rows], np.full(len(rows), action))
        for before, after, paid, ended in zip(states[rows], following, cost, done, strict=True):
            rooms, (item, *rest) = parse_state(before)
            new = action + 1 == CAPACITY
            expected = put_item((*rooms, CAPACITY) if new else tuple(rooms), action + 1, item)
            assert sorted(room for room in range(CAPACITY) for _ in range(after[BINS + room])) == list(expected)
            assert paid == new and ended == (not rest)


def test_packing_observation_does_not_depend_on_items_packed_before():
    """States with the same bins and remaining items have equal observations, except for the remaining share."""
    short = Packing(3, 3)
    long = Packing(5, 5)
    state = np.zeros((1, ITEMS + 3), np.int16)
    longer = np.zeros((1, ITEMS + 5), np.int16)
    state[0, ITEMS:] = [4, 2, 2]
    longer[0, ITEMS:] = [5, 3, 4, 2, 2]
    state[0, BINS + 5] = longer[0, BINS + 5] = 2
    longer[0, PACKED] = 2
    one = short.observe(state)[0]
    other = long.observe(longer)[0]
    np.testing.assert_array_equal(one[:-1], other[:-1])
    assert (one[-1], other[-1]) == (pytest.approx(2 / 3), pytest.approx(2 / 5))
    assert one[4] == pytest.approx(2 / 3) and one[:9].sum() == one[4]  # two bins with room for 5
    assert one[9:15].tolist() == [0, 0, 1, 0, 0, 0]
    assert one[15:21].tolist() == [pytest.approx(2 / 3), 0, 0, 0, 0, 0]


def test_packing_items_have_uniform_sizes():
    items = Packing(50, 50).reset(np.arange(400, dtype=np.uint64))[:, ITEMS:]
    shares = np.bincount(items.ravel(), minlength=MAX_ITEM + 1)[MIN_ITEM:] / items.size
    np.testing.assert_allclose(shares, 1 / 6, atol=0.01)


def test_packing_heuristics_match_hand_computed_values():
    items = np.array([6, 5, 4, 5, 2, 7])  # first fit: 6 4 | 5 5 | 2 7
    assert count_first_fit_bins(items) == 3 and compute_lower_bound(items) == 3
    assert count_first_fit_bins(np.array([4, 5, 6, 5])) == 3 and compute_lower_bound(np.array([4, 5, 6, 5])) == 2
    simulator = Packing(6, 6)
    state = np.zeros((1, ITEMS + 6), np.int16)
    bins = 0.0
    state[0, ITEMS:] = [6, 5, 5, 3, 2, 7]  # best fit: 6 3 | 5 5 | 2 7
    for t in range(6):
        state, cost, _ = simulator.step(state, BestFit(simulator).act(state, t))
        bins += float(cost[0])
    assert bins == 3


def test_packing_optimum_is_between_lower_bound_and_first_fit():
    simulator = Packing(12, 12)
    states = simulator.reset(np.arange(100, dtype=np.uint64))
    best = ExactPacking(simulator).q(states).min(axis=1)
    assert all(
        compute_lower_bound(own[ITEMS:]) <= few <= count_first_fit_bins(own[ITEMS:])
        for own, few in zip(states, best, strict=True)
    )


def test_packing_problem_horizon_is_at_most_the_item_count():
    problem = PackingProblem(items=8)
    assert problem.fill_defaults(1, ()).horizon == 8 == problem.fill_defaults(1, ()).simulator.horizon
    assert PackingProblem(items=8, horizon=20).fill_defaults(1, ()).horizon == 8
    assert PackingProblem(items=8, horizon=5).fill_defaults(1, ()).horizon == 5
