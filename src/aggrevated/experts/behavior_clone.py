"""A clone: an expert that stands in for whoever recorded demonstrations, so that it can be asked and rolled out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Discrete

from aggrevated.actors.networks import NumpyNetwork
from aggrevated.core.arrays import Array
from aggrevated.errors import DataError
from aggrevated.experts.demonstrations import Demonstrations
from aggrevated.experts.environment_view import EnvironmentView
from aggrevated.simulators import Simulator
from aggrevated.simulators.checked import checked_observe


@dataclass(frozen=True)
class BehaviorClone:
    """π*(s) by a network that was fitted to what was done: the likeliest of a finite set, or the mean of vectors."""

    name: str
    network: NumpyNetwork  # from standardised observations to log-odds, or to actions
    mean: Array  # float32 [O]
    scale: Array
    simulator: Simulator
    description: str  # what it was made of, and how well it agrees with that

    def act(self, states: Array, t: int) -> Array:
        shown = checked_observe(self.simulator, states).reshape(len(states), -1)
        given = self.network((shown - self.mean) / self.scale)
        space = self.simulator.action_space
        if isinstance(space, Discrete):
            chosen: Array = given.argmax(axis=1)
            return chosen
        return given.clip(space.low, space.high)

    @property
    def networks(self) -> tuple[NumpyNetwork, ...]:
        return (self.network,)


def fit_behavior_clone(
    recorded: Demonstrations, simulator: Simulator, name: str | None = None, seed: int = 0
) -> BehaviorClone:
    """Whoever recorded them, as far as a small network can tell; the same for the same seed."""
    from aggrevated.experts.behavior_clone_fit import fit_network

    translation, space = EnvironmentView(simulator).space_adapter, simulator.action_space
    shown = recorded.seen(translation).reshape(recorded.steps, -1).astype(np.float32)
    if shown.shape[1] != int(np.prod(simulator.observation_space.shape)):
        raise DataError(
            f"{recorded.source} show {shown.shape[1]} numbers, and {simulator.name} shows "
            f"{int(np.prod(simulator.observation_space.shape))}; record them in this environment"
        )
    mean, scale = shown.mean(axis=0), shown.std(axis=0)
    scale = np.where(scale > 1e-6 * (1.0 + np.abs(mean)), scale, 1.0).astype(np.float32)  # what never varied stays
    count = int(space.n) if isinstance(space, Discrete) else None
    held = split_held_out(recorded, seed)
    standard = (shown - mean) / scale
    network = fit_network(standard, recorded.done(translation), held, count, seed)
    agrees = describe_held_out_agreement(network(standard[held]), recorded.done(translation)[held], count is not None)
    return BehaviorClone(name or "clone", network, mean, scale, simulator, describe_clone(recorded, agrees))


def split_held_out(recorded: Demonstrations, seed: int) -> Array:
    """[N] bool: the steps that are not fitted to: of a tenth of the episodes, or of one alone every tenth step."""
    if recorded.episodes == 1:
        return np.asarray(np.arange(recorded.steps) % 10 == min(9, recorded.steps - 1))
    order = np.random.default_rng(seed).permutation(recorded.episodes)
    return np.isin(recorded.episode, order[: max(1, recorded.episodes // 10)])


def describe_held_out_agreement(given: Array, done: Array, finite: bool) -> str:
    """How well it does what was done, in words."""
    if finite:
        return f"chooses as recorded in {np.mean(given.argmax(axis=1) == done):.1%} of {len(done)} held-out steps"
    spread = float(((done - done.mean(axis=0)) ** 2).sum())
    left = float(((given - done) ** 2).sum())
    explained = f"{1 - left / spread:.1%}" if spread else "nothing"
    return f"explains {explained} of the variance of the actions in {len(done)} held-out steps"


def describe_clone(recorded: Demonstrations, agrees: str) -> str:
    """What it was made of."""
    mean = recorded.mean_return
    earned = "" if mean is None else f" with a mean return of {mean:.6g}"
    return f"a clone of {recorded.episodes} recorded episodes, {recorded.steps:,} steps{earned}: it {agrees}"
