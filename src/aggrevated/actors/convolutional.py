"""Actors that observe pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.random import Generator

from aggrevated.actors.feed_forward import ZERO32, FeedForwardActor
from aggrevated.core.arrays import Array
from aggrevated.kernels.linear_algebra import affine

if TYPE_CHECKING:
    from torch import nn

WHITE = np.float32(255.0)


@dataclass(frozen=True)
class NumpyConvolution:
    """A convolution with a ReLU, as one matrix product: [n, H, W, C] to [n, ⌈H/s⌉, ⌈W/s⌉, outputs]."""

    weight: Array  # [C·k·k, outputs]
    bias: Array
    width: int  # k, odd; the padding is k // 2 zeros on every side
    stride: int  # s

    @classmethod
    def copy_of(cls, layer: nn.Conv2d) -> NumpyConvolution:
        bias: Any = layer.bias
        weight = layer.weight.detach().flatten(1).numpy().T.copy()
        return cls(weight, bias.detach().numpy().copy(), layer.kernel_size[0], layer.stride[0])

    def __call__(self, x: Array) -> Array:
        side = (self.width // 2, self.width // 2)
        padded = np.pad(x, ((0, 0), side, side, (0, 0)))
        windows = sliding_window_view(padded, (self.width, self.width), axis=(1, 2))
        patches = windows[:, :: self.stride, :: self.stride]  # [n, h, w, C, k, k]
        out = affine(patches.reshape(-1, len(self.weight)), self.weight, self.bias)
        np.maximum(out, ZERO32, out=out)
        return out.reshape(*patches.shape[:3], len(self.bias))


@dataclass(frozen=True)
class ConvolutionalActor:
    """NumPy copy of a convolutional policy."""

    shape: tuple[int, int, int]  # H, W, C of a picture
    convolutions: tuple[NumpyConvolution, ...]
    inner: FeedForwardActor

    def memory(self, count: int) -> Array:
        return self.inner.memory(count)

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        return self.inner.noise(generators, horizon)

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        """Return the parameters for pictures [n, H, W, C], or [n, H, W] if C is 1, and the memory."""
        if observation.shape[1:] not in (self.shape, self.shape[: 2 if self.shape[2] == 1 else 3]):
            raise ValueError(f"a picture has shape {observation.shape[1:]}, but the policy reads {self.shape}")
        x = observation.astype(np.float32, copy=False).reshape(-1, *self.shape) / WHITE
        for convolution in self.convolutions:
            x = convolution(x)
        return self.inner.parameters(x.reshape(len(x), -1), memory)

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None = None) -> Array:
        return self.inner.choose(parameters, noise, legal)
