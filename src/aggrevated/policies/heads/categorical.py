"""Finite sets of actions: the softmax of the outputs."""

from dataclasses import dataclass
from typing import Any, Self

from gymnasium.spaces import Discrete, Space
from torch import Tensor, nn
from torch.distributions import Categorical

from aggrevated.actors.samplers import CategoricalSampler
from aggrevated.core.arrays import Array
from aggrevated.policies.heads.base import HeadSettings
from aggrevated.storage import JsonDict

ILLEGAL = -1e8  # a logit that is never chosen, and finite, so that a step with no legal action is no NaN


class CategoricalHead(nn.Module):
    """π(a) = softmax of the outputs."""

    registry_name = "categorical"

    def __init__(self, actions: int) -> None:
        super().__init__()
        self.outputs = actions

    def complete(self, outputs: Tensor) -> Tensor:
        return outputs

    def distribution(self, completed: Tensor, legal: Tensor | None = None) -> Categorical:
        logits = completed if legal is None else completed.masked_fill(~legal, ILLEGAL)
        return Categorical(logits=logits, validate_args=False)

    def clip_actions(self, actions: Array) -> Array:
        return actions

    def sampler(self) -> CategoricalSampler:
        return CategoricalSampler(self.outputs)

    def architecture(self) -> JsonDict:
        return {"actions": self.outputs}

    @classmethod
    def from_architecture(cls, shape: JsonDict) -> Self:
        return cls(shape["actions"])


@dataclass(frozen=True)
class CategoricalSettings(HeadSettings):
    """For a finite set of actions."""

    name = "categorical"
    is_discrete = True

    @classmethod
    def accepts(cls, actions: Space[Any]) -> bool:
        return isinstance(actions, Discrete)

    def build(self, actions: Space[Any]) -> CategoricalHead:
        assert isinstance(actions, Discrete)
        return CategoricalHead(int(actions.n))
