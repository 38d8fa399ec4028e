"""Window policies: feed-forward policies on the last few observations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from gymnasium.spaces import Space
from torch import Tensor
from torch.distributions import Distribution

from aggrevated.actors.window import ActionHistoryActor, WindowActor
from aggrevated.policies import DEFAULT_WIDTHS, Policy, SequenceSettings, get_input_size, make_initial_generator
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import Head
from aggrevated.storage import JsonDict


class WindowPolicy(Policy):
    """π_θ(a|o_{t−w+1} … o_t): a feed-forward policy on the last w observations, with zeros before the first.

    Args:
        observation_size: Size of an observation vector.
        head: Output layer, for the action space.
        hidden: Units of each hidden layer.
        generator: Generator of the initial weights; by default they are always the same.
        width: w, the number of observations in the window.
        observe_actions: Whether the previous action is a part of each observation.
    """

    registry_name = "window"

    def __init__(
        self,
        observation_size: int,
        head: Head,
        hidden: Sequence[int] = DEFAULT_WIDTHS,
        generator: torch.Generator | None = None,
        width: int = 4,
        observe_actions: bool = False,
    ) -> None:
        super().__init__()
        self.size = observation_size
        self.width = width
        self.observe_actions = observe_actions
        self.inputs_a_step = observation_size + observe_actions * head.outputs
        self.inner = FeedForwardPolicy(width * self.inputs_a_step, head, hidden, generator)

    def distribution(self, observations: Tensor, mask: Tensor, legal: Tensor | None = None) -> Distribution:
        padded = torch.nn.functional.pad(observations, (0, 0, self.width - 1, 0))  # [K, T + w − 1, O]
        windows = padded.unfold(1, self.width, 1).mT.flatten(2)  # [K, T, w·O], the oldest first
        return self.inner.distribution(windows, mask, legal)

    @property
    def head(self) -> Head:  # type: ignore[override]
        """Return the head of the inner policy, so that its parameters are not registered twice."""
        return self.inner.head

    def actor(self) -> WindowActor | ActionHistoryActor:
        inner = WindowActor(self.inner.actor(), self.inputs_a_step * (self.width - 1), self.inputs_a_step)
        return ActionHistoryActor(inner, inner.inner.sampler, self.head.outputs) if self.observe_actions else inner

    def architecture(self) -> JsonDict:
        """Return the JSON from which `from_architecture` builds an equal policy."""
        flags = {"observe_actions": True} if self.observe_actions else {}
        return {"observations": self.size, "hidden": self.inner.architecture()["hidden"], "width": self.width, **flags}

    @classmethod
    def from_architecture(cls, shape: JsonDict, head: Head) -> Self:
        observe_actions = bool(shape.get("observe_actions", False))
        return cls(shape["observations"], head, shape["hidden"], width=shape["width"], observe_actions=observe_actions)


@dataclass(frozen=True)
class WindowSettings(SequenceSettings):
    """Fully connected network on the last four observations."""

    name = "window"

    def build(self, observations: Space[Any], head: Head, seed: int) -> WindowPolicy:
        size = get_input_size(observations)
        generator = make_initial_generator(seed)
        return WindowPolicy(size, head, self.hidden, generator, observe_actions=self.observe_actions)
