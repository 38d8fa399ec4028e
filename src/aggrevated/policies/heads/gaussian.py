"""Gaussian head, for actions that are vectors."""

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
    """π(a) = N(center + unit · outputs, (unit · σ)²), with one learned σ per dimension, for all states.

    Center and unit are 0 and 1 unless `init_action_scale` sets them: for custom environments to those of the
    expert's actions, so that the network's outputs are of order 1.

    Args:
        size: A, the size of an action.
        log_deviation: Initial log σ, in units of the action.
        low: Lower bounds of the action space, [A] or one number, for `clip_actions`.
        high: Upper bounds of the action space, [A] or one number, for `clip_actions`.
    """

    registry_name = "gaussian"
    centre: Tensor  # [A]
    unit: Tensor

    def __init__(
        self, size: int, log_deviation: float = -0.5, low: Array | float = -np.inf, high: Array | float = np.inf
    ) -> None:
        super().__init__()
        self.outputs = size
        self.low = low
        self.high = high
        self.log_deviation = nn.Parameter(torch.full((size,), log_deviation))
        self.register_buffer("centre", torch.zeros(size))
        self.register_buffer("unit", torch.ones(size))

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        """Load a state dict; old ones without center and unit get 0 and 1."""
        state_dict.setdefault(f"{prefix}centre", torch.zeros(self.outputs))
        state_dict.setdefault(f"{prefix}unit", torch.ones(self.outputs))
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def init_action_scale(self, centre: Array, unit: Array) -> None:
        """Set the center and the unit of the actions, [A] each."""
        self.centre.copy_(torch.from_numpy(centre))
        self.unit.copy_(torch.from_numpy(unit))

    def complete(self, outputs: Tensor) -> Tensor:
        """Return the outputs [..., A] with log σ appended, [..., 2 A]."""
        return torch.cat([outputs, self.log_deviation.expand_as(outputs)], dim=-1)

    def distribution(self, completed: Tensor, legal: Tensor | None = None) -> Distribution:
        """Return the distributions, from the return value of `complete`; `legal` must be None."""
        assert legal is None, "a Gaussian policy has no illegal actions"
        outputs, log_deviation = completed.chunk(2, dim=-1)
        mean = self.centre + self.unit * outputs
        deviation = self.unit * log_deviation.exp()
        return Independent(Normal(mean, deviation, validate_args=False), 1, validate_args=False)

    def clip_actions(self, actions: Array) -> Array:
        """Return the actions clipped to the bounds of the action space."""
        return np.clip(actions, self.low, self.high)

    def sampler(self) -> GaussianSampler:
        """Return a NumPy copy of the head with its present parameters."""
        centre = self.centre.numpy().copy()
        unit = self.unit.numpy().copy()
        return GaussianSampler(self.log_deviation.detach().exp().numpy().copy(), centre, unit)

    def architecture(self) -> JsonDict:
        """Return the JSON from which `from_architecture` builds an equal head."""
        bounds = {"low": np.asarray(self.low), "high": np.asarray(self.high)}
        lists = {name: [bounds_to_list(np.atleast_1d(x)), str(x.dtype) if x.ndim else ""] for name, x in bounds.items()}
        return {"size": self.outputs, **lists}

    @classmethod
    def from_architecture(cls, shape: JsonDict) -> Self:
        """Return a head from the JSON of `architecture`; raise a `ValueError` if the JSON is wrong."""
        size = shape["size"]
        if not 1 <= size <= MAX_VECTOR_SIZE:
            raise ValueError(f"the size of its actions is {size}, not between 1 and {MAX_VECTOR_SIZE:,}")
        return cls(size, low=parse_action_bound(size, *shape["low"]), high=parse_action_bound(size, *shape["high"]))


def parse_action_bound(size: int, bound: Any, dtype: str) -> Array | float:
    """Return the bound of all actions as one number if `dtype` is empty, else as an array [size]."""
    if not dtype:
        return float(bound)
    if np.dtype(dtype).kind not in "fiu":
        raise ValueError(f"the bounds of its actions are of type {dtype}, not numbers")
    return bounds_from_list(bound, (size,), np.dtype(dtype))


@dataclass(frozen=True)
class GaussianSettings(HeadSettings):
    """Gaussian distribution, for actions that are vectors."""

    name = "gaussian"
    is_discrete = False
    log_deviation: float = setting(
        -0.5, "Initial log standard deviation of a Gaussian policy, in action units; it is learned.", between(-20, 2)
    )

    @classmethod
    def accepts(cls, actions: Space[Any]) -> bool:
        return isinstance(actions, Box) and len(actions.shape) == 1

    def build(self, actions: Space[Any]) -> GaussianHead:
        assert isinstance(actions, Box)
        return GaussianHead(int(actions.shape[0]), self.log_deviation, actions.low, actions.high)
