"""Find the policy classes of a package, so that a contract can check that it has a case for each of them."""

from collections.abc import Iterator
from importlib import import_module
from inspect import isabstract

from aggrevated.core.registry import list_modules
from aggrevated.policies import Policy


def policy_classes_in(package: str) -> set[type[Policy]]:
    """Return every concrete subclass of Policy in the modules of a package."""
    for module in list_modules(package):
        import_module(module)
    found = iter_subclasses(Policy)
    return {kind for kind in found if kind.__module__.startswith(f"{package}.") and not isabstract(kind)}


def iter_subclasses(base: type[Policy]) -> Iterator[type[Policy]]:
    """Yield all direct and indirect subclasses of a class."""
    for kind in base.__subclasses__():
        yield kind
        yield from iter_subclasses(kind)
