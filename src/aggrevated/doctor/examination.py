"""What all checks look at: episodes and roll-outs, each made once, when somebody first asks for it."""

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
PROBES = 240
MAX_ACTIONS = 8  # that are rolled out at a probe
NUDGE = 0.3  # of the half width of the bounds: how far vectors are moved from what the expert does
SEEDS_PER_STEP = 16  # of a single step, where there is chance
# What share of the time may go where
EXPERT = 0.15
FIRST = 0.1
RANDOM = 0.1
ROLL_OUTS = 0.25
CHANGED = 0.15
IMPROVED = 0.15


@dataclass(frozen=True)
class Probes:
    """Steps out of episodes of the expert and of the first policy, and actions to try there."""

    states: Array  # [n, ...]
    times: Array  # [n]
    episode: Array  # [n]: which one it was of; those of the first policy have numbers of their own
    by_expert: Array  # [n] bool: whether the expert came there, or the first policy
    probe: Array  # [m]: of each action, at which of the n probes it is tried
    action: Array  # [m] or [m, A]
    own: Array  # [m] bool: whether it is what the expert does there

    @property
    def group(self) -> Array:
        """[m]: of each action, of which episode its probe was."""
        found: Array = self.episode[self.probe]
        return found

    @property
    def in_view(self) -> Array:
        """[m] bool: whether the expert itself comes to such states."""
        found: Array = self.by_expert[self.probe]
        return found


@dataclass(frozen=True)
class Examination:
    """One patient: a world with its expert, and a policy that has learned nothing yet."""

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
        """What the expert says that γ is."""
        return get_discount(self.expert)

    @cached_property
    def discounts(self) -> tuple[float, ...]:
        return tuple(sorted({*DISCOUNTS, self.discount}))

    @cached_property
    def capability(self) -> str:
        """By which method the expert tells costs: q, q_of, v, or none."""
        if isinstance(self.expert, DiscreteQExpert):
            return "q"
        if callable(getattr(self.expert, "q_of", None)):
            return "q_of"
        return "v" if isinstance(self.expert, StateValueExpert) else ""

    def make_seeds(self, part: int, count: int) -> Array:
        """Of episodes that nothing else is done with."""
        return derive_seeds(self.seed, SeedPurpose.EXAMINATION, part, count)

    def roll_in_affordable(self, mixture: RollInPolicy, part: int, share: float) -> Trajectories:
        roll_in(self.simulator, mixture, self.make_seeds(part, 1))  # what is compiled or loaded first shall not count
        return run_largest_affordable(
            lambda n: roll_in(self.simulator, mixture, self.make_seeds(part, n)), self.episodes, share * self.seconds
        )

    @cached_property
    def expert_trajectories(self) -> Trajectories:
        return self.roll_in_affordable(RollInPolicy(self.expert, None, 1.0), 0, EXPERT)

    @cached_property
    def first_policy_trajectories(self) -> Trajectories:
        policy = build_policy(self.config)
        self.config.built_problem.prepare(policy)
        return self.roll_in_affordable(RollInPolicy(None, policy.actor()), 0, FIRST)

    @cached_property
    def random_trajectories(self) -> Trajectories:
        actor: Actor = UniformActor(self.simulator.action_space)
        return self.roll_in_affordable(RollInPolicy(None, actor), 0, RANDOM)

    @cached_property
    def probe_rollouts(self) -> tuple[Probes, DiscountedRollouts]:
        """The probes, and what it costs to take each of their actions and then to follow the expert."""

        def work(n: int) -> tuple[Probes, DiscountedRollouts]:
            probes = self.sample_probes(n)
            at = probes.states[probes.probe], probes.times[probes.probe]
            return probes, run_discounted_rollouts(self.simulator, self.expert, *at, probes.action, self.discounts)

        return run_largest_affordable(work, PROBES, ROLL_OUTS * self.seconds)

    def sample_probes(self, count: int) -> Probes:
        """Half of them where the expert comes to, half where the first policy does; few of one episode."""
        parts = [
            sample_steps(of, -(-count // 2), self.seed)
            for of in (self.expert_trajectories, self.first_policy_trajectories)
        ]
        lanes, times = (np.concatenate([part[i] for part in parts]) for i in range(2))
        sizes = [len(part[0]) for part in parts]
        by_expert = np.repeat([True, False], sizes)
        states = np.concatenate(
            [
                of.states[k, t]
                for of, (k, t) in zip((self.expert_trajectories, self.first_policy_trajectories), parts, strict=True)
            ]
        )
        own = self.query_actions_at(states, times)
        probe, action, is_own = self.list_tried_actions(states, own)
        return Probes(
            states, times, lanes + ~by_expert * self.expert_trajectories.count, by_expert, probe, action, is_own
        )

    def query_actions_at(self, states: Array, times: Array) -> Array:
        """What the expert does in each of the states, at its own time."""
        space = self.simulator.action_space
        parts = [
            (rows, query_actions(self.expert, states[rows], int(t), space)) for t, rows in group_rows_by_time(times)
        ]
        first = parts[0][1]
        out = np.zeros((len(states), *first.shape[1:]), first.dtype)
        for rows, actions in parts:
            out[rows] = actions
        return out

    def list_tried_actions(self, states: Array, own: Array) -> tuple[Array, Array, Array]:
        """(probe [m], action [m, ...], own [m]): the expert's own action first, then others."""
        space = self.simulator.action_space
        rng = np.random.default_rng(self.seed)
        n = len(states)
        if isinstance(space, Discrete):
            rules = find_action_mask(self.simulator)
            count = int(space.n)
            legal = rules.action_mask(states).copy() if rules else np.ones((n, count), bool)
            if count > MAX_ACTIONS:
                lots = np.where(legal, rng.random((n, count)), np.inf)
                legal &= lots.argsort(axis=1).argsort(axis=1) < MAX_ACTIONS
            legal[np.arange(n), own] = True
            probe, action = np.nonzero(legal)
            return probe, action, action == own[probe]
        low, high = find_action_bounds(space)
        nudged = own[:, None] + NUDGE * (high - low) / 2 * rng.standard_normal((n, 4, len(low)))
        several = np.concatenate([own[:, None], nudged.clip(low, high)], axis=1)
        return np.repeat(np.arange(n), 5), several.reshape(n * 5, -1), np.tile([True] + [False] * 4, n)

    @cached_property
    def predicted_costs(self) -> Array:
        """[m]: what the expert believes that each tried action costs; of experts with V only that of their own."""
        probes, _ = self.probe_rollouts
        return self.query_costs(probes.states, probes.probe, probes.action)

    def query_costs(self, states: Array, which: Array, actions: Array) -> Array:
        """[m]: Q by the expert in the states [n, ...] of the actions [m] in those that `which` names, or V."""
        space = self.simulator.action_space
        if self.capability == "q" and isinstance(space, Discrete):
            assert isinstance(self.expert, DiscreteQExpert)
            every = query_q_values(self.expert, states, int(space.n))
            return np.asarray(every[which, actions], float)
        if self.capability == "q_of":
            part = f"the expert {self.expert.name}"
            said = call_user_code(part, "q_of", lambda: self.expert.q_of(states[which], actions), len(which))  # type: ignore[attr-defined]
            said = check_numeric_array(part, "costs-to-go", said, (len(which),), "mend its q_of")
            return np.asarray(check_finite(part, "costs-to-go", said, "check its weights"), float)
        return np.asarray(self.query_values(states)[which], float)

    def query_values(self, states: Array) -> Array:
        """[n]: V by the expert."""
        if isinstance(self.expert, StateValueExpert):
            return np.asarray(query_state_values(self.expert, states), float)
        if self.capability == "q":
            assert isinstance(self.expert, DiscreteQExpert)
            return np.asarray(query_q_values(self.expert, states).min(axis=1), float)
        if self.capability == "q_of":
            own = query_actions(self.expert, states, 0, self.simulator.action_space)
            return self.query_costs(states, np.arange(len(states)), own)
        raise UsageError(f"the expert {self.expert.name} tells no costs; give it a method q or v")

    @cached_property
    def lookahead_costs(self) -> Array:
        """[m]: c + γ V(s') of each tried action, by one step of the simulator and the expert's own V."""
        probes, rolled = self.probe_rollouts
        chance = find_reseedable(self.simulator)
        total = self.compute_lookahead_costs(rolled.first_cost, rolled.first_done, rolled.following)
        for luck in range(1, SEEDS_PER_STEP if chance is not None else 1):
            assert chance is not None
            fresh = self.make_seeds(100 + luck, len(probes.states))
            states = chance.reseed(probes.states, fresh)[probes.probe]
            following, cost, done = self.simulator.step(states, probes.action)
            total = total + self.compute_lookahead_costs(cost, done, following)
        return total / (SEEDS_PER_STEP if chance is not None else 1)

    def compute_lookahead_costs(self, cost: Array, done: Array, following: Array) -> Array:
        value = np.zeros(len(cost))
        if not done.all():
            value[~done] = self.query_values(following[~done])
        return np.asarray(cost + self.discount * value)

    @cached_property
    def mean_step_cost(self) -> float:
        """Of one step of the expert."""
        return float(self.expert_trajectories.costs[self.expert_trajectories.mask].mean())

    @cached_property
    def steps_per_second(self) -> tuple[float, float]:
        """Simulator steps per second of (episodes of a policy, roll-outs of the expert)."""
        began = time.perf_counter()
        policy = build_policy(self.config)
        self.config.built_problem.prepare(policy)
        found = roll_in(self.simulator, RollInPolicy(None, policy.actor()), self.make_seeds(1, 16))
        by_policy = found.simulator_steps / max(time.perf_counter() - began, 1e-6)
        began = time.perf_counter()
        probes = self.sample_probes(16)
        at = probes.states[probes.probe], probes.times[probes.probe]
        rolled = run_discounted_rollouts(self.simulator, self.expert, *at, probes.action, (1.0,))
        return by_policy, int(rolled.left.sum()) / max(time.perf_counter() - began, 1e-6)


def sample_steps(of: Trajectories, count: int, seed: int) -> tuple[Array, Array]:
    """(episode, time) of so many steps: as evenly over the episodes as can be, at random within each."""
    rng = np.random.default_rng(seed)
    lengths = of.mask.sum(axis=1)
    lanes = np.arange(count) % of.count
    return lanes, (rng.random(count) * lengths[lanes]).astype(int)


def group_rows_by_time(times: Array) -> list[tuple[int, Array]]:
    """(t, the rows at t) for each time."""
    return [(int(t), np.flatnonzero(times == t)) for t in np.unique(times)]
