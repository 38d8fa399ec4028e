"""What an expert does, as numbers to compare: a change of one that is no network is noticed by them."""

import numpy as np

from aggrevated.arrays import Array
from aggrevated.experts import ActionValueExpert, CriticExpert, Expert, ValueExpert
from aggrevated.experts.asking import actions_of, costs_of, costs_of_taken, values_of
from aggrevated.simulators import Simulator
from aggrevated.simulators.using import first_states

STATES = 8


def behaviour(expert: Expert, simulator: Simulator) -> dict[str, Array]:
    """What it answers in the first states of eight fixed seeds, each float64 with six significant digits, by method."""
    states = first_states(simulator, np.arange(STATES, dtype=np.uint64))
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
