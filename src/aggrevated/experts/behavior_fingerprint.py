"""What an expert does, as numbers to compare: a change of one that is no network is noticed by them."""

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.errors import PartError
from aggrevated.experts import ActionValueExpert, CriticExpert, Expert, ValueExpert
from aggrevated.experts.checked import actions_of, called, costs_of, costs_of_taken, values_of
from aggrevated.simulators import Simulator
from aggrevated.simulators.checked import first_states

STATES, AGAIN = 8, 2


def behaviour(expert: Expert, simulator: Simulator) -> dict[str, Array]:
    """What it answers in the first states of eight fixed seeds, each float64 with six significant digits, by method.

    A `PartError` where it answers otherwise when it is asked again, in another order.
    """
    states = first_states(simulator, np.arange(STATES, dtype=np.uint64))
    told = answers(expert, simulator, states)
    for _ in range(AGAIN):
        again = {method: array[::-1] for method, array in answers(expert, simulator, states[::-1]).items()}
        if other := next((m for m in told if not np.allclose(told[m], again[m], rtol=1e-4, atol=1e-6)), None):
            remedy = (
                "let it hang on nothing but what it is shown: it must not draw or remember (of a model, "
                "predict(observation, deterministic=True))"
            )
            raise PartError(called(expert), f"answers the same question to its {other} in different ways", remedy)
    return told


def answers(expert: Expert, simulator: Simulator, states: Array) -> dict[str, Array]:
    """To all that it can be asked, in these states."""
    actions = actions_of(expert, states, 0, simulator.action_space)
    told = {"act": actions}
    if isinstance(expert, ValueExpert):
        told["q"] = costs_of(expert, states)
    if isinstance(expert, ActionValueExpert):
        told["q_of"] = costs_of_taken(expert, states, actions)
    if isinstance(expert, CriticExpert):
        told["v"] = values_of(expert, states)
    return {method: rounded(array) for method, array in told.items()}


def rounded(array: Array) -> Array:
    """With six significant digits: the last bits may hang on the machine."""
    numbers = [float(f"{number:.6g}") for number in np.ravel(array).astype(np.float64)]
    return np.array(numbers).reshape(array.shape)
