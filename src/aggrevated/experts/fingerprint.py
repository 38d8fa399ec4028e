"""Fingerprints of an expert: of its behavior, and of its weights."""

from itertools import chain
from typing import Any

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UserCodeError
from aggrevated.experts import DiscreteQExpert, Expert, StateActionQExpert, StateValueExpert
from aggrevated.experts.checked import (
    display_name,
    query_actions,
    query_q_values,
    query_state_action_q,
    query_state_values,
)
from aggrevated.experts.vec_normalize import NormalizedExpert
from aggrevated.simulators import Simulator
from aggrevated.simulators.checked import reset_and_check

STATES = 8
AGAIN = 2


def compute_behavior_fingerprint(expert: Expert, simulator: Simulator) -> dict[str, Array]:
    """What it answers in the first states of eight fixed seeds, each float64 with six significant digits, by method.

    A `PartError` where it answers otherwise when it is asked again, in another order.
    """
    states = reset_and_check(simulator, np.arange(STATES, dtype=np.uint64))
    told = query_answers(expert, simulator, states)
    for _ in range(AGAIN):
        again = {method: array[::-1] for method, array in query_answers(expert, simulator, states[::-1]).items()}
        if other := next((m for m in told if not np.allclose(told[m], again[m], rtol=1e-4, atol=1e-6)), None):
            remedy = (
                "let it hang on nothing but what it is shown: it must not draw or remember (of a model, "
                "predict(observation, deterministic=True))"
            )
            raise UserCodeError(
                display_name(expert), f"answers the same question to its {other} in different ways", remedy
            )
    return told


def query_answers(expert: Expert, simulator: Simulator, states: Array) -> dict[str, Array]:
    """To all that it can be asked, in these states."""
    actions = query_actions(expert, states, 0, simulator.action_space)
    told = {"act": actions}
    if isinstance(expert, DiscreteQExpert):
        told["q"] = query_q_values(expert, states)
    if isinstance(expert, StateActionQExpert):
        told["q_of"] = query_state_action_q(expert, states, actions)
    if isinstance(expert, StateValueExpert):
        told["v"] = query_state_values(expert, states)
    return {method: round_to_significant_digits(array) for method, array in told.items()}


def round_to_significant_digits(array: Array) -> Array:
    """With six significant digits: the last bits may hang on the machine."""
    numbers = [float(f"{number:.6g}") for number in np.ravel(array).astype(np.float64)]
    return np.array(numbers).reshape(array.shape)


def collect_expert_arrays(expert: Any) -> tuple[Array, ...]:
    """The weights and biases of its networks, and then the statistics that it sees by; nothing of other experts."""
    networks = getattr(expert, "networks", ())
    weights = tuple(w for network in networks for w in (*network.weights, *network.biases))
    each = getattr(expert, "experts", (expert,))
    seen = [one.observe for one in each if isinstance(getattr(one, "observe", None), NormalizedExpert)]
    return *weights, *chain.from_iterable(observe.normalisation.arrays for observe in seen)
