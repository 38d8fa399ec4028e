"""The combination lock and the cliff against plain loops, brute force and Bellman's equation."""

from itertools import product

import numpy as np
import pytest

from aggrevated_experiments.where_it_pays.simulators import cliff as world
from aggrevated_experiments.where_it_pays.simulators.cliff import Cliff, CliffExpert
from aggrevated_experiments.where_it_pays.simulators.lock import DIGITS, Lock, LockExpert

SEEDS = np.arange(64, dtype=np.uint64)


def test_lock_opens_for_one_combination_only() -> None:
    lock = Lock(horizon=3, length=3)
    tried = np.array(list(product(range(DIGITS), repeat=3)))
    state = lock.reset(np.arange(len(tried)))
    returned = np.zeros(len(tried))
    for t in range(3):
        state, cost, done = lock.step(state, tried[:, t])
        returned -= cost
        assert (done == (t == 2)).all()
    assert returned.sum() == 1 and (tried[returned.argmax()] == lock.combination).all()


def test_lock_observation_hides_progress() -> None:
    lock = Lock(horizon=5, length=5)
    state = lock.reset(np.arange(DIGITS))
    state, _, _ = lock.step(state, np.arange(DIGITS))
    assert state[:, 1].sum() == 1
    np.testing.assert_array_equal(lock.observe(state), np.tile(np.eye(5, dtype=np.float32)[1], (DIGITS, 1)))


def test_lock_combination_depends_on_length_and_seed_only() -> None:
    assert (Lock(9, 9, 1).combination == Lock(30, 9, 1).combination).all()
    assert not (Lock(9, 9, 1).combination == Lock(9, 9, 2).combination).all()


def least_cost(lock: Lock, state: np.ndarray) -> float:
    """Return the least cost to the end, by brute force."""
    if state[0, 0] >= lock.length:
        return 0.0
    return min(cost_after_digit(lock, state, digit) for digit in range(DIGITS))


def cost_after_digit(lock: Lock, state: np.ndarray, digit: int) -> float:
    following, cost, _ = lock.step(state, np.array([digit]))
    return float(cost[0]) + least_cost(lock, following)


@pytest.mark.parametrize("state", [(t, right) for t in range(4) for right in (0, 1)])
def test_lock_expert_equals_brute_force(state: tuple[int, int]) -> None:
    lock = Lock(horizon=4, length=4)
    there = np.array([state])
    q = LockExpert(lock).q(there)[0]
    np.testing.assert_array_equal(q, [cost_after_digit(lock, there, digit) for digit in range(DIGITS)])
    assert q[LockExpert(lock).act(there, 0)[0]] == q.min()


def one_step(cell: int, wind: int, first: float, second: float, move: int) -> tuple[int, float, bool]:
    """Return (next cell, cost, fallen) with plain conditions."""
    after = cell + move + wind
    if after < 0:
        return 0, world.FALL, True
    side = first * second  # positive: the stones lie towards the edge
    size = world.STONES * abs(side)
    share = 0.5 if move == 0 else 1.0 if (move < 0) == (side > 0) else 0.0
    return min(after, world.WIDTH - 1), share * size, False


def test_cliff_step_equals_plain_implementation() -> None:
    cliff = Cliff()
    generator = np.random.default_rng(0)
    state = cliff.reset(SEEDS)
    fallen = 0
    for _ in range(20):
        action = generator.integers(3, size=len(state))
        following, cost, done = cliff.step(state, action)
        for k in range(len(state)):
            _, cell, wind, first, second, key = state[k].tolist()
            signs = world.LEVELS[first], world.LEVELS[second]
            expected = one_step(cell, int(world.WINDS[wind]), *signs, int(world.MOVES[action[k]]))
            assert (following[k, world.CELL], done[k]) == (expected[0], expected[2])
            assert cost[k] == pytest.approx(expected[1]) and following[k, -1] == key
        fallen += done.sum()
        state = following[~done]
    assert fallen > 10


def test_cliff_reset_has_the_declared_distribution() -> None:
    state = Cliff().reset(np.arange(40_000, dtype=np.uint64))
    winds = np.bincount(state[:, world.WIND].astype(int)) / len(state)
    np.testing.assert_allclose(winds, world.CHANCES, atol=0.01)
    for column, many in ((world.CELL, world.WIDTH), (world.FIRST, 8), (world.SECOND, 8)):
        np.testing.assert_allclose(np.bincount(state[:, column].astype(int)) / len(state), 1 / many, atol=0.01)


def test_cliff_expert_satisfies_bellman_equation_without_ties() -> None:
    cliff = Cliff(horizon=4)
    q = cliff.q_star
    levels = len(world.LEVELS)
    value = np.array([
        [
            sum(p * q[t, cell, wind].min(axis=-1).mean() for wind, p in enumerate(world.CHANCES))
            for cell in range(world.WIDTH)
        ]
        for t in range(4)
    ])  # fmt: skip
    everywhere = product(range(4), range(world.WIDTH), range(3), range(levels), range(levels), range(3))
    for t, cell, wind, first, second, action in everywhere:
        signs = (world.LEVELS[first], world.LEVELS[second])
        move = int(world.MOVES[action])
        after, cost, fallen = one_step(cell, int(world.WINDS[wind]), *signs, move)
        to_come = 0.0 if fallen or t == 3 else value[t + 1, after]
        assert q[t, cell, wind, first, second, action] == pytest.approx(cost + to_come)
    least, second_least, _ = np.sort(q, axis=-1).transpose(5, 0, 1, 2, 3, 4)
    assert (second_least - least > 1e-6).all() and CliffExpert(cliff).act(cliff.reset(SEEDS), 0).shape == (64,)


def test_cliff_expert_q_equals_its_mean_cost() -> None:
    cliff = Cliff()
    state = cliff.reset(np.arange(4000, dtype=np.uint64))
    expert = CliffExpert(cliff)
    paid = np.zeros(4000)
    live = np.ones(4000, bool)
    expected = expert.q(state).min(axis=1).mean()
    for t in range(cliff.horizon):
        state, cost, done = cliff.step(state, expert.act(state, t))
        paid += cost * live
        live &= ~done
    assert live.all() and paid.mean() == pytest.approx(expected, abs=4 * paid.std() / 4000**0.5)
