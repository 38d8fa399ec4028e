"""Our simulators as Gymnasium environments, one episode at a time, for peers on tasks that Gymnasium does not have."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from aggrevated.core.arrays import Array
from aggrevated.simulators import Simulator


class AsEnvironment(gymnasium.Env):  # type: ignore[type-arg]
    """One episode of a simulator; the learner sees its latest observations, the newest last."""

    def __init__(self, simulator: Simulator, frames: int = 1) -> None:
        space = simulator.observation_space
        self.observation_space = Box(np.tile(space.low, frames), np.tile(space.high, frames))
        self.action_space = simulator.action_space
        self.simulator = simulator
        self.frames = frames

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = self.simulator.reset(self.np_random.integers(2**63, size=1, dtype=np.uint64))
        self.seen = first_frames(self.simulator.observe(self.state), self.frames)
        self.t = 0
        return self.seen[0], {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        self.state, cost, done = self.simulator.step(self.state, np.asarray(action)[None])
        self.seen = next_frames(self.seen, self.simulator.observe(self.state))
        self.t = self.t + 1
        return self.seen[0], -float(cost[0]), bool(done[0]), self.t >= self.simulator.horizon, {}


def first_frames(observations: Array, frames: int) -> Array:
    """Return the first observations with zeros before them, [n, frames · O]."""
    nothing = np.zeros((len(observations), (frames - 1) * observations.shape[1]), np.float32)
    return np.concatenate([nothing, observations], 1)


def next_frames(seen: Array, observations: Array) -> Array:
    """Return the frames with the newest observation at the end and without the oldest."""
    return np.concatenate([seen[:, observations.shape[1] :], observations], 1)


def mean_return_seen(simulator: Simulator, choose: Callable[[Array], Array], seeds: Array, frames: int) -> float:
    """Return the mean return of actions chosen from the latest observations, with one episode per seed."""
    state = simulator.reset(seeds)
    seen = first_frames(simulator.observe(state), frames)
    alive = np.ones(len(seeds), bool)
    total = np.zeros(len(seeds))
    for _ in range(simulator.horizon):
        state, cost, done = simulator.step(state, choose(seen))
        total -= np.where(alive, cost, 0.0)
        alive &= ~done
        seen = next_frames(seen, simulator.observe(state))
        if not alive.any():
            break
    return float(total.mean())
