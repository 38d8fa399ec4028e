"""All numbers that an expert hangs on: the identity of a run is made of them."""

from itertools import chain
from typing import Any

from aggrevated.core.arrays import Array
from aggrevated.experts.vec_normalize import NormalizedExpert


def expert_arrays(expert: Any) -> tuple[Array, ...]:
    """The weights and biases of its networks, and then the statistics that it sees by; nothing of other experts."""
    networks = getattr(expert, "networks", ())
    weights = tuple(w for network in networks for w in (*network.weights, *network.biases))
    each = getattr(expert, "experts", (expert,))
    seen = [one.observe for one in each if isinstance(getattr(one, "observe", None), NormalizedExpert)]
    return *weights, *chain.from_iterable(observe.normalisation.arrays for observe in seen)
