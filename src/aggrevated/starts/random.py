"""The random policy is the first."""

from dataclasses import dataclass

from aggrevated.experts import Expert
from aggrevated.policies import Policy
from aggrevated.simulators import Simulator
from aggrevated.starts import StartSettings


@dataclass(frozen=True)
class RandomStartSettings(StartSettings):
    """The random policy, for no simulator step and no query."""

    name = "random"

    def begin(self, policy: Policy, simulator: Simulator, expert: Expert, seed: int, k: int) -> tuple[int, int]:
        return 0, 0
