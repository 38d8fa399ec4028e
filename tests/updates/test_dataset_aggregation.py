"""The aggregated dataset: images are limited by bytes, vectors by the number of trajectories."""

import numpy as np
import pytest

from aggrevated.oracles import CostToGo
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.updates.dataset_aggregation import AggregatedDataset

SIDE = 8
IMAGE_BYTES = SIDE * SIDE * 4


def numbered_trajectories(first: int, count: int, length: int, shape: tuple[int, ...] = (SIDE, SIDE)) -> Trajectories:
    """Return trajectories whose observations are their numbers."""
    mask = np.ones((count, length), bool)
    seen = np.ones((count, length, *shape), np.float32) * np.arange(first, first + count).reshape(
        -1, 1, *[1] * len(shape)
    )
    seen = seen.astype(np.float32)
    return Trajectories(seen, seen, np.zeros((count, length), int), mask * 1.0, mask, ~mask, horizon=100)


def add(dataset: AggregatedDataset, new: Trajectories, seed: int = 0) -> list[int]:
    """Add trajectories; return the numbers of those in the dataset."""
    costs = CostToGo(np.zeros((*new.mask.shape, 2), np.float32), new.mask.astype(np.float32))
    dataset.add(new, costs, np.random.default_rng([seed, dataset.seen]))
    stored = dataset.data.trajectories.observations
    return [int(one) for one in stored.reshape(len(stored), -1).max(axis=1)]


def test_aggregated_dataset_keeps_images_within_byte_limit() -> None:
    data = AggregatedDataset(1000, most_bytes=20 * 5 * IMAGE_BYTES)
    assert add(data, numbered_trajectories(0, 12, 5)) == [*range(12)]
    stored = add(data, numbered_trajectories(12, 12, 5))
    assert len(stored) == 20 == len(set(stored)) and data.seen == 24
    assert data.data.trajectories.observations.nbytes <= data.most_bytes


def test_aggregated_dataset_sampling_is_uniform_for_episodes_of_any_length() -> None:
    counts = np.zeros(30)
    for seed in range(400):
        data = AggregatedDataset(1000, most_bytes=20 * 5 * IMAGE_BYTES)
        for first, length in ((0, 5), (10, 5), (20, 10)):
            stored = add(data, numbered_trajectories(first, 10, length), seed)
        assert len(stored) == 10 == len(set(stored))
        counts[stored] += 1
    expected = 400 * 10 / 30
    assert np.abs(counts - expected).max() < 4.5 * np.sqrt(expected * 2 / 3)


@pytest.mark.parametrize("most_bytes", [1, 10**9])
def test_aggregated_dataset_limits_vectors_by_trajectory_count(most_bytes: int) -> None:
    data = AggregatedDataset(15, most_bytes=most_bytes)
    add(data, numbered_trajectories(0, 10, 5, (64,)))
    assert len(add(data, numbered_trajectories(10, 10, 5, (64,)))) == 15


def test_aggregated_dataset_keeps_the_same_trajectories_after_restore() -> None:
    whole, broken = (AggregatedDataset(1000, most_bytes=12 * 5 * IMAGE_BYTES) for _ in range(2))
    for part in (numbered_trajectories(0, 10, 5), numbered_trajectories(10, 10, 6)):
        add(whole, part)
        add(broken, part)
        state = broken.state()
        broken = AggregatedDataset(1000, most_bytes=12 * 5 * IMAGE_BYTES)
        broken.restore(state)
    assert add(whole, numbered_trajectories(20, 5, 9)) == add(broken, numbered_trajectories(20, 5, 9))
