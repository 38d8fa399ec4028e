"""When a projection has come to its end: the policies that there are cannot do what is asked of them.

Where they can, the mean A* of the learner's own actions falls towards 0 as it is fitted to all states seen. Where they
cannot (no memory, one hidden unit), the fit stands still far from that: what is best for all states seen so far is not
best where the learner comes itself, and a step of the natural update, on the newest roll-ins only, goes on from there.
"""

from dataclasses import dataclass, field

import numpy as np

RECENT = 10  # iterations that are compared with as many before them
MUCH = 0.2  # of what a policy that acts at random leaves to learn
PROGRESS = 0.9  # of what was left before: more than that is none


@dataclass
class Standstill:
    """What the policies of the last iterations left to learn."""

    left: list[float] = field(default_factory=list)  # Σ_a π_n(a) A*(a) at its own states; 1: as if at random

    def add(self, left: float) -> None:
        """What π_n leaves; no more are remembered than are looked at."""
        self.left = [*self.left, left][-2 * RECENT :]

    def reached(self) -> bool:
        """Whether much is left, and hardly less than before."""
        before, now = np.mean(self.left[:RECENT] or 0.0), np.mean(self.left[RECENT:] or 0.0)
        return len(self.left) == 2 * RECENT and bool(now > MUCH and now > PROGRESS * before)
