"""Policies for pictures: a few convolutions, followed by a feed-forward policy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from gymnasium.spaces import Box, Space
from torch import Tensor, nn
from torch.distributions import Distribution

from aggrevated.actors.convolutional import WHITE, ConvolutionalActor, NumpyConvolution
from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError
from aggrevated.core.spaces import MAX_IMAGE_SIZE
from aggrevated.policies import DEFAULT_WIDTHS, HiddenSettings, Policy, make_initial_generator
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import Head
from aggrevated.storage import JsonDict

SMALLEST = 8  # pixels: the least height and width
LARGE = 64  # pixels of height or width, from which on the stride of the first convolution is 4
SMALL = 32  # pixels of height and width, up to which there are only two convolutions


class ConvolutionalPolicy(Policy):
    """π_θ(a|o) for pictures o [H, W, C] or [H, W] of numbers from 0 to 255, without memory.

    The weights of its last layer are scaled by 0.1, so that π₁ is nearly uniform.

    Args:
        shape: Shape of a picture, (H, W, C) or (H, W), in pixels and channels.
        head: Output layer, for the action space.
        hidden: Units of each hidden layer after the convolutions.
        generator: Generator of the initial weights; by default they are always the same.
    """

    memoryless = True
    registry_name = "cnn"

    def __init__(
        self,
        shape: Sequence[int],
        head: Head,
        hidden: Sequence[int] = DEFAULT_WIDTHS,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        height, width, *channels = shape
        self.seen = tuple(shape)
        self.picture = (height, width, channels[0] if channels else 1)
        generator = generator or make_initial_generator(0)
        self.convolutions = nn.Sequential()
        outputs = self.picture[2]
        size_left = (height, width)
        for filters, size, stride in choose_convolutions(height, width):
            layer = nn.Conv2d(outputs, filters, size, stride, padding=size // 2)
            nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu", generator=generator)
            nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
            self.convolutions.extend([layer, nn.ReLU()])
            outputs = filters
            size_left = (-(-size_left[0] // stride), -(-size_left[1] // stride))
        self.inner = FeedForwardPolicy(outputs * size_left[0] * size_left[1], head, hidden, generator)

    def distribution(self, observations: Tensor, mask: Tensor, legal: Tensor | None = None) -> Distribution:
        pictures = observations.reshape(-1, *self.picture) / float(WHITE)  # [K·T, H, W, C]
        features = self.convolutions(pictures.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        return self.inner.distribution(features.reshape(*observations.shape[:2], -1), mask, legal)

    @property
    def head(self) -> Head:  # type: ignore[override]
        """Return the head of the inner policy, so that its parameters are not registered twice."""
        return self.inner.head

    def actor(self) -> ConvolutionalActor:
        convolutions = (layer for layer in self.convolutions if isinstance(layer, nn.Conv2d))
        return ConvolutionalActor(self.picture, tuple(map(NumpyConvolution.copy_of, convolutions)), self.inner.actor())

    def architecture(self) -> JsonDict:
        """Return the JSON from which `from_architecture` builds an equal policy."""
        return {"observations": list(self.seen), "hidden": self.inner.sizes[1:-1]}

    @classmethod
    def from_architecture(cls, shape: JsonDict, head: Head) -> Self:
        return cls(get_image_shape(Box(0, 255, tuple(shape["observations"]))), head, shape["hidden"])

    def _read(self, observation: Any) -> tuple[Array, bool]:
        if self.space_adapter is not None:
            return super()._read(observation)
        pictures = np.asarray(observation, np.float32)
        single = pictures.ndim == len(self.seen)
        return pictures[None] if single else pictures, single


def choose_convolutions(height: int, width: int) -> list[tuple[int, int, int]]:
    """Return (filters, width of a filter, stride) of each convolution, for a picture size in pixels."""
    first = 4 if max(height, width) >= LARGE else 2
    layers = [(16, 5, first), (32, 3, 2)]
    return [*layers, (32, 3, 2)] if max(height, width) > SMALL else layers


def get_image_shape(observations: Space[Any]) -> tuple[int, ...]:
    """Return the shape of pictures, (H, W) or (H, W, C); raise a `UsageError` for other observations."""
    shape = observations.shape or ()
    if not isinstance(observations, Box) or len(shape) not in (2, 3) or min(shape[:2]) < SMALLEST or not min(shape):
        raise UsageError(
            f"the policy cnn reads pictures [H, W] or [H, W, C] of at least {SMALLEST} × {SMALLEST} pixels, "
            f"not {type(observations).__name__}{shape}; choose another --policy, or wrap the environment"
        )
    size = torch.Size(shape).numel()
    if size > MAX_IMAGE_SIZE:
        raise UsageError(
            f"the policy cnn reads pictures of at most {MAX_IMAGE_SIZE:,} numbers, these have {size:,}: "
            "wrap the environment in gymnasium.wrappers.GrayscaleObservation and ResizeObservation"
        )
    return shape


@dataclass(frozen=True)
class ConvolutionalSettings(HiddenSettings):
    """Convolutional network for pictures, without memory."""

    name = "cnn"

    def build(self, observations: Space[Any], head: Head, seed: int) -> ConvolutionalPolicy:
        return ConvolutionalPolicy(get_image_shape(observations), head, self.hidden, make_initial_generator(seed))
