"""Line 2 of Algorithm 1: the policy π_θ₁ of the first iteration."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from aggrevated.core.settings import Settings
from aggrevated.experts import Expert
from aggrevated.policies import Policy
from aggrevated.simulators import Simulator


@dataclass(frozen=True)
class StartSettings(Settings, ABC):
    """Settings of a start, and what applies it."""

    @abstractmethod
    def begin(self, policy: Policy, simulator: Simulator, expert: Expert, seed: int, k: int) -> tuple[int, int]:
        """Turn the randomly initialized policy into the first policy, in place.

        Args:
            policy: the policy.
            simulator: the simulator that the learner observes.
            expert: π*.
            seed: seed of the run.
            k: K, the number of trajectories per iteration.

        Returns:
            (simulator steps, expert queries) that the start took.
        """

    @property
    def notice(self) -> str:
        """Message for display before a slow start; "" for none."""
        return ""
