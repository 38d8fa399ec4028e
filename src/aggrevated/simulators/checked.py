"""The one place where simulators are used: what they give is what it must be, or an error that says what it is.

What a simulator shows is looked at for numbers that are none; where its own steps diverged, it says so by their cost.
"""

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UserCodeError
from aggrevated.core.user_code import call_user_code, check_finite, check_numeric_array, to_array
from aggrevated.simulators import Simulator


def reset_and_check(simulator: Simulator, seeds: Array) -> Array:
    """States [n, ...] drawn from ρ₀, one per seed."""
    states = call_user_code(simulator.name, "reset", lambda: simulator.reset(seeds), len(seeds))
    return check_batch(simulator, "states", states, len(seeds), "reset")


def observe_and_check(simulator: Simulator, states: Array) -> Array:
    """What the learner sees of the states."""
    shown = call_user_code(simulator.name, "observe", lambda: simulator.observe(states), len(states))
    shape = (len(states), *simulator.observation_space.shape)
    observations = check_numeric_array(
        simulator.name, "observations", shown, shape, "mend its observe, or its observation_space"
    )
    return check_finite(simulator.name, "observations", observations, "check what its steps and its first states are")


def observe_float64(simulator: Simulator, states: Array) -> Array:
    """The same before it is rounded to float32, by a simulator that has `vectors(states)`."""
    vectors = getattr(simulator, "vectors", None)
    return observe_and_check(simulator, states) if vectors is None else np.asarray(vectors(states))


def step_and_check(simulator: Simulator, states: Array, actions: Array) -> tuple[Array, Array, Array]:
    """(next states, costs [n], done [n]); a diverged one, whose cost is not finite, is done."""
    given = call_user_code(simulator.name, "step", lambda: simulator.step(states, actions), len(states))
    if not isinstance(given, tuple) or len(given) != 3:
        raise UserCodeError(simulator.name, f"gave {type(given).__name__} as a step", "give (states, costs, done)")
    following, costs, done = given
    n = len(states)
    following = check_batch(simulator, "states", following, n, "step")
    costs = check_numeric_array(simulator.name, "costs", costs, (n,), "mend its step")
    done = check_numeric_array(simulator.name, "done", done, (n,), "mend its step")
    sound = np.isfinite(costs)
    return following, costs, done.astype(bool) if sound.all() else done.astype(bool) | ~sound


def check_batch(simulator: Simulator, what: str, given: object, n: int, method: str) -> Array:
    """An array of n rows."""
    array = to_array(simulator.name, what, given, f"mend its {method}")
    if array.ndim < 1 or len(array) != n:
        remedy = f"there must be {n} of them: mend its {method}"
        raise UserCodeError(simulator.name, f"gave {what} of shape {array.shape}", remedy)
    return array
