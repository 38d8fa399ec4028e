"""Data that is used again: the trajectories of all iterations so far, or a uniform sample of them."""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from aggrevated.core.arrays import Array
from aggrevated.oracles import CostToGo
from aggrevated.rollout.trajectories import ARRAYS, Trajectories, pad_and_stack

MAX_MEASURED_TRAJECTORIES = (
    200  # trajectories of the newest at most, for what a step reports: thousands at once would take gigabytes
)
MAX_PICTURE_BYTES = 500_000_000  # of pictures


class TrainingData(NamedTuple):
    """Trajectories, and what was learned of their costs."""

    trajectories: Trajectories
    cost_to_go: CostToGo

    def take(self, indices: Array) -> "TrainingData":
        """Those at `indices`, in that order."""
        chosen: dict[str, Any] = {name: array[indices] for name, array in self.cost_to_go.arrays.items()}
        return TrainingData(self.trajectories.take(indices), CostToGo(**chosen))

    def concatenate(self, newer: "TrainingData") -> "TrainingData":
        """These and then the newer ones."""
        arrays: dict[str, Any] = {
            n: pad_and_stack([getattr(one.trajectories, n) for one in (self, newer)]) for n in ARRAYS
        }
        costs: dict[str, Any] = {
            name: pad_and_stack([array, newer.cost_to_go.arrays[name]])
            for name, array in self.cost_to_go.arrays.items()
        }
        seeds = np.concatenate([self.trajectories.seeds, newer.trajectories.seeds])
        return TrainingData(replace(newer.trajectories, **arrays, seeds=seeds), CostToGo(**costs))


@dataclass
class AggregatedDataset:
    """Above `capacity` trajectories a uniform sample of all that were seen is kept (reservoir sampling).

    So memory does not grow with the run. Of pictures there are fewer, if they are more than `most_bytes`.
    """

    buffer_size: int = 1000  # trajectories
    most_bytes: int = MAX_PICTURE_BYTES
    seen: int = field(default=0, init=False)
    _data: TrainingData | None = field(default=None, init=False, repr=False)

    @property
    def data(self) -> TrainingData:
        """All that is kept."""
        assert self._data is not None, "nothing was added yet"
        return self._data

    def add(self, trajectories: Trajectories, cost_to_go: CostToGo, generator: np.random.Generator) -> None:
        """Add the newest data; past `capacity`, each newcomer takes a random place with the reservoir's probability."""
        newest = TrainingData(drop_states(trajectories), cost_to_go)
        data = newest if self._data is None else self._data.concatenate(newest)
        room = self._compute_capacity(data.trajectories.observations)
        before = data.trajectories.count - trajectories.count
        order = np.arange(data.trajectories.count)
        if before > room:  # longer episodes of pictures leave room for fewer
            order = np.delete(order, generator.choice(before, before - room, replace=False))
        for index in range(len(order) - trajectories.count, len(order)):
            self.seen += 1
            if index >= room:
                place = int(generator.integers(self.seen))
                order[place if place < room else index] = order[index]
        self._data = data.take(order[:room])

    def _compute_capacity(self, observations: Array) -> int:
        """How many trajectories there is room for, with such observations [K, T, ...]: pictures have a size."""
        if observations.ndim < 4:
            return self.buffer_size
        return min(self.buffer_size, max(1, self.most_bytes // int(observations[0].nbytes)))

    def state(self) -> dict[str, Tensor]:
        """All of it, for a checkpoint."""
        if self._data is None:
            return {}
        trajectories, cost_to_go = self._data
        arrays = {name: getattr(trajectories, name) for name in ARRAYS} | cost_to_go.arrays
        numbers = [float(self.seen), float(trajectories.horizon), trajectories.alpha]
        return {name: torch.from_numpy(a) for name, a in arrays.items()} | {
            "numbers": torch.tensor(numbers, dtype=torch.float64)
        }

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from what `state` gave."""
        self.seen = 0
        self._data = None
        if not state:
            return
        seen, horizon, mixing = state["numbers"].tolist()
        self.seen = int(seen)
        arrays: dict[str, Any] = {name: array.numpy() for name, array in state.items() if name != "numbers"}
        trajectories = Trajectories(**{name: arrays.pop(name) for name in ARRAYS}, horizon=int(horizon), alpha=mixing)
        self._data = TrainingData(trajectories, CostToGo(**arrays))


def drop_states(trajectories: Trajectories) -> Trajectories:
    """Without the states, which no loss looks at."""
    return replace(trajectories, states=np.zeros((*trajectories.mask.shape, 0), np.float32))
