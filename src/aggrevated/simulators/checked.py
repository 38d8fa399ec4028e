"""Checked calls of simulators: every array that a simulator returns is validated here.

Observations must be finite. A simulator reports a diverged step by a cost that is not finite.
"""

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UserCodeError
from aggrevated.core.user_code import call_user_code, check_finite, check_numeric_array, to_array
from aggrevated.simulators import Simulator


def reset_and_check(simulator: Simulator, seeds: Array) -> Array:
    """Return states [n, ...] drawn from ρ₀, one per seed.

    Args:
        simulator: the simulator.
        seeds: uint64 [n].

    Raises:
        UserCodeError: `reset` failed, or did not return n states.
    """
    states = call_user_code(simulator.name, "reset", lambda: simulator.reset(seeds), len(seeds))
    return check_batch(simulator, "states", states, len(seeds), "reset")


def observe_and_check(simulator: Simulator, states: Array) -> Array:
    """Return the observations [n, ...] of the states.

    Args:
        simulator: the simulator.
        states: states [n, ...].

    Raises:
        UserCodeError: `observe` failed, or returned an array of another shape, or numbers that are not
            finite.
    """
    returned = call_user_code(simulator.name, "observe", lambda: simulator.observe(states), len(states))
    shape = (len(states), *simulator.observation_space.shape)
    observations = check_numeric_array(
        simulator.name, "observations", returned, shape, "fix its observe, or its observation_space"
    )
    return check_finite(simulator.name, "observations", observations, "check its step and its reset")


def observe_float64(simulator: Simulator, states: Array) -> Array:
    """Return the observations before rounding to float32, if the simulator has `vectors(states)`."""
    vectors = getattr(simulator, "vectors", None)
    return observe_and_check(simulator, states) if vectors is None else np.asarray(vectors(states))


def step_and_check(simulator: Simulator, states: Array, actions: Array) -> tuple[Array, Array, Array]:
    """Return (next states, costs [n], done [n]); an episode with a cost that is not finite is done.

    Args:
        simulator: the simulator.
        states: states [n, ...].
        actions: actions [n] or [n, A].

    Raises:
        UserCodeError: `step` failed, or did not return three arrays with n rows.
    """
    returned = call_user_code(simulator.name, "step", lambda: simulator.step(states, actions), len(states))
    if not isinstance(returned, tuple) or len(returned) != 3:
        raise UserCodeError(
            simulator.name, f"returned {type(returned).__name__} from step", "return (states, costs, done)"
        )
    next_states, costs, done = returned
    n = len(states)
    next_states = check_batch(simulator, "states", next_states, n, "step")
    costs = check_numeric_array(simulator.name, "costs", costs, (n,), "fix its step")
    done = check_numeric_array(simulator.name, "done", done, (n,), "fix its step")
    finite = np.isfinite(costs)
    return next_states, costs, done.astype(bool) if finite.all() else done.astype(bool) | ~finite


def check_batch(simulator: Simulator, noun: str, returned: object, n: int, method: str) -> Array:
    """Return `returned` as an array, or raise unless it has n rows."""
    array = to_array(simulator.name, noun, returned, f"fix its {method}")
    if array.ndim < 1 or len(array) != n:
        remedy = f"return {n} of them: fix its {method}"
        raise UserCodeError(simulator.name, f"gave {noun} of shape {array.shape}", remedy)
    return array
