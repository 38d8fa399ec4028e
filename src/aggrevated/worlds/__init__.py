"""What a task is made of: where it is acted in, who knows better, who learns, and how good that is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from aggrevated.experts import Expert
from aggrevated.files import Facts
from aggrevated.policies import Policy
from aggrevated.simulators import Simulator


@dataclass(frozen=True)
class World:
    """The pieces of Algorithm 1 that a task brings with it."""

    simulator: Simulator
    expert: Expert
    policy: Policy  # π_θ₁, at random
    validate: Callable[[Policy], float]  # what the best policy is chosen by (line 9)
    test: Callable[[Policy], Facts]  # expert_return, test_return, ratio and more, on what no policy was chosen by
    monitor: Callable[[Policy], Facts]  # what metrics are to hold besides, whenever a policy is validated
    fingerprint: dict[str, Tensor]  # of all that shapes the bits besides the config
