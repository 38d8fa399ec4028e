"""Environments are dear to make, so those in use are kept."""

from __future__ import annotations

from collections import OrderedDict

from aggrevated.errors import UsageError
from aggrevated.simulators.gymnasium.environments import Environment, Maker


class Pool:
    """Environments for use: at most `size` that are kept where they stand, and those that nobody needs any more."""

    def __init__(self, make: Maker, size: int) -> None:
        if size < 1:
            raise UsageError(f"live = {size} environments cannot be kept; give 1 or more")
        self.make, self.size = make, size
        self.spare: list[Environment] = []
        self.standing: OrderedDict[bytes, Environment] = OrderedDict()  # by the state they stand in, oldest first

    def __reduce__(self) -> tuple[type[Pool], tuple[Maker, int]]:
        """Copies and pickles start empty: the copy of an environment need not stand where the original does."""
        return Pool, (self.make, self.size)

    def claim(self, key: bytes) -> Environment | None:
        """The environment that stands in this state; it is the caller's from now on."""
        return self.standing.pop(key, None)

    def take(self) -> Environment:
        """An environment that may stand anywhere."""
        return self.spare.pop() if self.spare else self.make()

    def keep(self, key: bytes, env: Environment) -> None:
        """Keep an environment for whoever comes back to this state; the oldest gives way."""
        replaced = self.standing.pop(key, None)
        self.standing[key] = env
        if len(self.standing) > self.size:
            replaced = self.standing.popitem(last=False)[1]
        if replaced is not None:
            self.spare.append(replaced)

    def forget(self) -> None:
        """Keep the environments, but none of the states they stand in."""
        self.spare += self.standing.values()
        self.standing.clear()

    def clear(self) -> None:
        """Close all environments; new ones will be made."""
        self.forget()
        while self.spare:
            self.spare.pop().close()
