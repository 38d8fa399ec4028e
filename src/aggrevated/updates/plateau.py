"""When a projection has come to its end: the policies that there are cannot do what is asked of them.

Where they can, what the learner's own actions cost falls towards what the goal costs, as it is fitted to all states
seen. Where they cannot (no memory, one hidden unit), the fit stands still far from that: what is best for all states
seen so far is not best where the learner comes itself, and the natural update, on the newest roll-ins only, goes on.
"""

from dataclasses import dataclass, field

import numpy as np

RECENT = 10  # iterations that are compared with as many before them
TOO_MUCH = 0.2  # of what a policy costs that acts at random
PROGRESS = 0.9  # of what it was before: more than that is none


@dataclass
class PlateauDetector:
    """What the policies of the last iterations cost above their goals."""

    excess: list[float] = field(default_factory=list)  # at their own states; 1: as if they acted at random

    def add(self, excess: float) -> None:
        """Of π_n; no more are remembered than are looked at."""
        self.excess = [*self.excess, excess][-2 * RECENT :]

    def triggered(self) -> bool:
        """Whether it is too much, and hardly less than before."""
        before, now = np.mean(self.excess[:RECENT] or 0.0), np.mean(self.excess[RECENT:] or 0.0)
        return len(self.excess) == 2 * RECENT and bool(now > TOO_MUCH and now > PROGRESS * before)
