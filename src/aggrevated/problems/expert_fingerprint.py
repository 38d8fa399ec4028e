"""Fingerprint of an expert by its actions along random episodes."""

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.experts import Expert
from aggrevated.experts.checked import query_actions
from aggrevated.experts.fingerprint import round_to_significant_digits
from aggrevated.problems.normalization import sample_actions
from aggrevated.simulators import Simulator, find_action_mask
from aggrevated.simulators.checked import reset_and_check, step_and_check

# Few queries, since a planner is slow.
EPISODES = 2
QUERIED_AFTER = (1, 2, 4, 8, 16)  # steps


def compute_expert_fingerprint(expert: Expert, simulator: Simulator) -> dict[str, Array]:
    """Return π*(s), float64 with six significant digits, in states that random actions lead to, by time."""
    generator = np.random.default_rng(0)
    masked = find_action_mask(simulator)
    states = reset_and_check(simulator, np.arange(EPISODES, dtype=np.uint64))
    fingerprint = dict[str, Array]()
    for t in range(1, min(QUERIED_AFTER[-1], simulator.horizon - 1) + 1):
        legal = None if masked is None else masked.action_mask(states)
        states, _, done = step_and_check(simulator, states, sample_actions(simulator, generator, len(states), legal))
        states = states[~done]
        if not len(states):
            break
        if t in QUERIED_AFTER:
            actions = query_actions(expert, states, t, simulator.action_space)
            fingerprint[str(t)] = round_to_significant_digits(actions)
    return fingerprint
