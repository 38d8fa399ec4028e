"""Categorical head, for finite sets of actions."""

from dataclasses import dataclass
from typing import Any, Self

from gymnasium.spaces import Discrete, Space
from torch import Tensor, nn
from torch.distributions import Categorical

from aggrevated.actors.samplers import CategoricalSampler
from aggrevated.core.arrays import Array
from aggrevated.policies.heads.base import HeadSettings
from aggrevated.storage import JsonDict

ILLEGAL = -1e8  # logit of an illegal action; it is finite, so that a step without legal actions gives no NaN


class CategoricalHead(nn.Module):
    """Categorical distribution over a finite set of actions: π(a) is the softmax of the outputs.

    Args:
        actions: A, the number of actions.
    """

    registry_name = "categorical"

    def __init__(self, actions: int) -> None:
        super().__init__()
        self.outputs = actions

    def complete(self, outputs: Tensor) -> Tensor:
        """Return the outputs: this head has no parameters."""
        return outputs

    def distribution(self, completed: Tensor, legal: Tensor | None = None) -> Categorical:
        """Return the distributions, from logits [..., A] and the mask of legal actions, bool [..., A]."""
        logits = completed if legal is None else completed.masked_fill(~legal, ILLEGAL)
        return Categorical(logits=logits, validate_args=False)

    def clip_actions(self, actions: Array) -> Array:
        """Return the actions unchanged."""
        return actions

    def sampler(self) -> CategoricalSampler:
        """Return a NumPy copy of the head."""
        return CategoricalSampler(self.outputs)

    def architecture(self) -> JsonDict:
        """Return the JSON from which `from_architecture` builds an equal head."""
        return {"actions": self.outputs}

    @classmethod
    def from_architecture(cls, shape: JsonDict) -> Self:
        """Return a head from the JSON of `architecture`."""
        return cls(shape["actions"])


@dataclass(frozen=True)
class CategoricalSettings(HeadSettings):
    """Categorical distribution, for a finite set of actions."""

    name = "categorical"
    is_discrete = True

    @classmethod
    def accepts(cls, actions: Space[Any]) -> bool:
        return isinstance(actions, Discrete)

    def build(self, actions: Space[Any]) -> CategoricalHead:
        assert isinstance(actions, Discrete)
        return CategoricalHead(int(actions.n))
