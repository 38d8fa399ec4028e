"""Interface of heads, which turn a network's outputs into action distributions.

The action space determines the head. Its NumPy copy, the `sampler` (`aggrevated.actors.samplers`), chooses
actions from the same outputs.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from gymnasium.spaces import Space
from torch import Tensor
from torch.distributions import Distribution

from aggrevated.actors.samplers import Sampler
from aggrevated.core.arrays import Array
from aggrevated.core.settings import Settings


class Head(Protocol):
    """The output layer of a policy: it turns the outputs of a network into action distributions."""

    outputs: int  # A, the size of the network's outputs

    def complete(self, outputs: Tensor) -> Tensor:
        """Return the outputs [..., A] with the head's parameters appended, the input of `distribution`."""
        ...

    def distribution(self, completed: Tensor, legal: Tensor | None = None) -> Distribution:
        """Return the action distributions.

        Args:
            completed: Return value of `complete`.
            legal: bool [..., A], false where an action must have probability 0; None allows all.
        """
        ...

    def clip_actions(self, actions: Array) -> Array:
        """Return the actions clipped to the action space."""
        ...

    def sampler(self) -> Sampler:
        """Return a NumPy copy of the head with its present parameters."""
        ...


@dataclass(frozen=True)
class HeadSettings(Settings, ABC):
    """Settings of a head."""

    is_discrete: ClassVar[bool]  # whether the actions are a finite set

    @classmethod
    @abstractmethod
    def accepts(cls, actions: Space[Any]) -> bool:
        """Return whether the head is for this action space."""

    @abstractmethod
    def build(self, actions: Space[Any]) -> Head:
        """Return the head for this action space."""
