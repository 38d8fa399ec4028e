"""Q* from roll-outs of an expert that need only act: restore s_t, take an action, then follow π*."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
from gymnasium.spaces import Discrete

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError
from aggrevated.core.rng import RandomStream, make_generator
from aggrevated.core.settings import COUNT, at_least, setting
from aggrevated.core.user_code import add_error_position
from aggrevated.experts import Expert
from aggrevated.experts.checked import query_actions
from aggrevated.oracles import CostOracleSettings, CostToGo, Feedback, Oracle, max_rollout_steps
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators import Simulator, count_replayed_steps, find_reseedable, max_batch_size
from aggrevated.simulators.checked import step_and_check

if TYPE_CHECKING:
    from aggrevated.policies import Policy

Act: TypeAlias = Callable[
    [Array, Array, int], Array
]  # from episode indices [n], their states [n, ...] and t to actions


@dataclass(frozen=True)
class MonteCarloOracle:
    """Oracle of Q* or A* = Q* − V* from roll-outs of the expert, [K, T] or, for all actions, [K, T, A].

    V*(s_t) is a roll-out of π* from s_t. All roll-outs of a query start from one snapshot and share its
    random numbers, which cancel in the difference (a control variate). Querying M random steps of T with
    weight T/M keeps the gradient unbiased.

    Args:
        simulator: simulator that the roll-outs step.
        expert: π*.
        steps: M, number of queried steps per trajectory; None: all.
        rollouts: roll-outs per query, with different random numbers of the simulator.
        advantage: return A* instead of Q*.
        all_actions: query all actions of a discrete set, not only the action taken.

    Raises:
        UsageError: `steps` or `rollouts` is less than 1, or several roll-outs of a deterministic simulator.
    """

    simulator: Simulator
    expert: Expert
    steps: int | None = None
    rollouts: int = 1
    advantage: bool = True
    all_actions: bool = False
    is_per_trajectory: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.rollouts < 1 or (self.steps is not None and self.steps < 1):
            raise UsageError(
                f"rollouts is {self.rollouts} and steps is {self.steps}, but both must be at least 1; "
                "pass steps=None to query all steps"
            )
        if self.rollouts > 1 and find_reseedable(self.simulator) is None:
            raise UsageError(
                f"the simulator {self.simulator.name} is deterministic, so a second roll-out would repeat "
                "the first; use one roll-out per query"
            )

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        queryable = include_expert_steps(trajectories) if self.all_actions else trajectories
        k, t = np.nonzero(sample_query_steps(queryable, self.steps))
        states = trajectories.states[k, t]
        total = np.zeros((len(k), 1))
        finite_counts = np.zeros(len(k), int)
        simulated = 0
        for rollout in range(self.rollouts):
            start = states if rollout == 0 else self._reseed_states(states, trajectories.seeds[k], t, rollout)
            with add_error_position(trajectories.seeds[k]):
                if self.all_actions:
                    q, steps = self._query_all_actions(start, t, trajectories.action_mask[k, t])
                else:
                    q, steps = self._query_taken_action(start, t, trajectories.actions[k, t])
            is_finite = np.asarray(np.isfinite(q).all(axis=1))  # else the simulation diverged
            total = total + np.where(is_finite[:, None], q, 0.0)
            finite_counts = finite_counts + is_finite
            simulated = simulated + steps
        values = np.zeros((*trajectories.mask.shape, total.shape[1]), np.float32)
        values[k, t] = total / np.maximum(finite_counts, 1)[:, None]
        known = np.zeros(trajectories.mask.shape, bool)
        known[k, t] = finite_counts > 0
        diverged = int(self.rollouts * len(k) - finite_counts.sum())
        costs = values if self.all_actions else values[..., 0]
        weight, lost = query_weights(queryable, known)
        return CostToGo(costs, weight, len(k), simulated, diverged, lost, advantage=self.advantage)

    def _query_taken_action(self, states: Array, t: Array, actions: Array) -> tuple[Array, int]:
        """Return (Q* or A* of the actions [n, 1], simulator steps)."""
        q, simulated = rollout_expert_cost(self.simulator, self.expert, states, t, actions)
        if not self.advantage:
            return q[:, None], simulated
        v, steps = rollout_expert_cost(self.simulator, self.expert, states, t)
        return (q - v)[:, None], simulated + steps

    def _query_all_actions(self, states: Array, t: Array, legal: Array) -> tuple[Array, int]:
        """Return (Q* or A* [n, A], simulator steps), 0 for illegal actions. Q* of π*'s own action is V*."""
        assert isinstance(self.simulator.action_space, Discrete), "vector actions cannot be enumerated"
        actions = int(self.simulator.action_space.n)
        v, simulated = rollout_expert_cost(self.simulator, self.expert, states, t)
        is_expert_action = np.zeros((len(states), actions), bool)
        for time in np.unique(t):
            rows = np.flatnonzero(t == time)
            with add_error_position(rows=rows):
                chosen = query_actions(self.expert, states[rows], int(time), self.simulator.action_space)
                is_expert_action[rows, chosen] = True
        row, action = np.nonzero(~is_expert_action & (legal if legal.shape[1] else True))
        q = is_expert_action * v[:, None]
        q[row, action], steps = rollout_expert_cost(self.simulator, self.expert, states[row], t[row], action)
        if self.advantage:
            q[row, action] -= v[row]
            q[is_expert_action] = np.where(np.isfinite(v), 0.0, v)
        return q, simulated + steps

    def _reseed_states(self, states: Array, seeds: Array, t: Array, rollout: int) -> Array:
        reseedable = find_reseedable(self.simulator)
        assert reseedable is not None, "checked when this oracle was made"
        drawn = [
            make_generator(int(seed), RandomStream.SIMULATOR).integers(2**64, size=rollout + 1, dtype=np.uint64)
            for seed in seeds
        ]
        new_seeds = np.array([numbers[rollout] for numbers in drawn], np.uint64)  # empty without a query
        return reseedable.reseed(states, new_seeds + t.astype(np.uint64))


def sample_query_steps(trajectories: Trajectories, steps: int | None) -> Array:
    """Sample the queried steps, bool [K, T]: `steps` of the learner's own per trajectory, or all for None.

    They are drawn from the seed of the trajectory.
    """
    by_learner = trajectories.by_learner
    if steps is None:
        return by_learner
    length = by_learner.shape[1]
    generators = [make_generator(int(seed), RandomStream.QUERIES) for seed in trajectories.seeds]
    keys = np.stack([generator.random(length) for generator in generators])
    keys[~by_learner] = np.inf
    rank = keys.argsort(axis=1).argsort(axis=1)
    sampled: Array = by_learner & (rank < steps)
    return sampled


def include_expert_steps(trajectories: Trajectories) -> Trajectories:
    """Return the trajectories with the expert's steps marked as the learner's, so that they can be queried.

    The costs of all actions depend on the state only, not on the action taken.
    """
    return replace(trajectories, by_expert=np.zeros_like(trajectories.by_expert))


def query_weights(trajectories: Trajectories, known: Array) -> tuple[Array, int]:
    """Return (weights, number of trajectories without a known step).

    Weights are float32 [K, T]: T/M at the M known steps of a trajectory with T queryable steps, else 0.
    """
    queryable = trajectories.by_learner.sum(axis=1)
    n_known = known.sum(axis=1)
    factor = queryable / np.maximum(n_known, 1)
    weight: Array = (known * factor[:, None]).astype(np.float32)
    return weight, int(((queryable > 0) & (n_known == 0)).sum())


def rollout_expert_cost(
    simulator: Simulator, expert: Expert, states: Array, times: Array, first: Array | None = None
) -> tuple[Array, int]:
    """Return (costs [n], simulator steps) of `first`, if given, then of π* to the horizon."""
    space = simulator.action_space
    return rollout_cost(simulator, lambda _, state, t: query_actions(expert, state, t, space), states, times, first)


def rollout_cost(
    simulator: Simulator, act: Act, states: Array, times: Array, first: Array | None = None
) -> tuple[Array, int]:
    """Return (costs [n], simulator steps) of `first`, if given, then of the actions of `act` to the horizon.

    A diverged roll-out costs NaN. Steps include replays. Batches are as large as the simulator can step at
    once.
    """
    n = len(states)
    batch_size = max_batch_size(simulator)
    if n <= batch_size:
        return rollout_cost_batch(simulator, act, states, times, first)
    total = np.zeros(n)
    simulated = 0
    for start in range(0, n, batch_size):
        rows = np.arange(start, min(start + batch_size, n))

        def act_in_batch(episodes: Array, state: Array, t: int, rows: Array = rows) -> Array:
            return act(rows[episodes], state, t)

        with add_error_position(rows=rows):
            actions = None if first is None else first[rows]
            total[rows], steps = rollout_cost_batch(simulator, act_in_batch, states[rows], times[rows], actions)
        simulated += steps
    return total, simulated


def rollout_cost_batch(
    simulator: Simulator, act: Act, states: Array, times: Array, first: Array | None = None
) -> tuple[Array, int]:
    """Return `rollout_cost` of one batch; episodes join at their own time t and leave when they end."""
    total = np.zeros(len(states))
    simulated = -count_replayed_steps(simulator)
    episodes = np.zeros(0, int)
    state = states[:0]
    for t in range(int(times.min(initial=simulator.horizon)), simulator.horizon):
        joining = np.flatnonzero(times == t)
        episodes = np.concatenate([episodes, joining])
        state = np.concatenate([state, states[joining]])
        if not len(episodes):
            continue
        with add_error_position(rows=episodes, step=t):
            action = act(episodes, state, t)
            if first is not None and len(joining):
                action = np.concatenate([action[: -len(joining)], first[joining]])
            state, cost, done = step_and_check(simulator, state, action)
        total[episodes] += cost
        simulated += len(episodes)
        if done.any():
            episodes = episodes[~done]
            state = state[~done]
    return total, simulated + count_replayed_steps(simulator)


@dataclass(frozen=True)
class MonteCarloSettings(CostOracleSettings):
    """Q* from roll-outs of the expert: of every discrete action, or of the action taken."""

    name = "monte-carlo"
    query_steps: int = setting(2, "M: number of steps per trajectory that are queried; 0: all.", COUNT)
    query_rollouts: int = setting(1, "Roll-outs per query, for stochastic simulators.", at_least(1))
    all_actions: bool = setting(True, "Roll out every discrete action, not only the action taken.")

    def get_feedback(self, finite: bool) -> Feedback:
        return Feedback.ALL_ACTIONS if finite and self.all_actions else Feedback.TAKEN_ACTION

    def is_partial(self, finite: bool) -> bool:
        return bool(self.query_steps) or super().is_partial(finite)

    def max_steps(self, horizon: int, actions: int | None) -> int:
        rollouts = actions if actions is not None and self.all_actions else 1 + self.advantage
        return max_rollout_steps(horizon, self.query_steps, rollouts * self.query_rollouts)

    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        all_actions = self.get_feedback(isinstance(simulator.action_space, Discrete)) is Feedback.ALL_ACTIONS
        steps = self.query_steps or None
        return MonteCarloOracle(simulator, expert, steps, self.query_rollouts, self.advantage, all_actions)
