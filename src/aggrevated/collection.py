"""Jobs of workers: roll-ins and queries (lines 5 and 6 of Algorithm 1), and validation episodes (line 9).

A job gets a block of seeds and returns trajectories and their cost-to-go. It drops the states, which only the
oracle needs. An oracle that needs all trajectories, or the policy, runs in the main process; then jobs return
the states, too.
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
from aggrevated.rollout.trajectories import Trajectories, concatenate_trajectories, drop_states, pad_and_stack
from aggrevated.simulators import Simulator

if TYPE_CHECKING:
    from aggrevated.policies import Policy


MAX_DIVERGED_FRACTION = 0.1  # of the episodes of a mean return


@dataclass(frozen=True)
class WorkerContext:
    """The parts of a job that do not change between iterations: simulator, expert and oracle."""

    simulator: Simulator
    expert: Expert | None = None
    oracle: Oracle | None = None  # None: the collector evaluates the oracle in the main process


class RolloutCollector:
    """Rolls in and queries the oracle, by means of an engine (lines 5 and 6)."""

    def __init__(
        self, simulator: Simulator, expert: Expert | None, oracle: Oracle, engine: Engine = IN_PROCESS
    ) -> None:
        self.oracle = oracle
        self.engine = engine
        self.context = CachedObject(WorkerContext(simulator, expert, oracle if is_per_trajectory(oracle) else None))

    def __call__(self, roll_in_policy: RollInPolicy, seeds: Array, policy: Policy) -> tuple[Trajectories, CostToGo]:
        """Return one trajectory of π̂_n per seed, and the cost-to-go at the visited states."""
        drops_states = self.engine is not IN_PROCESS
        shared = self.context, roll_in_policy.learner, roll_in_policy.alpha, roll_in_policy.n, drops_states
        results = self.engine.map(collect_batch, shared, split_into_blocks(seeds, self.engine))
        trajectories = concatenate_trajectories([batch for batch, _ in results])
        check_any_survived(trajectories.count, len(seeds))
        costs = [cost_to_go for _, cost_to_go in results if cost_to_go is not None]
        if not costs:
            return trajectories, check_any_cost_finite(self.oracle(trajectories, policy))
        return trajectories, check_any_cost_finite(concatenate_costs(costs, trajectories.mask.shape[1]))


JobInputs = tuple[CachedObject[WorkerContext], Actor | None, float, int, bool]


def collect_batch(shared: JobInputs, seeds: Array) -> tuple[Trajectories, CostToGo | None]:
    """Roll in a block of seeds, and query the oracle if it needs one trajectory at a time."""
    cached_context, actor, alpha, n, drops_states = shared
    context = cached_context.value
    trajectories = roll_in_blocks(context.simulator, RollInPolicy(context.expert, actor, alpha, n), seeds)
    if context.oracle is None:
        return trajectories, None
    cost_to_go = context.oracle(trajectories) if trajectories.count else None
    return (drop_states(trajectories) if drops_states else trajectories), cost_to_go


def concatenate_costs(parts: Sequence[CostToGo], length: int) -> CostToGo:
    """Return the cost-to-go of all blocks, in order, padded to trajectories of `length` steps."""
    if len(parts) == 1 and parts[0].weight.shape[1] == length:
        return parts[0]
    arrays: dict[str, Any] = {
        name: pad_and_concatenate([part.arrays[name] for part in parts], length) for name in parts[0].arrays
    }
    counts = ("queries", "simulator_steps", "diverged", "lost_trajectories")
    return replace(parts[0], **arrays, **{name: sum(getattr(part, name) for part in parts) for name in counts})


def pad_and_concatenate(arrays: Sequence[Array], length: int) -> Array:
    """Return arrays [K_i, T_i, ...] as one [Σ K_i, length, ...], padded with zeros."""
    empty = np.zeros((0, length, *arrays[0].shape[2:]), arrays[0].dtype)
    return pad_and_stack([*arrays, empty])


def check_any_cost_finite(cost_to_go: CostToGo) -> CostToGo:
    """Return the cost-to-go; raise a `DataError` if every rollout of the oracle diverged."""
    diverged = cost_to_go.diverged
    if diverged and not cost_to_go.weight.any():
        raise DataError(f"every one of {diverged} rollouts diverged; check the simulator, expert and policy")
    return cost_to_go


def collect_returns(
    engine: Engine, context: CachedObject[WorkerContext], actor: Actor | None, seeds: Array, deterministic: bool = False
) -> tuple[Array, int]:
    """Return the returns of the finite episodes of an actor (None: the expert), and all simulator steps."""
    results = engine.map(collect_batch_returns, (context, actor, deterministic), split_into_blocks(seeds, engine))
    returns = np.concatenate([batch for batch, _ in results])
    check_divergence_rate(len(returns), len(seeds))
    return returns, sum(steps for _, steps in results)


def check_divergence_rate(n_finite: int, n_episodes: int) -> None:
    """Raise a `DataError` if too many episodes diverged for an unbiased mean return."""
    check_any_survived(n_finite, n_episodes)
    n_diverged = n_episodes - n_finite
    if n_diverged > MAX_DIVERGED_FRACTION * n_episodes:
        remedy = "the mean of the others would be biased: check the simulator, or use a smaller time step"
        raise DataError(f"{n_diverged} of {n_episodes} episodes diverged, more than a tenth; {remedy}")


def collect_batch_returns(
    shared: tuple[CachedObject[WorkerContext], Actor | None, bool], seeds: Array
) -> tuple[Array, int]:
    """Return the returns and the simulator steps of a block of episodes."""
    cached_context, actor, deterministic = shared
    context = cached_context.value
    roll_in_policy = RollInPolicy(context.expert, actor, alpha=0.0 if actor is not None else 1.0)
    return collect_episode_returns(context.simulator, roll_in_policy, seeds, deterministic)
