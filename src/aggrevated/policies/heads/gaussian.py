"""Vectors as actions: a Gaussian around the outputs."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from gymnasium.spaces import Box, Space
from torch import Tensor, nn
from torch.distributions import Distribution, Independent, Normal

from aggrevated.actors.samplers import GaussianSampler
from aggrevated.core.arrays import Array
from aggrevated.core.settings import between, setting
from aggrevated.core.spaces import MAX_VECTOR_SIZE, bounds_from_list, bounds_to_list
from aggrevated.policies.heads.base import HeadSettings
from aggrevated.storage import JsonDict


class GaussianHead(nn.Module):
    """π(a) = N(centre + unit · outputs, (unit · σ)²), with one learned deviation per dimension, the same in all states.

    Centre and unit are those of the actions themselves, so that no network has to learn that they are forces of
    thousands, or angles of thousandths.
    """

    registry_name = "gaussian"
    centre: Tensor  # [A]
    unit: Tensor

    def __init__(
        self, size: int, log_deviation: float = -0.5, low: Array | float = -np.inf, high: Array | float = np.inf
    ) -> None:
        """`low` and `high` are the bounds of the action space, for `within`; the distribution does not know them."""
        super().__init__()
        self.outputs = size
        self.low = low
        self.high = high
        self.log_deviation = nn.Parameter(torch.full((size,), log_deviation))
        self.register_buffer("centre", torch.zeros(size))
        self.register_buffer("unit", torch.ones(size))

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        """Policies that were saved before there were units have 0 and 1."""
        state_dict.setdefault(f"{prefix}centre", torch.zeros(self.outputs))
        state_dict.setdefault(f"{prefix}unit", torch.ones(self.outputs))
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def init_action_scale(self, centre: Array, unit: Array) -> None:
        """Act around this centre, in these units, [A] each."""
        self.centre.copy_(torch.from_numpy(centre))
        self.unit.copy_(torch.from_numpy(unit))

    def complete(self, outputs: Tensor) -> Tensor:
        return torch.cat([outputs, self.log_deviation.expand_as(outputs)], dim=-1)

    def distribution(self, completed: Tensor, legal: Tensor | None = None) -> Distribution:
        assert legal is None, "a Gaussian policy has no illegal actions"
        outputs, log_deviation = completed.chunk(2, dim=-1)
        mean = self.centre + self.unit * outputs
        deviation = self.unit * log_deviation.exp()
        return Independent(Normal(mean, deviation, validate_args=False), 1, validate_args=False)

    def clip_actions(self, actions: Array) -> Array:
        """The actions, clipped to the action space: what an environment is given."""
        return np.clip(actions, self.low, self.high)

    def sampler(self) -> GaussianSampler:
        centre = self.centre.numpy().copy()
        unit = self.unit.numpy().copy()
        return GaussianSampler(self.log_deviation.detach().exp().numpy().copy(), centre, unit)

    def architecture(self) -> JsonDict:
        bounds = {"low": np.asarray(self.low), "high": np.asarray(self.high)}
        said = {name: [bounds_to_list(np.atleast_1d(x)), str(x.dtype) if x.ndim else ""] for name, x in bounds.items()}
        return {"size": self.outputs, **said}

    @classmethod
    def from_architecture(cls, shape: JsonDict) -> Self:
        size = shape["size"]
        if not 1 <= size <= MAX_VECTOR_SIZE:
            raise ValueError("its actions are no vectors")
        return cls(size, low=parse_action_bound(size, *shape["low"]), high=parse_action_bound(size, *shape["high"]))


def parse_action_bound(size: int, said: Any, dtype: str) -> Array | float:
    """A bound of the actions: one number for all, or one for each, which are of a type."""
    if not dtype:
        return float(said)
    if np.dtype(dtype).kind not in "fiu":
        raise ValueError(f"its actions are bounded by {dtype}")
    return bounds_from_list(said, (size,), np.dtype(dtype))


@dataclass(frozen=True)
class GaussianSettings(HeadSettings):
    """For actions that are vectors."""

    name = "gaussian"
    is_discrete = False
    log_deviation: float = setting(
        -0.5, "The logarithm of a Gaussian policy's standard deviation at first; it is learned.", between(-20, 2)
    )

    @classmethod
    def accepts(cls, actions: Space[Any]) -> bool:
        return isinstance(actions, Box) and len(actions.shape) == 1

    def build(self, actions: Space[Any]) -> GaussianHead:
        assert isinstance(actions, Box)
        return GaussianHead(int(actions.shape[0]), self.log_deviation, actions.low, actions.high)
