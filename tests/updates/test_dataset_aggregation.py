"""Data that is kept: of pictures as much as there is room for, of vectors as many trajectories as are asked for."""

import numpy as np
import pytest

from aggrevated.oracles import CostToGo
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.updates.dataset_aggregation import AggregatedDataset

SIDE = 8
PICTURE = SIDE * SIDE * 4  # bytes


def numbered(first: int, count: int, length: int, shape: tuple[int, ...] = (SIDE, SIDE)) -> Trajectories:
    """Trajectories whose observations say which one they are of."""
    mask = np.ones((count, length), bool)
    seen = np.ones((count, length, *shape), np.float32) * np.arange(first, first + count).reshape(
        -1, 1, *[1] * len(shape)
    )
    seen = seen.astype(np.float32)
    return Trajectories(seen, seen, np.zeros((count, length), int), mask * 1.0, mask, ~mask, horizon=100)


def add(to: AggregatedDataset, new: Trajectories, seed: int = 0) -> list[int]:
    """Which are kept after these."""
    costs = CostToGo(np.zeros((*new.mask.shape, 2), np.float32), new.mask.astype(np.float32))
    to.add(new, costs, np.random.default_rng([seed, to.seen]))
    kept = to.data.trajectories.observations
    return [int(one) for one in kept.reshape(len(kept), -1).max(axis=1)]


def test_pictures_are_kept_as_far_as_there_is_room() -> None:
    data = AggregatedDataset(1000, most_bytes=20 * 5 * PICTURE)
    assert add(data, numbered(0, 12, 5)) == [*range(12)]
    kept = add(data, numbered(12, 12, 5))
    assert len(kept) == 20 == len(set(kept)) and data.seen == 24
    assert data.data.trajectories.observations.nbytes <= data.most_bytes


def test_longer_episodes_leave_room_for_fewer_and_each_is_as_likely_to_stay() -> None:
    counts = np.zeros(30)
    for seed in range(400):
        data = AggregatedDataset(1000, most_bytes=20 * 5 * PICTURE)
        for first, length in ((0, 5), (10, 5), (20, 10)):
            kept = add(data, numbered(first, 10, length), seed)
        assert len(kept) == 10 == len(set(kept))
        counts[kept] += 1
    expected = 400 * 10 / 30
    assert np.abs(counts - expected).max() < 4.5 * np.sqrt(expected * 2 / 3)


@pytest.mark.parametrize("most_bytes", [1, 10**9])
def test_vectors_are_counted_not_weighed(most_bytes: int) -> None:
    data = AggregatedDataset(15, most_bytes=most_bytes)
    add(data, numbered(0, 10, 5, (64,)))
    assert len(add(data, numbered(10, 10, 5, (64,)))) == 15


def test_what_is_kept_is_the_same_after_a_restore() -> None:
    whole, broken = (AggregatedDataset(1000, most_bytes=12 * 5 * PICTURE) for _ in range(2))
    for part in (numbered(0, 10, 5), numbered(10, 10, 6)):
        add(whole, part)
        add(broken, part)
        state = broken.state()
        broken = AggregatedDataset(1000, most_bytes=12 * 5 * PICTURE)
        broken.restore(state)
    assert add(whole, numbered(20, 5, 9)) == add(broken, numbered(20, 5, 9))
