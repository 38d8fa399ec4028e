"""Expert fingerprints: results of an expert in fixed states, and the arrays of its networks."""

from itertools import chain
from typing import Any

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UserCodeError
from aggrevated.experts import DiscreteQExpert, Expert, StateActionQExpert, StateValueExpert
from aggrevated.experts.checked import (
    describe_expert_name,
    query_actions,
    query_q_values,
    query_state_action_q,
    query_state_values,
)
from aggrevated.experts.vec_normalize import NormalizedExpert
from aggrevated.simulators import Simulator
from aggrevated.simulators.checked import reset_and_check

STATE_COUNT = 8
REPETITIONS = 2


def compute_behavior_fingerprint(expert: Expert, simulator: Simulator) -> dict[str, Array]:
    """Return an expert's results, by method, in the initial states of eight fixed seeds.

    Results are float64, rounded to six significant digits.

    Raises:
        UserCodeError: repeated queries, in another order, give other results.
    """
    states = reset_and_check(simulator, np.arange(STATE_COUNT, dtype=np.uint64))
    results = query_answers(expert, simulator, states)
    for _ in range(REPETITIONS):
        repeated = {method: array[::-1] for method, array in query_answers(expert, simulator, states[::-1]).items()}
        differing = (m for m in results if not np.allclose(results[m], repeated[m], rtol=1e-4, atol=1e-6))
        if method := next(differing, None):
            remedy = (
                "make its results depend on nothing but its inputs: no random draws, no memory (of a model, "
                "predict(observation, deterministic=True))"
            )
            raise UserCodeError(
                describe_expert_name(expert), f"gives different results for the same query of its {method}", remedy
            )
    return results


def query_answers(expert: Expert, simulator: Simulator, states: Array) -> dict[str, Array]:
    """Return the results of every method of an expert in some states."""
    actions = query_actions(expert, states, 0, simulator.action_space)
    results = {"act": actions}
    if isinstance(expert, DiscreteQExpert):
        results["q"] = query_q_values(expert, states)
    if isinstance(expert, StateActionQExpert):
        results["q_of"] = query_state_action_q(expert, states, actions)
    if isinstance(expert, StateValueExpert):
        results["v"] = query_state_values(expert, states)
    return {method: round_to_significant_digits(array) for method, array in results.items()}


def round_to_significant_digits(array: Array) -> Array:
    """Round to six significant digits, since the last bits may depend on the machine."""
    numbers = [float(f"{number:.6g}") for number in np.ravel(array).astype(np.float64)]
    return np.array(numbers).reshape(array.shape)


def collect_expert_arrays(expert: Any) -> tuple[Array, ...]:
    """Return the weights, biases and observation statistics of an expert; () if it has no networks."""
    networks = getattr(expert, "networks", ())
    weights = tuple(w for network in networks for w in (*network.weights, *network.biases))
    members = getattr(expert, "experts", (expert,))
    observes = [member.observe for member in members if isinstance(getattr(member, "observe", None), NormalizedExpert)]
    return *weights, *chain.from_iterable(observe.stats.arrays for observe in observes)
