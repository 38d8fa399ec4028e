"""Fully connected networks on NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator

from aggrevated.actors.activations import ACTIVATIONS
from aggrevated.actors.samplers import Sampler
from aggrevated.core.arrays import Array
from aggrevated.kernels.elementary_functions import tanh_scalar
from aggrevated.kernels.linear_algebra import add_row, affine, copy_row, njit_cached

if TYPE_CHECKING:
    from torch import nn


ZERO32 = np.float32(0.0)


@dataclass(frozen=True)
class NumpyNetwork:
    """NumPy copy of a fully connected network: `network(x)` maps x [n, inputs] to [n, outputs]."""

    weights: tuple[Array, ...]  # each [inputs, outputs]
    biases: tuple[Array, ...]
    activation: str = "relu"  # a name in ACTIVATIONS

    @classmethod
    def copy_of(cls, network: nn.Sequential) -> NumpyNetwork:
        linear: list[Any] = [layer for layer in network if hasattr(layer, "weight")]
        return cls(
            tuple(layer.weight.detach().numpy().T.copy() for layer in linear),
            tuple(layer.bias.detach().numpy().copy() for layer in linear),
        )

    def __post_init__(self) -> None:
        assert self.activation in ACTIVATIONS, self.activation

    def __call__(self, x: Array) -> Array:
        activation = ACTIVATIONS[self.activation]
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = activation(affine(x, weight, bias))
        return affine(x, self.weights[-1], self.biases[-1])


@njit_cached
def compute_network_row(x, weights, biases, relu, layers):  # type: ignore[no-untyped-def]
    """Return the outputs of the network for one row x [inputs]; `layers` [2, max width] is a buffer."""
    for i in range(len(weights)):
        row = layers[i % 2, : len(biases[i])]
        copy_row(row, biases[i])
        add_row(row, x, weights[i])
        if i + 1 < len(weights):
            for j in range(len(row)):
                row[j] = max(row[j], ZERO32) if relu else tanh_scalar(row[j])
        x = row
    return x


@dataclass(frozen=True)
class FeedForwardActor:
    """NumPy copy of a feed-forward policy."""

    network: NumpyNetwork
    sampler: Sampler

    def memory(self, count: int) -> Array:
        return np.zeros((count, 0), np.float32)

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        return self.sampler.noise(generators, horizon)

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        return self.network(observation), memory

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None = None) -> Array:
        return self.sampler.choose(parameters, noise, legal)
