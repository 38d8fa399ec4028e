"""Lines 4–5 of Algorithm 1: mix the policies, and execute the mixture to get K trajectories."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aggrevated.arrays import Array
from aggrevated.errors import DataError
from aggrevated.experts import Expert
from aggrevated.policies import Actor
from aggrevated.randomness import generator
from aggrevated.simulators import Simulator
from aggrevated.trajectories import Trajectories


@dataclass(frozen=True)
class Mixture:
    """π̂_n = α_n π* + (1 − α_n) π_θ: at every step the expert acts with probability α_n, else the learner (line 4)."""

    expert: Expert | None  # may be absent where alpha = 0
    learner: Actor | None  # may be absent where alpha = 1
    alpha: float = 0.0

    def __post_init__(self) -> None:
        assert 0.0 <= self.alpha <= 1.0, self.alpha
        assert self.alpha == 0.0 or self.expert is not None, "a mixture with alpha > 0 needs an expert"
        assert self.alpha == 1.0 or self.learner is not None, "a mixture with alpha < 1 needs a learner"

    def start(self, seeds: Array, horizon: int, deterministic: bool) -> tuple[Array, Array, Array]:
        """(memory [K, M], noise [K, H, A], coins [K, H]): what K trajectories need besides their states."""
        generators = [generator(seed) for seed in seeds]
        coins = np.stack([own.random(horizon, np.float32) for own in generators])
        if self.learner is None:
            return np.zeros((len(seeds), 0)), np.zeros((len(seeds), horizon, 0)), coins
        silent = np.zeros((len(seeds), horizon, 1), np.float32)
        noise = silent if deterministic else self.learner.noise(generators, horizon)
        return self.learner.memory(len(seeds)), noise, coins

    def act(
        self, state: Array, observation: Array, memory: Array, noise: Array, coin: Array, t: int
    ) -> tuple[Array, Array, Array]:
        """(actions [n], by_expert [n], memory [n, M]) at time t."""
        by_expert = coin < self.alpha
        if self.learner is None:
            assert self.expert is not None
            return self.expert.act(state, t), by_expert, memory
        parameters, memory = self.learner.parameters(observation, memory)
        action = self.learner.choose(parameters, noise)
        if self.expert is not None and by_expert.any():
            action[by_expert] = self.expert.act(state[by_expert], t)
        return action, by_expert, memory


def roll_in(simulator: Simulator, mixture: Mixture, seeds: Array, deterministic: bool = False) -> Trajectories:
    """Execute π̂_n from ρ₀, one trajectory per seed (line 5); `deterministic` takes the learner's mode at each step.

    Lanes that have ended are dropped from the batch. All that is random belongs to a trajectory and its seed, so no
    trajectory depends on those beside it.
    """
    lanes, state = np.arange(len(seeds)), simulator.initial(seeds)
    memory, noise, coins = mixture.start(seeds, simulator.horizon, deterministic)
    steps = []
    for t in range(simulator.horizon):
        observation = simulator.observe(state)
        action, by_expert, memory = mixture.act(state, observation, memory, noise[:, t], coins[:, t], t)
        following, cost, done = simulator.step(state, action)
        steps.append((lanes, state, observation, action, cost, by_expert))
        if done.any():
            live = ~done
            lanes, following, memory, noise, coins = (x[live] for x in (lanes, following, memory, noise, coins))
            if not len(lanes):
                break
        state = following
    return assemble(steps, len(seeds), simulator.horizon, mixture.alpha)


def assemble(steps: Sequence[tuple[Array, ...]], count: int, horizon: int, alpha: float) -> Trajectories:
    """The arrays of each time step, laid out as [K, T, ...]; every field is scattered in one go."""
    lanes = [step[0] for step in steps]
    times = np.repeat(np.arange(len(steps)), [len(lane) for lane in lanes])
    at = np.concatenate(lanes) * len(steps) + times  # the place of each step in [K·T]

    def scatter(values: Array) -> Array:
        out = np.zeros((count * len(steps), *values.shape[1:]), values.dtype)
        out[at] = values
        return out.reshape(count, len(steps), *values.shape[1:])

    states, observations, actions, costs, by_expert = (
        scatter(np.concatenate([step[field] for step in steps])) for field in range(1, 6)
    )
    if not np.isfinite(costs).all():
        raise DataError("the simulator returned a cost that is not finite; check its step function")
    mask = scatter(np.ones(len(at), bool))
    return Trajectories(states, observations, actions, costs, mask, by_expert, horizon, alpha)
