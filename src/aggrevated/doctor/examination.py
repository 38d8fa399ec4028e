"""Examination of an environment and its expert: episodes and roll-outs that all checks share, made when needed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from gymnasium.spaces import Discrete

from aggrevated.actors import Actor
from aggrevated.config import Config
from aggrevated.config.builder import build_policy
from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.core.user_code import call_user_code, check_finite, check_numeric_array
from aggrevated.doctor.probes import (
    DiscountedRollouts,
    UniformActor,
    find_action_bounds,
    run_discounted_rollouts,
)
from aggrevated.doctor.time_budget import run_largest_affordable
from aggrevated.doctor.training_metadata import TrainingMetadata, find_training_metadata
from aggrevated.experts import DiscreteQExpert, Expert, StateValueExpert, get_discount
from aggrevated.experts.checked import query_actions, query_q_values, query_state_values
from aggrevated.problems.control import ControlProblem, require_control_problem
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators import Simulator, find_action_mask, find_reseedable

DISCOUNTS = (0.9, 0.95, 0.99, 0.995, 1.0)
MAX_PROBES = 240
MAX_ACTIONS = 8  # actions per probe that are rolled out
ACTION_NOISE = 0.3  # standard deviation of the noise on the expert's vectors, in half widths of the bounds
SEEDS_PER_STEP = 16  # random streams per single step of a stochastic simulator
# Shares of the available time
EXPERT_SHARE = 0.15
FIRST_POLICY_SHARE = 0.1
RANDOM_SHARE = 0.1
ROLLOUT_SHARE = 0.25
CHANGED_SHARE = 0.15
IMPROVED_SHARE = 0.15


@dataclass(frozen=True)
class Probes:
    """Steps of episodes of the expert and of the first policy, and actions to try there.

    Attributes:
        states: [n, ...] states.
        times: [n] their times.
        episode: [n] their episodes; those of the first policy follow those of the expert.
        by_expert: [n] bool, whether the episode is the expert's rather than the first policy's.
        probe: [m] probe at which each action is tried.
        action: [m] or [m, A] actions.
        is_expert_action: [m] bool, whether the expert would take the action.
    """

    states: Array
    times: Array
    episode: Array
    by_expert: Array
    probe: Array
    action: Array
    is_expert_action: Array

    @property
    def group(self) -> Array:
        """Episode of each action's probe, [m]."""
        episodes: Array = self.episode[self.probe]
        return episodes

    @property
    def on_expert_state(self) -> Array:
        """Whether each action's probe is from an episode of the expert, [m] bool."""
        flags: Array = self.by_expert[self.probe]
        return flags


@dataclass(frozen=True)
class Examination:
    """Examination of a config's environment and expert, with a policy that is not trained yet.

    Args:
        config: The config.
        episodes: Largest number of episodes for each of expert, first policy and random actions.
        seed: Seed of all random numbers.
        seconds: Available time in seconds.
    """

    config: Config
    episodes: int = 200
    seed: int = 0
    seconds: float = 60.0

    @cached_property
    def problem(self) -> ControlProblem:
        return require_control_problem(self.config.problem, "'doctor'")

    @property
    def simulator(self) -> Simulator:
        return self.problem.simulator

    @property
    def expert(self) -> Expert:
        return self.problem.loaded_expert

    @property
    def horizon(self) -> int:
        return self.simulator.horizon

    @cached_property
    def training(self) -> TrainingMetadata:
        return find_training_metadata(self.problem, self.simulator)

    @property
    def discount(self) -> float:
        """Discount γ of the expert's costs, as the expert states it."""
        return get_discount(self.expert)

    @cached_property
    def discounts(self) -> tuple[float, ...]:
        return tuple(sorted({*DISCOUNTS, self.discount}))

    @cached_property
    def capability(self) -> str:
        """Method by which the expert returns costs: "q", "q_of", "v", or "" if it only acts."""
        if isinstance(self.expert, DiscreteQExpert):
            return "q"
        if callable(getattr(self.expert, "q_of", None)):
            return "q_of"
        return "v" if isinstance(self.expert, StateValueExpert) else ""

    def make_seeds(self, part: int, count: int) -> Array:
        """Return seeds of episodes that no other part of the examination uses."""
        return derive_seeds(self.seed, SeedPurpose.EXAMINATION, part, count)

    def roll_in_affordable(self, mixture: RollInPolicy, part: int, share: float) -> Trajectories:
        """Return as many trajectories as fit into a share of the available time."""
        roll_in(self.simulator, mixture, self.make_seeds(part, 1))  # compile and load before the time is measured
        return run_largest_affordable(
            lambda n: roll_in(self.simulator, mixture, self.make_seeds(part, n)), self.episodes, share * self.seconds
        )

    @cached_property
    def expert_trajectories(self) -> Trajectories:
        return self.roll_in_affordable(RollInPolicy(self.expert, None, 1.0), 0, EXPERT_SHARE)

    @cached_property
    def first_policy_trajectories(self) -> Trajectories:
        policy = build_policy(self.config)
        self.config.built_problem.prepare(policy)
        return self.roll_in_affordable(RollInPolicy(None, policy.actor()), 0, FIRST_POLICY_SHARE)

    @cached_property
    def random_trajectories(self) -> Trajectories:
        actor: Actor = UniformActor(self.simulator.action_space)
        return self.roll_in_affordable(RollInPolicy(None, actor), 0, RANDOM_SHARE)

    @cached_property
    def probe_rollouts(self) -> tuple[Probes, DiscountedRollouts]:
        """Probes, and the roll-outs that take each of their actions and then follow the expert."""

        def work(n: int) -> tuple[Probes, DiscountedRollouts]:
            probes = self.sample_probes(n)
            at = probes.states[probes.probe], probes.times[probes.probe]
            return probes, run_discounted_rollouts(self.simulator, self.expert, *at, probes.action, self.discounts)

        return run_largest_affordable(work, MAX_PROBES, ROLLOUT_SHARE * self.seconds)

    def sample_probes(self, count: int) -> Probes:
        """Return probes, half of them from episodes of the expert, half of the first policy, few of each episode."""
        sources = (self.expert_trajectories, self.first_policy_trajectories)
        parts = [sample_steps(trajectories, -(-count // 2), self.seed) for trajectories in sources]
        episodes, times = (np.concatenate([part[i] for part in parts]) for i in range(2))
        sizes = [len(part[0]) for part in parts]
        by_expert = np.repeat([True, False], sizes)
        states = np.concatenate(
            [trajectories.states[k, t] for trajectories, (k, t) in zip(sources, parts, strict=True)]
        )
        expert_actions = self.query_actions_at(states, times)
        probe, action, is_expert_action = self.list_tried_actions(states, expert_actions)
        episodes = episodes + ~by_expert * self.expert_trajectories.count
        return Probes(states, times, episodes, by_expert, probe, action, is_expert_action)

    def query_actions_at(self, states: Array, times: Array) -> Array:
        """Return the expert's actions in the states, each at its own time."""
        space = self.simulator.action_space
        parts = [
            (rows, query_actions(self.expert, states[rows], int(t), space)) for t, rows in group_rows_by_time(times)
        ]
        first = parts[0][1]
        out = np.zeros((len(states), *first.shape[1:]), first.dtype)
        for rows, actions in parts:
            out[rows] = actions
        return out

    def list_tried_actions(self, states: Array, expert_actions: Array) -> tuple[Array, Array, Array]:
        """Return (probe [m], action [m, ...], is_expert_action [m]) of the actions to try in the states."""
        space = self.simulator.action_space
        rng = np.random.default_rng(self.seed)
        n = len(states)
        if isinstance(space, Discrete):
            masked = find_action_mask(self.simulator)
            count = int(space.n)
            legal = masked.action_mask(states).copy() if masked else np.ones((n, count), bool)
            if count > MAX_ACTIONS:
                priorities = np.where(legal, rng.random((n, count)), np.inf)
                legal &= priorities.argsort(axis=1).argsort(axis=1) < MAX_ACTIONS
            legal[np.arange(n), expert_actions] = True
            probe, action = np.nonzero(legal)
            return probe, action, action == expert_actions[probe]
        low, high = find_action_bounds(space)
        noise = ACTION_NOISE * (high - low) / 2 * rng.standard_normal((n, 4, len(low)))
        nearby = (expert_actions[:, None] + noise).clip(low, high)
        actions = np.concatenate([expert_actions[:, None], nearby], axis=1)
        return np.repeat(np.arange(n), 5), actions.reshape(n * 5, -1), np.tile([True] + [False] * 4, n)

    @cached_property
    def predicted_costs(self) -> Array:
        """Expert's cost-to-go of each tried action, [m]; V of the state if the expert has only V."""
        probes, _ = self.probe_rollouts
        return self.query_costs(probes.states, probes.probe, probes.action)

    def query_costs(self, states: Array, index: Array, actions: Array) -> Array:
        """Return the expert's Q [m] of actions [m] in the states [n, ...] that `index` [m] numbers; else its V."""
        space = self.simulator.action_space
        if self.capability == "q" and isinstance(space, Discrete):
            assert isinstance(self.expert, DiscreteQExpert)
            q = query_q_values(self.expert, states, int(space.n))
            return np.asarray(q[index, actions], float)
        if self.capability == "q_of":
            part = f"the expert {self.expert.name}"
            costs = call_user_code(part, "q_of", lambda: self.expert.q_of(states[index], actions), len(index))  # type: ignore[attr-defined]
            costs = check_numeric_array(part, "costs-to-go", costs, (len(index),), "fix its q_of")
            return np.asarray(check_finite(part, "costs-to-go", costs, "check its weights"), float)
        return np.asarray(self.query_values(states)[index], float)

    def query_values(self, states: Array) -> Array:
        """Return the expert's V [n]."""
        if isinstance(self.expert, StateValueExpert):
            return np.asarray(query_state_values(self.expert, states), float)
        if self.capability == "q":
            assert isinstance(self.expert, DiscreteQExpert)
            return np.asarray(query_q_values(self.expert, states).min(axis=1), float)
        if self.capability == "q_of":
            actions = query_actions(self.expert, states, 0, self.simulator.action_space)
            return self.query_costs(states, np.arange(len(states)), actions)
        raise UsageError(f"the expert {self.expert.name} returns no costs; add a method q or v to it")

    @cached_property
    def lookahead_costs(self) -> Array:
        """Cost c + γ V(s') of each tried action, [m], by one step of the simulator and the expert's V."""
        probes, rollouts = self.probe_rollouts
        reseedable = find_reseedable(self.simulator)
        total = self.compute_lookahead_costs(rollouts.first_cost, rollouts.first_done, rollouts.following)
        for stream in range(1, SEEDS_PER_STEP if reseedable is not None else 1):
            assert reseedable is not None
            seeds = self.make_seeds(100 + stream, len(probes.states))
            states = reseedable.reseed(probes.states, seeds)[probes.probe]
            following, cost, done = self.simulator.step(states, probes.action)
            total = total + self.compute_lookahead_costs(cost, done, following)
        return total / (SEEDS_PER_STEP if reseedable is not None else 1)

    def compute_lookahead_costs(self, cost: Array, done: Array, following: Array) -> Array:
        """Return c + γ V(s'), with V = 0 where the episode has ended."""
        value = np.zeros(len(cost))
        if not done.all():
            value[~done] = self.query_values(following[~done])
        return np.asarray(cost + self.discount * value)

    @cached_property
    def mean_step_cost(self) -> float:
        """Mean cost of one step of the expert."""
        return float(self.expert_trajectories.costs[self.expert_trajectories.mask].mean())

    @cached_property
    def steps_per_second(self) -> tuple[float, float]:
        """Simulator steps per second of (episodes of a policy, roll-outs of the expert)."""
        started_at = time.perf_counter()
        policy = build_policy(self.config)
        self.config.built_problem.prepare(policy)
        trajectories = roll_in(self.simulator, RollInPolicy(None, policy.actor()), self.make_seeds(1, 16))
        by_policy = trajectories.simulator_steps / max(time.perf_counter() - started_at, 1e-6)
        started_at = time.perf_counter()
        probes = self.sample_probes(16)
        at = probes.states[probes.probe], probes.times[probes.probe]
        rollouts = run_discounted_rollouts(self.simulator, self.expert, *at, probes.action, (1.0,))
        return by_policy, int(rollouts.left.sum()) / max(time.perf_counter() - started_at, 1e-6)


def sample_steps(trajectories: Trajectories, count: int, seed: int) -> tuple[Array, Array]:
    """Return (episode, time) of random steps, spread evenly over the episodes."""
    rng = np.random.default_rng(seed)
    lengths = trajectories.mask.sum(axis=1)
    episodes = np.arange(count) % trajectories.count
    return episodes, (rng.random(count) * lengths[episodes]).astype(int)


def group_rows_by_time(times: Array) -> list[tuple[int, Array]]:
    """Return (t, the rows at t) for each time."""
    return [(int(t), np.flatnonzero(times == t)) for t in np.unique(times)]
