"""Fits a small network to recorded actions, until it agrees no better with those that were held out."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from aggrevated.actors.networks import NumpyNetwork
from aggrevated.core.arrays import Array
from aggrevated.core.hardware import single_thread
from aggrevated.kernels.adam import Adam
from aggrevated.policies.mlp import relu_network

WIDTHS = (64, 64)
LEARNING_RATE = 3e-3
MINIBATCH = 256
STEPS_PER_EVALUATION = 100  # steps from one look at what was held out to the next
PATIENCE = 8  # looks without an improvement of a hundredth
ENOUGH = 5e-4  # nats, or of the variance
MOST = 5_000  # steps


def fit_network(shown: Array, done: Array, held: Array, count: int | None, seed: int) -> NumpyNetwork:
    """From observations [N, O] to the log-odds of `count` actions, by likelihood; or to vectors, by least squares."""
    finite, vectors = count is not None, done.reshape(len(done), -1).astype(np.float32)
    mean, scale = vectors.mean(axis=0), np.maximum(vectors.std(axis=0), 1e-6)
    targets = torch.from_numpy(done.astype(np.int64) if finite else (vectors - mean) / scale)
    with single_thread():
        generator = torch.Generator().manual_seed(seed)
        outputs = count if count is not None else vectors.shape[1]
        network = relu_network([shown.shape[1], *WIDTHS, outputs], generator, last_gain=0.1)
        train_epochs(network, torch.from_numpy(shown), targets, torch.from_numpy(held), finite, generator)
        copy = NumpyNetwork.copy_of(network)
    if finite:
        return copy
    weights, biases = (
        (*copy.weights[:-1], copy.weights[-1] * scale),
        (*copy.biases[:-1], copy.biases[-1] * scale + mean),
    )
    return NumpyNetwork(weights, biases, copy.activation)


def train_epochs(
    network: nn.Sequential, shown: Tensor, targets: Tensor, held: Tensor, finite: bool, generator: torch.Generator
) -> None:
    """Adam on minibatches of what is not held out; the weights that agreed best with what is are kept."""
    loss = cross_entropy if finite else mse_loss
    optimizer, rows = Adam(network.parameters(), lr=LEARNING_RATE), torch.nonzero(~held)[:, 0]
    rows = rows if len(rows) else torch.arange(len(held))  # of one step alone nothing can be held out
    best, kept, waited = np.inf, {name: w.clone() for name, w in network.state_dict().items()}, 0
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
                best, kept = now, {name: w.clone() for name, w in network.state_dict().items()}
            if waited == PATIENCE or best < ENOUGH:
                break
    network.load_state_dict(kept)
