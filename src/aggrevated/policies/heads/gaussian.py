"""Vectors as actions: a Gaussian around the outputs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box, Space
from torch import Tensor, nn
from torch.distributions import Distribution, Independent, Normal

from aggrevated.actors.samplers import GaussianSampler
from aggrevated.arrays import Array
from aggrevated.policies.heads.base import HeadSettings
from aggrevated.settings import between, setting


class GaussianHead(nn.Module):
    """π(a) = N(outputs, σ²), with one learned deviation per dimension, the same in all states."""

    def __init__(
        self, size: int, log_deviation: float = -0.5, low: Array | float = -np.inf, high: Array | float = np.inf
    ) -> None:
        """`low` and `high` are the bounds of the action space, for `within`; the distribution does not know them."""
        super().__init__()
        self.outputs, self.low, self.high = size, low, high
        self.log_deviation = nn.Parameter(torch.full((size,), log_deviation))

    def complete(self, outputs: Tensor) -> Tensor:
        return torch.cat([outputs, self.log_deviation.expand_as(outputs)], dim=-1)

    def distribution(self, completed: Tensor, legal: Tensor | None = None) -> Distribution:
        assert legal is None, "a Gaussian policy has no illegal actions"
        mean, log_deviation = completed.chunk(2, dim=-1)
        return Independent(Normal(mean, log_deviation.exp(), validate_args=False), 1, validate_args=False)

    def within(self, actions: Array) -> Array:
        """The actions, clipped to the action space: what an environment is given."""
        return np.clip(actions, self.low, self.high)

    def sampler(self) -> GaussianSampler:
        return GaussianSampler(self.log_deviation.detach().exp().numpy().copy())


@dataclass(frozen=True)
class GaussianSettings(HeadSettings):
    """For actions that are vectors."""

    name = "gaussian"
    finite = False
    log_deviation: float = setting(
        -0.5, "The logarithm of a Gaussian policy's standard deviation at first; it is learned.", between(-20, 2)
    )

    @classmethod
    def fits(cls, actions: Space[Any]) -> bool:
        return isinstance(actions, Box) and len(actions.shape) == 1

    def build(self, actions: Space[Any]) -> GaussianHead:
        assert isinstance(actions, Box)
        return GaussianHead(int(actions.shape[0]), self.log_deviation, actions.low, actions.high)
