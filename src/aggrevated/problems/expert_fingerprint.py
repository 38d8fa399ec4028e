"""What an expert does along the way: two that begin alike are told apart by it."""

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.experts import Expert
from aggrevated.experts.checked import query_actions
from aggrevated.experts.fingerprint import round_to_significant_digits
from aggrevated.problems.normalization import sample_actions
from aggrevated.simulators import Simulator, find_action_mask
from aggrevated.simulators.checked import reset_and_check, step_and_check

# steps: few questions, because a planner takes its time
LANES = 2
ASKED_AFTER = (1, 2, 4, 8, 16)


def compute_expert_fingerprint(expert: Expert, simulator: Simulator) -> dict[str, Array]:
    """π*(s), float64 with six significant digits, in the states that some steps of random actions lead to."""
    generator = np.random.default_rng(0)
    rules = find_action_mask(simulator)
    states = reset_and_check(simulator, np.arange(LANES, dtype=np.uint64))
    found = dict[str, Array]()
    for t in range(1, min(ASKED_AFTER[-1], simulator.horizon - 1) + 1):
        legal = None if rules is None else rules.action_mask(states)
        states, _, done = step_and_check(simulator, states, sample_actions(simulator, generator, len(states), legal))
        states = states[~done]
        if not len(states):
            break
        if t in ASKED_AFTER:
            found[str(t)] = round_to_significant_digits(query_actions(expert, states, t, simulator.action_space))
    return found
