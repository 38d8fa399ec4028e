"""Fully connected networks with ReLU."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn


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
