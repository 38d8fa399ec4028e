"""Behavior cloning: fits a small network to recorded actions, with early stopping on held-out steps."""

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
STEPS_PER_EVALUATION = 100  # optimizer steps between evaluations on the held-out steps
PATIENCE = 8  # evaluations without an improvement of one percent
TARGET_LOSS = 5e-4  # nats, or fraction of the variance; reaching it ends the fit
MAX_STEPS = 5_000  # optimizer steps


def fit_network(observations: Array, actions: Array, held_out: Array, count: int | None, seed: int) -> NumpyNetwork:
    """Fit a network from observations [N, O] to logits of `count` actions, or to action vectors for None.

    The loss is the negative log-likelihood of discrete actions, or the squared error of vectors.
    """
    discrete = count is not None
    vectors = actions.reshape(len(actions), -1).astype(np.float32)
    mean = vectors.mean(axis=0)
    scale = np.maximum(vectors.std(axis=0), 1e-6)
    targets = torch.from_numpy(actions.astype(np.int64) if discrete else (vectors - mean) / scale)
    with single_thread():
        generator = torch.Generator().manual_seed(seed)
        outputs = count if count is not None else vectors.shape[1]
        network = make_relu_network([observations.shape[1], *WIDTHS, outputs], generator, last_gain=0.1)
        inputs = torch.from_numpy(observations)
        train_epochs(network, inputs, targets, torch.from_numpy(held_out), discrete, generator)
        copy = NumpyNetwork.copy_of(network)
    if discrete:
        return copy
    weights = (*copy.weights[:-1], copy.weights[-1] * scale)
    biases = (*copy.biases[:-1], copy.biases[-1] * scale + mean)
    return NumpyNetwork(weights, biases, copy.activation)


def train_epochs(
    network: nn.Sequential,
    observations: Tensor,
    targets: Tensor,
    held_out: Tensor,
    discrete: bool,
    generator: torch.Generator,
) -> None:
    """Fit by Adam on minibatches, and leave the network with the weights of the least held-out loss."""
    loss = cross_entropy if discrete else mse_loss
    optimizer = Adam(network.parameters(), lr=LEARNING_RATE)
    rows = torch.nonzero(~held_out)[:, 0]
    rows = rows if len(rows) else torch.arange(len(held_out))  # a single step is used for both
    best_loss = np.inf
    best_weights = {name: w.clone() for name, w in network.state_dict().items()}
    evaluations_since_best = 0
    for step in range(1, MAX_STEPS + 1):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - (step - 1) / MAX_STEPS)
        batch = rows[torch.randint(len(rows), (min(MINIBATCH, len(rows)),), generator=generator)]
        optimizer.zero_grad()
        loss(network(observations[batch]), targets[batch]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if step % STEPS_PER_EVALUATION == 0:
            with torch.no_grad():
                held_out_loss = float(loss(network(observations[held_out]), targets[held_out]))
            evaluations_since_best = 0 if held_out_loss < 0.99 * best_loss else evaluations_since_best + 1
            if held_out_loss < best_loss:
                best_loss = held_out_loss
                best_weights = {name: w.clone() for name, w in network.state_dict().items()}
            if evaluations_since_best == PATIENCE or best_loss < TARGET_LOSS:
                break
    network.load_state_dict(best_weights)


@dataclass(frozen=True)
class BehaviorClone:
    """An expert cloned from demonstrations: its network returns logits of discrete actions, or action vectors."""

    name: str
    network: NumpyNetwork  # from standardized observations to logits, or to actions
    mean: Array  # float32 [O], of the observations
    scale: Array  # float32 [O]
    simulator: Simulator
    description: str  # of the demonstrations, and how well the network agrees with them

    def act(self, states: Array, t: int) -> Array:
        observations = observe_and_check(self.simulator, states).reshape(len(states), -1)
        outputs = self.network((observations - self.mean) / self.scale)
        space = self.simulator.action_space
        if isinstance(space, Discrete):
            actions: Array = outputs.argmax(axis=1)
            return actions
        return outputs.clip(space.low, space.high)

    @property
    def networks(self) -> tuple[NumpyNetwork, ...]:
        return (self.network,)


def fit_behavior_clone(
    demonstrations: Demonstrations, simulator: Simulator, name: str | None = None, seed: int = 0
) -> BehaviorClone:
    """Fit a small network to demonstrations; the result is a function of the demonstrations and the seed."""
    adapter = EnvironmentView(simulator).space_adapter
    space = simulator.action_space
    observations = demonstrations.convert_observations(adapter)
    observations = observations.reshape(demonstrations.steps, -1).astype(np.float32)
    size = int(np.prod(simulator.observation_space.shape))
    if observations.shape[1] != size:
        raise DataError(
            f"observations of {demonstrations.source} have {observations.shape[1]} numbers, but those of "
            f"{simulator.name} have {size}; record them in this environment"
        )
    mean = observations.mean(axis=0)
    scale = observations.std(axis=0)
    is_constant = ~(scale > 1e-6 * (1.0 + np.abs(mean)))
    scale = np.where(is_constant, 1.0, scale).astype(np.float32)
    count = int(space.n) if isinstance(space, Discrete) else None
    held_out = split_held_out(demonstrations, seed)
    standardized = (observations - mean) / scale
    actions = demonstrations.convert_actions(adapter)
    network = fit_network(standardized, actions, held_out, count, seed)
    agreement = describe_held_out_agreement(network(standardized[held_out]), actions[held_out], count is not None)
    return BehaviorClone(name or "clone", network, mean, scale, simulator, describe_clone(demonstrations, agreement))


def split_held_out(demonstrations: Demonstrations, seed: int) -> Array:
    """Return the held-out steps, bool [N]: a tenth of the episodes, or every tenth step of a single one."""
    if demonstrations.episodes == 1:
        return np.asarray(np.arange(demonstrations.steps) % 10 == min(9, demonstrations.steps - 1))
    order = np.random.default_rng(seed).permutation(demonstrations.episodes)
    return np.isin(demonstrations.episode, order[: max(1, demonstrations.episodes // 10)])


def describe_held_out_agreement(outputs: Array, actions: Array, discrete: bool) -> str:
    """Describe how well the network's outputs agree with the recorded actions."""
    n = len(actions)
    if discrete:
        return f"chooses as recorded in {np.mean(outputs.argmax(axis=1) == actions):.1%} of {n} held-out steps"
    variation = float(((actions - actions.mean(axis=0)) ** 2).sum())
    residual = float(((outputs - actions) ** 2).sum())
    explained = f"{1 - residual / variation:.1%}" if variation else "nothing"
    return f"explains {explained} of the variance of the actions in {n} held-out steps"


def describe_clone(demonstrations: Demonstrations, agreement: str) -> str:
    """Describe the demonstrations and the held-out agreement."""
    mean = demonstrations.mean_return
    mean_return = "" if mean is None else f" with a mean return of {mean:.6g}"
    return (
        f"a clone of {demonstrations.episodes} recorded episodes, {demonstrations.steps:,} steps{mean_return}: "
        f"it {agreement}"
    )
