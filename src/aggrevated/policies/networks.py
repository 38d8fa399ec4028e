"""Fully connected networks: made in torch with ReLU, run in torch or, one small batch after the other, in NumPy."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import nn

from aggrevated.arrays import Array
from aggrevated.products import affine


def relu_network(
    sizes: Sequence[int], generator: torch.Generator | None = None, last_gain: float = 1.0
) -> nn.Sequential:
    """A ReLU network with He's initialisation and zero biases; the last layer's weights are scaled by `last_gain`."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        linear = nn.Linear(inputs, outputs)
        nn.init.kaiming_uniform_(linear.weight, nonlinearity="relu", generator=generator)
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.ReLU()]
    with torch.no_grad():
        linear.weight *= last_gain
    return nn.Sequential(*layers[:-1])


ZERO = np.zeros((), np.float32)
ACTIVATIONS = ("relu", "tanh")


@dataclass(frozen=True)
class NumpyNetwork:
    """The same network on NumPy copies of its weights: `network(x)` for x [n, inputs] gives [n, outputs]."""

    weights: tuple[Array, ...]  # each [inputs, outputs]
    biases: tuple[Array, ...]
    activation: str = "relu"  # or "tanh", as of experts from elsewhere

    @classmethod
    def copy_of(cls, network: nn.Sequential) -> "NumpyNetwork":
        linear = [layer for layer in network if isinstance(layer, nn.Linear)]
        return cls(
            tuple(layer.weight.detach().numpy().T.copy() for layer in linear),
            tuple(layer.bias.detach().numpy().copy() for layer in linear),
        )

    def __post_init__(self) -> None:
        assert self.activation in ACTIVATIONS, self.activation

    def __call__(self, x: Array) -> Array:
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = affine(x, weight, bias)
            if self.activation == "relu":
                np.maximum(x, ZERO, out=x)
            else:
                np.tanh(x, out=x)
        return affine(x, self.weights[-1], self.biases[-1])
