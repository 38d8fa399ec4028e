"""What an expert does along the way: two that begin alike are told apart by it."""

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.experts import Expert
from aggrevated.experts.behavior_fingerprint import rounded
from aggrevated.experts.checked import actions_of
from aggrevated.problems.normalization import drawn
from aggrevated.simulators import Simulator, restricted
from aggrevated.simulators.checked import first_states, stepped

LANES, ASKED_AFTER = 2, (1, 2, 4, 8, 16)  # steps: few questions, because a planner takes its time


def habits(expert: Expert, simulator: Simulator) -> dict[str, Array]:
    """π*(s), float64 with six significant digits, in the states that some steps of random actions lead to."""
    generator, rules = np.random.default_rng(0), restricted(simulator)
    states, found = first_states(simulator, np.arange(LANES, dtype=np.uint64)), dict[str, Array]()
    for t in range(1, min(ASKED_AFTER[-1], simulator.horizon - 1) + 1):
        legal = None if rules is None else rules.legal(states)
        states, _, done = stepped(simulator, states, drawn(simulator, generator, len(states), legal))
        states = states[~done]
        if not len(states):
            break
        if t in ASKED_AFTER:
            found[str(t)] = rounded(actions_of(expert, states, t, simulator.action_space))
    return found
