"""Roll-in, lines 4–5 of Algorithm 1: mix expert and learner, and execute the mixture for K trajectories."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.actors import Actor
from aggrevated.actors.window import update_history
from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError, UsageError
from aggrevated.core.rng import RandomStream, make_generator
from aggrevated.core.user_code import add_error_position
from aggrevated.experts import Expert
from aggrevated.experts.checked import query_actions
from aggrevated.rollout.compiled import CompiledEpisodes, run_compiled_episodes
from aggrevated.rollout.trajectories import Trajectories, concatenate_trajectories
from aggrevated.simulators import Simulator, count_replayed_steps, find_action_mask, max_batch_size
from aggrevated.simulators.checked import observe_and_check, reset_and_check, step_and_check


@dataclass(frozen=True)
class RollInPolicy:
    """Mixture π̂_n = α_n π* + (1 − α_n) π_θ that collects data (line 4).

    Args:
        expert: π*, which acts at each step with probability α_n; may be None if `alpha` is 0.
        learner: actor of π_θ, which acts otherwise; may be None if `alpha` is 1.
        alpha: α_n in [0, 1].
        n: iteration.
    """

    expert: Expert | None
    learner: Actor | None
    alpha: float = 0.0
    n: int = 1

    def __post_init__(self) -> None:
        assert 0.0 <= self.alpha <= 1.0, self.alpha
        assert self.alpha == 0.0 or self.expert is not None, "a roll-in policy with alpha > 0 needs an expert"
        assert self.alpha == 1.0 or self.learner is not None, "a roll-in policy with alpha < 1 needs a learner"

    def start(
        self, seeds: Array, horizon: int, deterministic: bool, stream: RandomStream = RandomStream.ACTIONS
    ) -> tuple[Array, Array, Array]:
        """Draw everything random in the actions of K trajectories.

        Args:
            seeds: seeds of the trajectories, uint64 [K].
            horizon: H, the largest number of steps.
            deterministic: let the learner take the mode of its distribution (noise 0).
            stream: random stream to draw from.

        Returns:
            The learner's initial memory [K, M], its noise [H, K, A], and whether the expert acts, bool [H,
            K].
        """
        generators = [make_generator(seed, stream) for seed in seeds]
        uniforms = np.stack([generator.random(horizon, np.float32) for generator in generators], axis=1)
        by_expert = uniforms < self.alpha
        if self.learner is None:
            return np.zeros((len(seeds), 0)), np.zeros((horizon, len(seeds), 0)), by_expert
        zeros = np.zeros((len(seeds), horizon, 1), np.float32)
        noise = zeros if deterministic else self.learner.noise(generators, horizon)
        return self.learner.memory(len(seeds)), np.ascontiguousarray(noise.swapaxes(0, 1)), by_expert

    def act(
        self,
        state: Array,
        observation: Array,
        legal: Array | None,
        memory: Array,
        noise: Array,
        by_expert: Array,
        t: int,
        space: Discrete | Box,
    ) -> tuple[Array, Array]:
        """Choose the actions of n episodes at time t.

        Args:
            state: states [n, ...], for the expert.
            observation: observations [n, ...], for the learner.
            legal: legal actions, bool [n, A], or None if all are.
            memory: the learner's memory [n, M].
            noise: the learner's noise [n, A].
            by_expert: whether the expert acts, bool [n].
            t: time, from 0.
            space: action space of the simulator.

        Returns:
            The actions, [n] or [n, A], and the learner's next memory [n, M].
        """
        if self.learner is None:
            assert self.expert is not None
            return query_actions(self.expert, state, t, space), memory
        parameters, memory = self.learner.parameters(observation, memory)
        action = self.learner.choose(parameters, noise, legal)
        if self.expert is not None and by_expert.any():
            rows = np.flatnonzero(by_expert)
            with add_error_position(rows=rows):
                action[rows] = query_actions(self.expert, state[rows], t, space)
        return action, update_history(self.learner, memory, action)


def roll_in(simulator: Simulator, policy: RollInPolicy, seeds: Array, deterministic: bool = False) -> Trajectories:
    """Execute π̂_n from ρ₀ for one trajectory per seed (line 5).

    Args:
        simulator: simulator to step.
        policy: roll-in policy π̂_n.
        seeds: seeds of the trajectories, uint64 [K], as from `derive_seeds`.
        deterministic: let the learner take the mode of its distribution at each step.

    Returns:
        K trajectories, without those whose simulation diverged.

    Raises:
        DataError: all trajectories diverged, or an illegal action was taken.
        UsageError: `seeds` is empty, or the horizon is less than 1.

    Example:
        >>> from aggrevated import CartPole, CategoricalHead, FeedForwardPolicy, SeedPurpose, derive_seeds
        >>> simulator = CartPole(horizon=10)
        >>> learner = FeedForwardPolicy(4, CategoricalHead(2)).actor()
        >>> seeds = derive_seeds(0, SeedPurpose.ROLL_IN, 1, 3)
        >>> roll_in(simulator, RollInPolicy(None, learner), seeds).count
        3
    """
    trajectories = roll_in_blocks(simulator, policy, seeds, deterministic)
    check_any_survived(trajectories.count, len(seeds))
    return trajectories


def roll_in_blocks(
    simulator: Simulator, policy: RollInPolicy, seeds: Array, deterministic: bool = False
) -> Trajectories:
    """Roll in a part of a batch of trajectories, in blocks; all of them may have diverged.

    Random numbers come from the seed of each trajectory, and matrix products do not depend on the batch: no
    bit of a trajectory depends on the others.
    """
    episodes = try_compiled_rollout(simulator, policy, seeds, deterministic)
    if episodes is not None:
        return to_trajectories(episodes, seeds, simulator.horizon, policy)
    blocks = np.array_split(seeds, -(-len(seeds) // max_batch_size(simulator)))
    return concatenate_trajectories([roll_in_stepwise(simulator, policy, block, deterministic) for block in blocks])


def roll_in_stepwise(simulator: Simulator, policy: RollInPolicy, seeds: Array, deterministic: bool) -> Trajectories:
    """Roll in one block step by step; episodes that have ended leave the batch."""
    with add_error_position(seeds, step=0):
        episodes = np.arange(len(seeds))
        state = reset_and_check(simulator, seeds)
    memory, noise, by_expert = policy.start(seeds, simulator.horizon, deterministic)
    masked = find_action_mask(simulator)
    replayed = count_replayed_steps(simulator)
    space = simulator.action_space
    steps = []
    for t in range(simulator.horizon):
        with add_error_position(seeds, episodes, t):
            observation = observe_and_check(simulator, state)
            expert_acts = by_expert[t].take(episodes)
            legal = masked.action_mask(state) if masked else None
            step_noise = noise[t].take(episodes, 0)
            action, memory = policy.act(state, observation, legal, memory, step_noise, expert_acts, t, space)
            following, cost, done = step_and_check(simulator, state, action)
        steps.append(StepRecord(episodes, state, observation, action, cost, expert_acts, legal))
        if done.any():
            live = ~done
            episodes, following, memory = (x.compress(live, axis=0) for x in (episodes, following, memory))
            if not len(episodes):
                break
        state = following
    trajectories = stack_steps(steps, seeds, simulator.horizon, policy.alpha)
    unseen = trajectories.unseen + count_replayed_steps(simulator) - replayed
    return replace(trajectories, n=policy.n, unseen=unseen)


def try_compiled_rollout(
    simulator: Simulator, policy: RollInPolicy, seeds: Array, deterministic: bool, keep: bool = True
) -> CompiledEpisodes | None:
    """Run compiled episodes of the learner alone; return None without a compiled form."""
    if not len(seeds) or simulator.horizon < 1:
        raise UsageError(
            f"cannot run {len(seeds)} episodes of at most {simulator.horizon} steps; both must be at least 1"
        )
    return run_compiled_episodes(simulator, policy.learner, seeds, deterministic, keep) if policy.alpha == 0.0 else None


def to_trajectories(episodes: CompiledEpisodes, seeds: Array, horizon: int, policy: RollInPolicy) -> Trajectories:
    """Return compiled episodes as trajectories, cut at the end of the longest."""
    length = int(episodes.lengths.max())
    states, observations, actions, costs = (
        np.ascontiguousarray(array[:, :length])
        for array in (episodes.states, episodes.observations, episodes.actions, episodes.costs)
    )
    mask = np.arange(length) < episodes.lengths[:, None]
    by_expert = np.zeros((len(seeds), length), bool)
    return Trajectories(
        states, observations, actions, costs, mask, by_expert, horizon, policy.alpha,
        seeds=np.asarray(seeds, np.uint64), n=policy.n,
    )  # fmt: skip


def collect_episode_returns(
    simulator: Simulator, policy: RollInPolicy, seeds: Array, deterministic: bool = False
) -> tuple[Array, int]:
    """Return (returns of the episodes [K], simulator steps), without the episodes that diverged."""
    episodes = try_compiled_rollout(simulator, policy, seeds, deterministic, keep=False)
    if episodes is not None:
        return -episodes.totals, int(episodes.lengths.sum())
    trajectories = roll_in_blocks(simulator, policy, seeds, deterministic)
    return trajectories.returns, trajectories.simulator_steps


class StepRecord(NamedTuple):
    """One time step of the n episodes that are still running."""

    episodes: Array  # [n]: index k of each
    states: Array  # [n, ...]
    observations: Array  # [n, ...]
    actions: Array  # [n] or [n, A]
    costs: Array  # [n]
    by_expert: Array  # [n]
    action_mask: Array | None  # [n, A], or None if all actions are legal


def stack_steps(steps: Sequence[StepRecord], seeds: Array, horizon: int, alpha: float) -> Trajectories:
    """Return the records of all time steps as trajectories [K, T, ...]."""
    columns = dict(zip(StepRecord._fields, zip(*steps, strict=True), strict=True))  # arrays per time step
    episodes = np.concatenate(columns["episodes"])
    length = len(steps)
    count = len(seeds)
    times = np.repeat(np.arange(length), list(map(len, columns["episodes"])))
    source = np.full(count * length, len(episodes))  # row of each entry of [K·T], or the row of zeros
    source[episodes * length + times] = np.arange(len(episodes))

    def gather(name: str) -> Array:
        values = np.concatenate([*columns[name], np.zeros_like(columns[name][0][:1])])
        return values.take(source, axis=0).reshape(count, length, *values.shape[1:])

    mask = (source < len(episodes)).reshape(count, length)
    is_masked = steps[0].action_mask is not None
    trajectories = Trajectories(
        states=gather("states"),
        observations=gather("observations"),
        actions=gather("actions"),
        costs=gather("costs"),
        mask=mask,
        by_expert=gather("by_expert"),
        horizon=horizon,
        alpha=alpha,
        action_mask=gather("action_mask") if is_masked else np.zeros((*mask.shape, 0), bool),
        seeds=np.asarray(seeds, np.uint64),
    )
    if is_masked:
        is_legal = np.take_along_axis(trajectories.action_mask, trajectories.actions[..., None], axis=2)[..., 0]
        if not is_legal[mask].all():
            raise DataError(
                "an illegal action was taken; check that every state has a legal action, and that the expert "
                "takes legal actions only"
            )
    return drop_diverged(trajectories)


def drop_diverged(trajectories: Trajectories) -> Trajectories:
    """Return the trajectories with finite costs; the others diverged and are counted with their steps."""
    is_finite = np.asarray(np.isfinite(trajectories.costs).all(axis=1))
    if is_finite.all():
        return trajectories
    diverged = trajectories.take(np.flatnonzero(~is_finite))
    return replace(trajectories.take(np.flatnonzero(is_finite)), diverged=diverged.count, unseen=diverged.steps)


def check_any_survived(n_finite: int, n_episodes: int) -> None:
    """Raise a `DataError` if all episodes diverged."""
    if not n_finite:
        raise DataError(
            f"the simulator returned a cost that is not finite in all of {n_episodes} episodes; check its step function"
        )


def replay_hidden_states(actor: Actor, trajectories: Trajectories) -> Array:
    """Recompute an actor's memory before each step, so that a roll-out can start at any s_t.

    Args:
        actor: the learner's actor.
        trajectories: K trajectories with the actor's observations and actions.

    Returns:
        The memory before each observation, [K, T, M], with zeros after the end of an episode.
    """
    episodes = np.arange(trajectories.count)
    memory = actor.memory(trajectories.count)
    memories = np.zeros((*trajectories.mask.shape, memory.shape[1]), memory.dtype)
    for t in range(trajectories.mask.shape[1]):
        live = trajectories.mask[episodes, t]
        episodes = episodes[live]
        memory = memory[live]
        memories[episodes, t] = memory
        _, memory = actor.parameters(trajectories.observations[episodes, t], memory)
        memory = update_history(actor, memory, trajectories.actions[episodes, t])
    return memories
