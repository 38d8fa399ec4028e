"""Fits a small network to recorded actions, until it agrees no better with those that were held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from gymnasium.spaces import Discrete
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from aggrevated.actors.feed_forward import NumpyNetwork
from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError
from aggrevated.core.hardware import single_thread
from aggrevated.experts.demonstrations import Demonstrations
from aggrevated.experts.environment_view import EnvironmentView
from aggrevated.kernels.adam import Adam
from aggrevated.policies.feed_forward import make_relu_network
from aggrevated.simulators import Simulator
from aggrevated.simulators.checked import observe_and_check

WIDTHS = (64, 64)
LEARNING_RATE = 3e-3
MINIBATCH = 256
STEPS_PER_EVALUATION = 100  # steps from one look at what was held out to the next
PATIENCE = 8  # looks without an improvement of a hundredth
ENOUGH = 5e-4  # nats, or of the variance
MOST = 5_000  # steps


def fit_network(shown: Array, done: Array, held: Array, count: int | None, seed: int) -> NumpyNetwork:
    """From observations [N, O] to the log-odds of `count` actions, by likelihood; or to vectors, by least squares."""
    finite = count is not None
    vectors = done.reshape(len(done), -1).astype(np.float32)
    mean = vectors.mean(axis=0)
    scale = np.maximum(vectors.std(axis=0), 1e-6)
    targets = torch.from_numpy(done.astype(np.int64) if finite else (vectors - mean) / scale)
    with single_thread():
        generator = torch.Generator().manual_seed(seed)
        outputs = count if count is not None else vectors.shape[1]
        network = make_relu_network([shown.shape[1], *WIDTHS, outputs], generator, last_gain=0.1)
        train_epochs(network, torch.from_numpy(shown), targets, torch.from_numpy(held), finite, generator)
        copy = NumpyNetwork.copy_of(network)
    if finite:
        return copy
    weights = (*copy.weights[:-1], copy.weights[-1] * scale)
    biases = (*copy.biases[:-1], copy.biases[-1] * scale + mean)
    return NumpyNetwork(weights, biases, copy.activation)


def train_epochs(
    network: nn.Sequential, shown: Tensor, targets: Tensor, held: Tensor, finite: bool, generator: torch.Generator
) -> None:
    """Adam on minibatches of what is not held out; the weights that agreed best with what is are kept."""
    loss = cross_entropy if finite else mse_loss
    optimizer = Adam(network.parameters(), lr=LEARNING_RATE)
    rows = torch.nonzero(~held)[:, 0]
    rows = rows if len(rows) else torch.arange(len(held))  # of one step alone nothing can be held out
    best = np.inf
    kept = {name: w.clone() for name, w in network.state_dict().items()}
    waited = 0
    for step in range(1, MOST + 1):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - (step - 1) / MOST)
        batch = rows[torch.randint(len(rows), (min(MINIBATCH, len(rows)),), generator=generator)]
        optimizer.zero_grad()
        loss(network(shown[batch]), targets[batch]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if step % STEPS_PER_EVALUATION == 0:
            with torch.no_grad():
                now = float(loss(network(shown[held]), targets[held]))
            waited = 0 if now < 0.99 * best else waited + 1
            if now < best:
                best = now
                kept = {name: w.clone() for name, w in network.state_dict().items()}
            if waited == PATIENCE or best < ENOUGH:
                break
    network.load_state_dict(kept)


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
        shown = observe_and_check(self.simulator, states).reshape(len(states), -1)
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

    translation = EnvironmentView(simulator).space_adapter
    space = simulator.action_space
    shown = recorded.convert_observations(translation).reshape(recorded.steps, -1).astype(np.float32)
    if shown.shape[1] != int(np.prod(simulator.observation_space.shape)):
        raise DataError(
            f"{recorded.source} show {shown.shape[1]} numbers, and {simulator.name} shows "
            f"{int(np.prod(simulator.observation_space.shape))}; record them in this environment"
        )
    mean = shown.mean(axis=0)
    scale = shown.std(axis=0)
    scale = np.where(scale > 1e-6 * (1.0 + np.abs(mean)), scale, 1.0).astype(np.float32)  # what never varied stays
    count = int(space.n) if isinstance(space, Discrete) else None
    held = split_held_out(recorded, seed)
    standard = (shown - mean) / scale
    network = fit_network(standard, recorded.convert_actions(translation), held, count, seed)
    agrees = describe_held_out_agreement(
        network(standard[held]), recorded.convert_actions(translation)[held], count is not None
    )
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
