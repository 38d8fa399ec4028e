"""The random start: the first policy is the randomly initialized one."""

from dataclasses import dataclass

from aggrevated.experts import Expert
from aggrevated.policies import Policy
from aggrevated.simulators import Simulator
from aggrevated.starts import StartSettings


@dataclass(frozen=True)
class RandomStartSettings(StartSettings):
    """Settings of the random start, which takes no simulator steps and no queries."""

    name = "random"

    def begin(self, policy: Policy, simulator: Simulator, expert: Expert, seed: int, k: int) -> tuple[int, int]:
        return 0, 0
