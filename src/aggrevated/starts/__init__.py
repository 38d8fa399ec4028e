"""Line 2 of Algorithm 1: what π_θ₁ is, before the first iteration."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from aggrevated.core.settings import Settings
from aggrevated.experts import Expert
from aggrevated.policies import Policy
from aggrevated.simulators import Simulator


@dataclass(frozen=True)
class StartSettings(Settings, ABC):
    """A way to begin."""

    @abstractmethod
    def begin(self, policy: Policy, simulator: Simulator, expert: Expert, seed: int, k: int) -> tuple[int, int]:
        """Make the random policy the first one; (simulator steps, queries) it took. K is the roll-ins to come."""

    @property
    def notice(self) -> str:
        """What people are told who wait for it; nothing where it takes no time."""
        return ""
