"""Lines 4–5 of Algorithm 1: mix the policies, and execute the mixture to get K trajectories."""

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
    """π̂_n = α_n π* + (1 − α_n) π_θ: at every step the expert acts with probability α_n, else the learner (line 4)."""

    expert: Expert | None  # may be absent where alpha = 0
    learner: Actor | None  # may be absent where alpha = 1
    alpha: float = 0.0
    n: int = 1

    def __post_init__(self) -> None:
        assert 0.0 <= self.alpha <= 1.0, self.alpha
        assert self.alpha == 0.0 or self.expert is not None, "a mixture with alpha > 0 needs an expert"
        assert self.alpha == 1.0 or self.learner is not None, "a mixture with alpha < 1 needs a learner"

    def start(
        self, seeds: Array, horizon: int, deterministic: bool, stream: RandomStream = RandomStream.ACTIONS
    ) -> tuple[Array, Array, Array]:
        """(memory [K, M], noise [H, K, A], by_expert [H, K]): what K trajectories need besides their states."""
        generators = [make_generator(seed, stream) for seed in seeds]
        coins = np.stack([own.random(horizon, np.float32) for own in generators], axis=1)
        if self.learner is None:
            return np.zeros((len(seeds), 0)), np.zeros((horizon, len(seeds), 0)), coins < self.alpha
        silent = np.zeros((len(seeds), horizon, 1), np.float32)
        noise = silent if deterministic else self.learner.noise(generators, horizon)
        return self.learner.memory(len(seeds)), np.ascontiguousarray(noise.swapaxes(0, 1)), coins < self.alpha

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
        """(actions [n], memory [n, M]) at time t."""
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


def roll_in(simulator: Simulator, mixture: RollInPolicy, seeds: Array, deterministic: bool = False) -> Trajectories:
    """Execute π̂_n from ρ₀, one trajectory per seed (line 5); `deterministic` takes the learner's mode at each step."""
    trajectories = roll_in_blocks(simulator, mixture, seeds, deterministic)
    check_any_survived(trajectories.count, len(seeds))
    return trajectories


def roll_in_blocks(
    simulator: Simulator, mixture: RollInPolicy, seeds: Array, deterministic: bool = False
) -> Trajectories:
    """The same of some lanes of a batch: it may be that all of them diverged, and none is left.

    Lanes that have ended are dropped from the batch. All that is random belongs to a trajectory and its seed, and
    products are those of `products`: no trajectory depends on those beside it, by no bit.
    """
    found = try_compiled_rollout(simulator, mixture, seeds, deterministic)
    if found is not None:
        return to_trajectories(found, seeds, simulator.horizon, mixture)
    blocks = np.array_split(seeds, -(-len(seeds) // max_batch_size(simulator)))
    return concatenate_trajectories([roll_in_stepwise(simulator, mixture, block, deterministic) for block in blocks])


def roll_in_stepwise(simulator: Simulator, mixture: RollInPolicy, seeds: Array, deterministic: bool) -> Trajectories:
    """The same, step by step."""
    with add_error_position(seeds, step=0):
        lanes = np.arange(len(seeds))
        state = reset_and_check(simulator, seeds)
    memory, noise, by_expert = mixture.start(seeds, simulator.horizon, deterministic)
    rules = find_action_mask(simulator)
    replayed = count_replayed_steps(simulator)
    space = simulator.action_space
    steps = []
    for t in range(simulator.horizon):
        with add_error_position(seeds, lanes, t):
            observation = observe_and_check(simulator, state)
            chosen = by_expert[t].take(lanes)
            legal = rules.action_mask(state) if rules else None
            action, memory = mixture.act(state, observation, legal, memory, noise[t].take(lanes, 0), chosen, t, space)
            following, cost, done = step_and_check(simulator, state, action)
        steps.append(StepRecord(lanes, state, observation, action, cost, chosen, legal))
        if done.any():
            live = ~done
            lanes, following, memory = (x.compress(live, axis=0) for x in (lanes, following, memory))
            if not len(lanes):
                break
        state = following
    whole = stack_steps(steps, seeds, simulator.horizon, mixture.alpha)
    return replace(whole, n=mixture.n, unseen=whole.unseen + count_replayed_steps(simulator) - replayed)


def try_compiled_rollout(
    simulator: Simulator, mixture: RollInPolicy, seeds: Array, deterministic: bool, keep: bool = True
) -> CompiledEpisodes | None:
    """The same by one compiled loop, where there is one: the expert has none, nor have rules."""
    if not len(seeds) or simulator.horizon < 1:
        raise UsageError(
            f"{len(seeds)} episodes of at most {simulator.horizon} steps cannot be run; both must be 1 or more"
        )
    return (
        run_compiled_episodes(simulator, mixture.learner, seeds, deterministic, keep) if mixture.alpha == 0.0 else None
    )


def to_trajectories(found: CompiledEpisodes, seeds: Array, horizon: int, mixture: RollInPolicy) -> Trajectories:
    """What a compiled loop found, up to the end of the longest."""
    length = int(found.lengths.max())
    states, observations, actions, costs = (
        np.ascontiguousarray(array[:, :length])
        for array in (found.states, found.observations, found.actions, found.costs)
    )
    mask = np.arange(length) < found.lengths[:, None]
    by_expert = np.zeros((len(seeds), length), bool)
    return Trajectories(
        states, observations, actions, costs, mask, by_expert, horizon, mixture.alpha,
        seeds=np.asarray(seeds, np.uint64), n=mixture.n,
    )  # fmt: skip


def collect_episode_returns(
    simulator: Simulator, mixture: RollInPolicy, seeds: Array, deterministic: bool = False
) -> tuple[Array, int]:
    """(the return of each episode [K], all simulator steps): a roll-in of which nothing else is kept.

    Episodes that diverged have none.
    """
    found = try_compiled_rollout(simulator, mixture, seeds, deterministic, keep=False)
    if found is not None:
        return -found.totals, int(found.lengths.sum())
    trajectories = roll_in_blocks(simulator, mixture, seeds, deterministic)
    return trajectories.returns, trajectories.simulator_steps


class StepRecord(NamedTuple):
    """One time step of the n trajectories that are still running; but for `lanes`, named as in `Trajectories`."""

    lanes: Array  # [n]: which of the K they are
    states: Array  # [n, ...]
    observations: Array  # [n, ...]
    actions: Array  # [n] or [n, A]
    costs: Array  # [n]
    by_expert: Array  # [n]
    action_mask: Array | None  # [n, A], or None where all actions are


def stack_steps(steps: Sequence[StepRecord], seeds: Array, horizon: int, alpha: float) -> Trajectories:
    """The arrays of each time step, laid out as [K, T, ...]: every field is gathered in one go."""
    parts = dict(
        zip(StepRecord._fields, zip(*steps, strict=True), strict=True)
    )  # of each field, one array per time step
    lanes = np.concatenate(parts["lanes"])
    length = len(steps)
    count = len(seeds)
    times = np.repeat(np.arange(length), list(map(len, parts["lanes"])))
    source = np.full(count * length, len(lanes))  # for each place in [K·T] the step it holds, or the row of zeros
    source[lanes * length + times] = np.arange(len(lanes))

    def gather(name: str) -> Array:
        values = np.concatenate([*parts[name], np.zeros_like(parts[name][0][:1])])
        return values.take(source, axis=0).reshape(count, length, *values.shape[1:])

    mask = (source < len(lanes)).reshape(count, length)
    rules = steps[0].action_mask is not None
    found = Trajectories(
        states=gather("states"),
        observations=gather("observations"),
        actions=gather("actions"),
        costs=gather("costs"),
        mask=mask,
        by_expert=gather("by_expert"),
        horizon=horizon,
        alpha=alpha,
        action_mask=gather("action_mask") if rules else np.zeros((*mask.shape, 0), bool),
        seeds=np.asarray(seeds, np.uint64),
    )
    if rules and not np.take_along_axis(found.action_mask, found.actions[..., None], axis=2)[..., 0][mask].all():
        raise DataError(
            "an illegal action was taken: a state has no legal one, or the expert does not keep to the rules"
        )
    return drop_diverged(found)


def drop_diverged(trajectories: Trajectories) -> Trajectories:
    """Without those whose simulation diverged: a cost that is not finite says so. They and their steps are counted."""
    sound = np.asarray(np.isfinite(trajectories.costs).all(axis=1))
    if sound.all():
        return trajectories
    lost = trajectories.take(np.flatnonzero(~sound))
    return replace(trajectories.take(np.flatnonzero(sound)), diverged=lost.count, unseen=lost.steps)


def check_any_survived(left: int, episodes: int) -> None:
    """A `DataError` if none of the episodes is left."""
    if not left:
        raise DataError(
            f"the simulator returned a cost that is not finite in all of {episodes} episodes; check its step function"
        )


def replay_hidden_states(actor: Actor, trajectories: Trajectories) -> Array:
    """[K, T, M]: what the actor remembered at each step *before* it saw the observation; zeros after an episode's end.

    With it a roll-out can begin at any s_t. It is worked out again from what was seen and done: roll-ins keep nothing.
    """
    lanes = np.arange(trajectories.count)
    memory = actor.memory(trajectories.count)
    before = np.zeros((*trajectories.mask.shape, memory.shape[1]), memory.dtype)
    for t in range(trajectories.mask.shape[1]):
        live = trajectories.mask[lanes, t]
        lanes = lanes[live]
        memory = memory[live]
        before[lanes, t] = memory
        _, memory = actor.parameters(trajectories.observations[lanes, t], memory)
        memory = update_history(actor, memory, trajectories.actions[lanes, t])
    return before
