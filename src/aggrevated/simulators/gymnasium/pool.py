"""Environments that are kept for several episodes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

from aggrevated.core.errors import UsageError
from aggrevated.simulators.gymnasium.make import Environment


class EnvironmentPool:
    """Environments for use: at most `size` that are kept where they stand, and those that nobody needs any more."""

    def __init__(self, make: Callable[[], Environment], size: int) -> None:
        if size < 1:
            raise UsageError(f"live = {size} environments cannot be kept; give 1 or more")
        self.make = make
        self.size = size
        self.spare: list[Environment] = []
        self.standing: OrderedDict[Hashable, Environment] = OrderedDict()  # by where they stand, oldest first

    def claim(self, key: Hashable) -> Environment | None:
        """The environment that stands there; it is the caller's from now on."""
        return self.standing.pop(key, None)

    def take(self) -> Environment:
        """An environment that may stand anywhere."""
        return self.spare.pop() if self.spare else self.make()

    def keep(self, key: Hashable, env: Environment) -> None:
        """Keep an environment for whoever comes back to where it stands; the oldest gives way."""
        replaced = self.standing.pop(key, None)
        self.standing[key] = env
        if len(self.standing) > self.size:
            replaced = self.standing.popitem(last=False)[1]
        if replaced is not None:
            self.spare.append(replaced)

    def forget(self) -> None:
        """Keep the environments, but not where they stand."""
        self.spare += self.standing.values()
        self.standing.clear()

    def clear(self) -> None:
        """Close all environments; new ones will be made."""
        self.forget()
        while self.spare:
            self.spare.pop().close()
