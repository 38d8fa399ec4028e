"""Lines 5 and 6 of Algorithm 1, and the episodes of line 9, over blocks of lanes: what workers are asked to do.

A block of seeds goes out; trajectories and their cost-to-go come back, without states, which only the oracle needs. An
oracle that looks at more than one trajectory, or at the policy, stays here, and then states do come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from aggrevated.actors import Actor
from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError
from aggrevated.engines import IN_PROCESS, Engine, split_into_blocks
from aggrevated.engines.serialization import CachedObject
from aggrevated.experts import Expert
from aggrevated.oracles import CostToGo, Oracle, is_per_trajectory
from aggrevated.rollout.roll_in import RollInPolicy, check_any_survived, collect_episode_returns, roll_in_blocks
from aggrevated.rollout.trajectories import Trajectories, concatenate_trajectories, pad_and_stack
from aggrevated.simulators import Simulator

if TYPE_CHECKING:
    from aggrevated.policies import Policy


MAX_DIVERGED_FRACTION = 0.1  # of the episodes that a mean return is of


@dataclass(frozen=True)
class WorkerContext:
    """Where lanes run, and who is asked about them: what does not change from iteration to iteration."""

    simulator: Simulator
    expert: Expert | None = None
    oracle: Oracle | None = None  # None: it is asked by whoever gathers


class RolloutCollector:
    """Rolls in and asks, by an engine."""

    def __init__(
        self, simulator: Simulator, expert: Expert | None, oracle: Oracle, engine: Engine = IN_PROCESS
    ) -> None:
        self.oracle = oracle
        self.engine = engine
        self.context = CachedObject(WorkerContext(simulator, expert, oracle if is_per_trajectory(oracle) else None))

    def __call__(self, mixture: RollInPolicy, seeds: Array, policy: Policy) -> tuple[Trajectories, CostToGo]:
        """(one trajectory of π̂_n per seed, their cost-to-go)."""
        shared = self.context, mixture.learner, mixture.alpha, mixture.n, self.engine is not IN_PROCESS
        done = self.engine.map(collect_batch, shared, split_into_blocks(seeds, self.engine))
        trajectories = concatenate_trajectories([found for found, _ in done])
        check_any_survived(trajectories.count, len(seeds))
        told = [cost_to_go for _, cost_to_go in done if cost_to_go is not None]
        if not told:
            return trajectories, check_any_cost_finite(self.oracle(trajectories, policy))
        return trajectories, check_any_cost_finite(concatenate_costs(told, trajectories.mask.shape[1]))


JobInputs = tuple[CachedObject[WorkerContext], Actor | None, float, int, bool]


def collect_batch(shared: JobInputs, seeds: Array) -> tuple[Trajectories, CostToGo | None]:
    """A block of lanes: rolled in and, where that can be done for each alone, asked about."""
    kept, actor, alpha, n, travels = shared
    place = kept.value
    trajectories = roll_in_blocks(place.simulator, RollInPolicy(place.expert, actor, alpha, n), seeds)
    if place.oracle is None:
        return trajectories, None
    told = place.oracle(trajectories) if trajectories.count else None
    return (drop_states(trajectories) if travels else trajectories), told


def drop_states(trajectories: Trajectories) -> Trajectories:
    """The same, but for the states, of which nothing is left."""
    return replace(trajectories, states=np.zeros((*trajectories.mask.shape, 0), np.float32))


def concatenate_costs(parts: Sequence[CostToGo], length: int) -> CostToGo:
    """The cost-to-go of all blocks, in order, for trajectories of that length."""
    if len(parts) == 1 and parts[0].weight.shape[1] == length:
        return parts[0]
    arrays: dict[str, Any] = {
        name: pad_and_concatenate([part.arrays[name] for part in parts], length) for name in parts[0].arrays
    }
    counts = ("queries", "simulator_steps", "diverged", "lost_trajectories")
    return replace(parts[0], **arrays, **{name: sum(getattr(part, name) for part in parts) for name in counts})


def pad_and_concatenate(arrays: Sequence[Array], length: int) -> Array:
    """Arrays [K_i, T_i, ...] as one [Σ K_i, length, ...]."""
    empty = np.zeros((0, length, *arrays[0].shape[2:]), arrays[0].dtype)
    return pad_and_stack([*arrays, empty])


def check_any_cost_finite(told: CostToGo) -> CostToGo:
    """A `DataError` if questions were asked and every answer diverged."""
    if told.diverged and not told.weight.any():
        raise DataError(f"every one of {told.diverged} roll-outs diverged; check the simulator, expert and policy")
    return told


def collect_returns(
    engine: Engine, place: CachedObject[WorkerContext], actor: Actor | None, seeds: Array, deterministic: bool = False
) -> tuple[Array, int]:
    """(the return of each episode [K], all simulator steps) of a learner, or without one of the expert.

    Those that diverged have none: they are as many as returns are missing.
    """
    done = engine.map(collect_batch_returns, (place, actor, deterministic), split_into_blocks(seeds, engine))
    found = np.concatenate([own for own, _ in done])
    check_divergence_rate(len(found), len(seeds))
    return found, sum(steps for _, steps in done)


def check_divergence_rate(left: int, episodes: int) -> None:
    """A `DataError` if so many episodes diverged that the mean of those left would be that of the survivors."""
    check_any_survived(left, episodes)
    if episodes - left > MAX_DIVERGED_FRACTION * episodes:
        remedy = "the mean of the others would flatter the policy: check the simulator, or let it step less"
        raise DataError(f"{episodes - left} of {episodes} episodes diverged, more than a tenth; {remedy}")


def collect_batch_returns(
    shared: tuple[CachedObject[WorkerContext], Actor | None, bool], seeds: Array
) -> tuple[Array, int]:
    """The same for a block."""
    kept, actor, deterministic = shared
    place = kept.value
    mixture = RollInPolicy(place.expert, actor, alpha=0.0 if actor is not None else 1.0)
    return collect_episode_returns(place.simulator, mixture, seeds, deterministic)
