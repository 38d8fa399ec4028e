"""The settings of Algorithm 1 itself: how often, how much, how much of it by the expert."""

from collections.abc import Container
from dataclasses import dataclass, replace
from typing import Self

from aggrevated.schedules import Schedule, geometric
from aggrevated.settings import NOT_NEGATIVE, SHARE, Chosen, Settings, at_least, require, setting


@dataclass(frozen=True)
class LoopSettings(Settings):
    """N, K, α_n and the seed; and how often a policy is validated and kept."""

    name = "loop"
    seed: int = setting(0, "The seed that everything random comes from; trial i uses seed + i.", NOT_NEGATIVE)
    iterations: int = setting(100, "N, the iterations of Algorithm 1.", at_least(1))
    trajectories: int = setting(50, "K, the roll-ins per iteration.", at_least(1))
    mixing: float = setting(0.0, "alpha_1, the share of roll-in steps that the expert takes in iteration 1.", SHARE)
    mixing_decay: float = setting(0.5, "alpha_n = mixing * decay^(n-1).", SHARE)
    validate_every: int = setting(1, "Iterations between choices of the best policy.", at_least(1))
    checkpoint_every: int = setting(10, "Iterations between checkpoints.", at_least(1))

    @property
    def alpha(self) -> Schedule:
        return geometric(self.mixing, self.mixing_decay)

    def completed(self, iterations: int, given: Container[str]) -> Self:
        """The last policy is validated, too: so often at most that it divides the iterations."""
        if "validate_every" in given:
            return self
        return replace(self, validate_every=largest_divisor(iterations, self.validate_every))

    def check(self, chosen: Chosen) -> None:
        rule = f"a divisor of the {self.iterations} iterations"
        require(self.iterations % self.validate_every == 0, "validate_every", self.validate_every, rule)


def largest_divisor(number: int, most: int) -> int:
    """The largest divisor of the number that is not above `most`."""
    return next((divisor for divisor in range(most, 1, -1) if number % divisor == 0), 1)
