"""What follows a network: a head turns its outputs into action distributions, and is chosen by the action space.

Each has a NumPy twin, its `sampler` (`aggrevated.actors.samplers`), that chooses actions from the same outputs.
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
    """What follows a network."""

    outputs: int  # how many numbers the network must give

    def complete(self, outputs: Tensor) -> Tensor:
        """The outputs [..., A] with the head's own parameters appended: all that the distribution depends on."""
        ...

    def distribution(self, completed: Tensor, legal: Tensor | None = None) -> Distribution:
        """The action distributions, from what `complete` gave; actions that are not `legal` have probability 0."""
        ...

    def clip_actions(self, actions: Array) -> Array:
        """The actions as an environment may be given them."""
        ...

    def sampler(self) -> Sampler:
        """A NumPy copy of the head as it is now."""
        ...


@dataclass(frozen=True)
class HeadSettings(Settings, ABC):
    """A kind of head."""

    is_discrete: ClassVar[bool]  # whether its actions are a finite set

    @classmethod
    @abstractmethod
    def accepts(cls, actions: Space[Any]) -> bool:
        """Whether it is for such actions."""

    @abstractmethod
    def build(self, actions: Space[Any]) -> Head:
        """The head for these actions."""
