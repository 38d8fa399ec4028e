"""Data set of the trajectories of all iterations so far, or a uniform sample of them."""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from aggrevated.core.arrays import Array
from aggrevated.oracles import CostToGo
from aggrevated.rollout.trajectories import ARRAYS, Trajectories, drop_states, pad_and_stack

MAX_MEASURED_TRAJECTORIES = 200  # for the measurements of an `UpdateResult`: thousands would take gigabytes
MAX_PICTURE_BYTES = 500_000_000


class TrainingData(NamedTuple):
    """Trajectories and their cost-to-go."""

    trajectories: Trajectories
    cost_to_go: CostToGo

    def take(self, indices: Array) -> "TrainingData":
        """Return the data of the trajectories at `indices`, in that order."""
        arrays: dict[str, Any] = {name: array[indices] for name, array in self.cost_to_go.arrays.items()}
        return TrainingData(self.trajectories.take(indices), CostToGo(**arrays))

    def concatenate(self, newer: "TrainingData") -> "TrainingData":
        """Return this data followed by newer data."""
        arrays: dict[str, Any] = {
            name: pad_and_stack([getattr(data.trajectories, name) for data in (self, newer)]) for name in ARRAYS
        }
        costs: dict[str, Any] = {
            name: pad_and_stack([array, newer.cost_to_go.arrays[name]])
            for name, array in self.cost_to_go.arrays.items()
        }
        seeds = np.concatenate([self.trajectories.seeds, newer.trajectories.seeds])
        return TrainingData(replace(newer.trajectories, **arrays, seeds=seeds), CostToGo(**costs))


@dataclass
class AggregatedDataset:
    """A buffer of trajectories: all so far, or, when it is full, a uniform sample (reservoir sampling).

    Attributes:
        buffer_size: The most trajectories in the buffer.
        most_bytes: The most bytes of observations that are pictures; then fewer trajectories are stored.
        seen: Number of trajectories that were added so far.
    """

    buffer_size: int = 1000
    most_bytes: int = MAX_PICTURE_BYTES
    seen: int = field(default=0, init=False)
    _data: TrainingData | None = field(default=None, init=False, repr=False)

    @property
    def data(self) -> TrainingData:
        """Return the data in the buffer."""
        assert self._data is not None, "the buffer is empty; call add first"
        return self._data

    def add(self, trajectories: Trajectories, cost_to_go: CostToGo, generator: np.random.Generator) -> None:
        """Add data; in a full buffer, a new trajectory may replace a random one (reservoir sampling)."""
        newest = TrainingData(drop_states(trajectories), cost_to_go)
        data = newest if self._data is None else self._data.concatenate(newest)
        capacity = self._compute_capacity(data.trajectories.observations)
        n_old = data.trajectories.count - trajectories.count
        order = np.arange(data.trajectories.count)
        if n_old > capacity:  # longer episodes of pictures lower the capacity
            order = np.delete(order, generator.choice(n_old, n_old - capacity, replace=False))
        for index in range(len(order) - trajectories.count, len(order)):
            self.seen += 1
            if index >= capacity:
                target = int(generator.integers(self.seen))
                order[target if target < capacity else index] = order[index]
        self._data = data.take(order[:capacity])

    def _compute_capacity(self, observations: Array) -> int:
        """Return the capacity in trajectories, for observations [K, T, ...]; bytes limit pictures."""
        if observations.ndim < 4:
            return self.buffer_size
        return min(self.buffer_size, max(1, self.most_bytes // int(observations[0].nbytes)))

    def state(self) -> dict[str, Tensor]:
        """Return the buffer as tensors, for a checkpoint."""
        if self._data is None:
            return {}
        trajectories, cost_to_go = self._data
        arrays = {name: getattr(trajectories, name) for name in ARRAYS} | cost_to_go.arrays
        numbers = [float(self.seen), float(trajectories.horizon), trajectories.alpha]
        return {name: torch.from_numpy(a) for name, a in arrays.items()} | {
            "numbers": torch.tensor(numbers, dtype=torch.float64)
        }

    def restore(self, state: dict[str, Tensor]) -> None:
        """Restore the buffer from tensors of `state`."""
        self.seen = 0
        self._data = None
        if not state:
            return
        seen, horizon, alpha = state["numbers"].tolist()
        self.seen = int(seen)
        arrays: dict[str, Any] = {name: array.numpy() for name, array in state.items() if name != "numbers"}
        trajectories = Trajectories(**{name: arrays.pop(name) for name in ARRAYS}, horizon=int(horizon), alpha=alpha)
        self._data = TrainingData(trajectories, CostToGo(**arrays))
