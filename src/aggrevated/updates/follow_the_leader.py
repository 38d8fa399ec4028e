"""Follow the leader over aggregated data: AggreVaTe, DAgger and supervised learning."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from aggrevated.cost_to_go import CostToGo, Tells
from aggrevated.errors import UsageError
from aggrevated.losses import Loss, LossSettings
from aggrevated.policies import Policy
from aggrevated.randomness import Purpose, seeds
from aggrevated.settings import POSITIVE, Chosen, require, setting
from aggrevated.trajectories import ARRAYS, Trajectories, pad_and_stack
from aggrevated.updates import Step, UpdateSettings, dropout, loss_and_gradient, norm
from aggrevated.updates.safe_step import safe_step

MEASURED = 200  # trajectories of the newest at most, for what a step reports: thousands at once would take gigabytes


@dataclass
class FollowTheLeader:
    """π_{n+1} = argmin_π Σ_{i ≤ n} ℓ_i(π), approached by `steps` minibatch steps of Adam from π_n.

    The data are kept as trajectories. Above `capacity` of them, a uniform sample of all that were seen is kept
    (reservoir sampling), so that memory does not grow with the run.
    """

    learning_rate: float = 0.01
    steps: int = 100
    minibatch: int = 50  # trajectories
    capacity: int = 1000  # trajectories
    anneal: bool = False  # let the learning rate fall to 0, in a line
    max_kl: float = 1e6  # any finite step
    seed: int = 0
    seen: int = field(default=0, init=False)
    _data: tuple[Trajectories, CostToGo] | None = field(default=None, init=False, repr=False)

    def __call__(self, policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo) -> Step:
        if not cost_to_go.every_action and cost_to_go.advice is None:
            raise UsageError(
                "follow the leader needs the cost-to-go of every action: data of the taken action only, from policies "
                "of the past, is not fit for the present one"
            )
        if cost_to_go.bonus:
            raise UsageError("follow the leader knows no entropy bonus; use the oracle without it")
        some = np.arange(min(trajectories.count, MEASURED))
        measured, costs = _choose((trajectories, cost_to_go), some)
        value, gradient = loss_and_gradient(policy, loss, measured, costs)
        generator = np.random.default_rng(int(seeds(self.seed, Purpose.UPDATE, self.seen, 1)[0]))
        self._aggregate(trajectories, cost_to_go, generator)
        before = parameters_to_vector(policy.parameters()).detach()
        self._descend(policy, loss, generator)
        displacement = parameters_to_vector(policy.parameters()).detach() - before
        vector_to_parameters(before, policy.parameters())
        kl, halvings = safe_step(policy, measured, displacement, self.max_kl)
        return Step(value, norm(gradient), kl, halvings)

    def _descend(self, policy: Policy, loss: Loss, generator: np.random.Generator) -> None:
        """Adam on the mean loss of all the data, `minibatch` trajectories at a time."""
        assert self._data is not None
        trajectories, cost_to_go = self._data
        optimiser = torch.optim.Adam(policy.parameters(), lr=self.learning_rate)
        for step in range(self.steps):
            if self.anneal:
                optimiser.param_groups[0]["lr"] = self.learning_rate * (1 - step / self.steps)
            batch = generator.choice(trajectories.count, min(self.minibatch, trajectories.count), replace=False)
            optimiser.zero_grad()
            with dropout(policy, self.seen * self.steps + step):  # a mask serves two minibatches, and all trials
                value = loss(policy, *_choose((trajectories, cost_to_go), batch))
            value.backward()  # type: ignore[no-untyped-call]
            optimiser.step()

    def _aggregate(self, trajectories: Trajectories, cost_to_go: CostToGo, generator: np.random.Generator) -> None:
        """Add the newest data; past `capacity`, each newcomer takes a random place with the reservoir's probability."""
        kept = trajectories.count if self._data is None else self._data[0].count + trajectories.count
        order = np.arange(kept)
        for index in range(kept - trajectories.count, kept):
            self.seen += 1
            if index >= self.capacity:
                place = int(generator.integers(self.seen))
                order[place if place < self.capacity else index] = order[index]
        chosen = order[: self.capacity]
        self._data = _choose(_stack(self._data, (without_states(trajectories), cost_to_go)), chosen)

    def state(self) -> dict[str, Tensor]:
        """The aggregated data."""
        if self._data is None:
            return {}
        trajectories, cost_to_go = self._data
        arrays = {name: getattr(trajectories, name) for name in ARRAYS} | cost_to_go.arrays
        numbers = [float(self.seen), float(trajectories.horizon), trajectories.mixing]
        return {name: torch.from_numpy(a) for name, a in arrays.items()} | {
            "numbers": torch.tensor(numbers, dtype=torch.float64)
        }

    def restore(self, state: dict[str, Tensor]) -> None:
        self.seen, self._data = 0, None
        if not state:
            return
        seen, horizon, mixing = state["numbers"].tolist()
        self.seen = int(seen)
        arrays: dict[str, Any] = {name: array.numpy() for name, array in state.items() if name != "numbers"}
        trajectories = Trajectories(**{name: arrays.pop(name) for name in ARRAYS}, horizon=int(horizon), mixing=mixing)
        self._data = trajectories, CostToGo(**arrays)


def without_states(trajectories: Trajectories) -> Trajectories:
    """Without the states, which no loss looks at."""
    return replace(trajectories, states=np.zeros((*trajectories.mask.shape, 0), np.float32))


def _stack(
    old: tuple[Trajectories, CostToGo] | None, new: tuple[Trajectories, CostToGo]
) -> tuple[Trajectories, CostToGo]:
    if old is None:
        return new
    arrays: dict[str, Any] = {n: pad_and_stack([getattr(old[0], n), getattr(new[0], n)]) for n in ARRAYS}
    costs: dict[str, Any] = {name: pad_and_stack([array, new[1].arrays[name]]) for name, array in old[1].arrays.items()}
    seeds = np.concatenate([old[0].seeds, new[0].seeds])
    return replace(new[0], **arrays, seeds=seeds), CostToGo(**costs)


def _choose(data: tuple[Trajectories, CostToGo], indices: np.ndarray) -> tuple[Trajectories, CostToGo]:
    trajectories, cost_to_go = data
    chosen: dict[str, Any] = {name: array[indices] for name, array in cost_to_go.arrays.items()}
    return trajectories.take(indices), CostToGo(**chosen)


@dataclass(frozen=True)
class LeaderSettings(UpdateSettings):
    """Follow the leader, over all data so far."""

    name = "follow-the-leader"
    fits = frozenset({Tells.EVERY_ACTION, Tells.BEST_ACTION})
    learning_rate: float = setting(0.01, "The step size of Adam, inside follow the leader.", POSITIVE)

    def check(self, chosen: Chosen) -> None:
        assert isinstance(chosen.loss, LossSettings)
        require(not chosen.loss.entropy, "entropy", chosen.loss.entropy, f"0 for the update {self.name}")

    def build(self, seed: int) -> FollowTheLeader:
        return FollowTheLeader(self.learning_rate, seed=seed)
