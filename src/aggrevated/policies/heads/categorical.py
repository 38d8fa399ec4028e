"""Finite sets of actions: the softmax of the outputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete, Space
from numpy.random import Generator
from torch import Tensor, nn
from torch.distributions import Categorical

from aggrevated.arrays import Array
from aggrevated.policies.heads.base import HeadSettings

ILLEGAL = -1e8  # a logit that is never chosen, and finite, so that a step with no legal action is no NaN
LEAST = np.float32(-3e38)


class CategoricalHead(nn.Module):
    """π(a) = softmax of the outputs."""

    def __init__(self, actions: int) -> None:
        super().__init__()
        self.outputs = actions

    def complete(self, outputs: Tensor) -> Tensor:
        return outputs

    def distribution(self, completed: Tensor, legal: Tensor | None = None) -> Categorical:
        logits = completed if legal is None else completed.masked_fill(~legal, ILLEGAL)
        return Categorical(logits=logits, validate_args=False)

    def within(self, actions: Array) -> Array:
        return actions

    def sampler(self) -> "CategoricalSampler":
        return CategoricalSampler(self.outputs)


@dataclass(frozen=True)
class CategoricalSampler:
    """Samples by Gumbel-argmax, which costs one addition and one argmax a step."""

    actions: int

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        """Gumbel noise: argmax_a (logit_a + noise_a) is then distributed as the softmax of the logits."""
        uniforms = np.stack([generator.random((horizon, self.actions), np.float32) for generator in generators])
        with np.errstate(divide="ignore"):  # a uniform of exactly 0 is noise −∞: that action is not drawn
            noise: Array = -np.log(-np.log(uniforms))
        return noise

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None) -> Array:
        """Actions [n]."""
        value = parameters + noise
        if legal is not None:  # noise of −∞ on the only legal action still leaves it above the others
            value = np.where(legal, np.maximum(value, LEAST), -np.inf)
        actions: Array = value.argmax(axis=1)
        return actions


@dataclass(frozen=True)
class CategoricalSettings(HeadSettings):
    """For a finite set of actions."""

    name = "categorical"
    finite = True

    @classmethod
    def fits(cls, actions: Space[Any]) -> bool:
        return isinstance(actions, Discrete)

    def build(self, actions: Space[Any]) -> CategoricalHead:
        assert isinstance(actions, Discrete)
        return CategoricalHead(int(actions.n))
