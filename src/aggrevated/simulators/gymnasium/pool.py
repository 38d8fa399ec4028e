"""A pool of environments that are reused for several episodes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

from aggrevated.core.errors import UsageError
from aggrevated.simulators.gymnasium.make import Environment


class EnvironmentPool:
    """Environments for reuse: at most `size` that stay in a state by key, and spare ones in any state."""

    def __init__(self, make: Callable[[], Environment], size: int) -> None:
        if size < 1:
            raise UsageError(f"live = {size} is too small; pass live=1 or more")
        self.make = make
        self.size = size
        self.spare: list[Environment] = []
        self.standing: OrderedDict[Hashable, Environment] = OrderedDict()  # by key of the state, oldest first

    def claim(self, key: Hashable) -> Environment | None:
        """Remove and return the environment that is in the state of this key; None where there is none."""
        return self.standing.pop(key, None)

    def take(self) -> Environment:
        """Return an environment in any state: a spare one, or a new one."""
        return self.spare.pop() if self.spare else self.make()

    def keep(self, key: Hashable, env: Environment) -> None:
        """Add an environment under the key of its state; in a full pool the oldest one becomes spare."""
        replaced = self.standing.pop(key, None)
        self.standing[key] = env
        if len(self.standing) > self.size:
            replaced = self.standing.popitem(last=False)[1]
        if replaced is not None:
            self.spare.append(replaced)

    def forget(self) -> None:
        """Make all environments spare."""
        self.spare += self.standing.values()
        self.standing.clear()

    def clear(self) -> None:
        """Close all environments; the pool makes new ones on demand."""
        self.forget()
        while self.spare:
            self.spare.pop().close()
